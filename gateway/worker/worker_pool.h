// One worker per event loop, and the two pushed streams that keep them all up to date.
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "common/host/host.h"
#include "gateway/worker/worker.h"

namespace tollgate::gateway {

class WorkerPool {
 public:
  // catalog_file: where the last catalog is kept; empty: nowhere.
  WorkerPool(HostContext& host, PipelineOptions options, std::string catalog_file);
  ~WorkerPool();

  // Makes the workers, each on its own loop, and opens the streams. Not on a loop's thread.
  void Start();
  // Takes all of it down. Not on a loop's thread.
  void Stop();

  // The loop's own worker. On that loop, between Start and Stop.
  Worker& Of(Loop& loop) { return *workers_[static_cast<size_t>(loop.index())]; }
  // A catalog is there and auth has been heard of lately. Thread-safe.
  bool Ready() const;

 private:
  void OpenStreams();
  // Runs it for each worker, on its loop. Thread-safe.
  void ForEach(std::function<void(Worker&)> callback);
  void RunOnEachLoop(const std::function<void(Loop&)>& callback);

  HostContext& host_;
  const PipelineOptions options_;
  const std::string catalog_file_;
  std::vector<std::shared_ptr<Worker>> workers_;  // by loop index; each written by its loop only
  // Of the streams, on loop 0.
  std::unique_ptr<AuthClient> auth_;
  std::unique_ptr<CatalogClient> catalog_;
  std::unique_ptr<Subscription> keys_stream_, catalog_stream_;
  std::atomic<bool> has_catalog_{false};
  std::atomic<int64_t> auth_heard_us_{INT64_MIN / 2};
};

}  // namespace tollgate::gateway
