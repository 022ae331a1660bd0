// One worker per event loop, and the streams from auth and catalog that update all of them.
#pragma once

#include <prometheus/gauge.h>
#include <prometheus/histogram.h>

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "common/host/host.h"
#include "gateway/worker/worker.h"

namespace tollgate::gateway {

class WorkerPool {
 public:
  // catalog_file: where the last catalog snapshot is stored; empty: nowhere.
  WorkerPool(HostContext& host, PipelineOptions options, std::string catalog_file);
  ~WorkerPool();

  // Creates each worker on its own loop and opens the streams. Do not call on a loop's thread.
  void Start();
  // Closes the streams and destroys the workers. Do not call on a loop's thread.
  void Stop();

  // Returns the worker of this loop. Call on that loop, between Start and Stop.
  Worker& ForLoop(Loop& loop) { return *workers_[static_cast<size_t>(loop.index())]; }
  // Whether a catalog has been received, and a message from auth within the last 30 s, and the
  // ledger has not refused the clock of this process. Thread-safe.
  bool Ready() const;
  // Returns once Ready(), or after max_ms. Do not call on a loop's thread.
  void AwaitReady(int64_t max_ms);

 private:
  void OpenStreams();
  void ConnectKeyCaches();
  void OnKeyMessage(auth::v1::WatchKeysResponse message);
  // Wakes AwaitReady.
  void ReportProgress();
  // Posts the callback to each worker's loop. Thread-safe.
  void PostToEach(std::function<void(Worker&)> callback);
  // Runs the callback on each loop in turn and waits for it.
  void RunOnEachLoop(const std::function<void(Loop&)>& callback);

  HostContext& host_;
  const PipelineOptions options_;
  const std::string catalog_file_;
  std::vector<std::shared_ptr<Worker>> workers_;  // by loop index; each written by its loop only
  // Clients for the streams, used on loop 0.
  std::unique_ptr<AuthClient> auth_;
  std::unique_ptr<CatalogClient> catalog_;
  std::unique_ptr<Subscription> keys_stream_, catalog_stream_;
  LiveFilterReceiver live_filter_;
  prometheus::Gauge& filter_bytes_;
  prometheus::Gauge& key_version_;
  prometheus::Histogram& change_seconds_;
  const std::shared_ptr<ClockCheck> clock_check_ = std::make_shared<ClockCheck>();
  std::atomic<bool> has_catalog_{false};
  std::atomic<int64_t> last_auth_message_us_{INT64_MIN / 2};
  std::mutex progress_mutex_;
  std::condition_variable progress_;  // notified when Ready() may have changed
};

}  // namespace tollgate::gateway
