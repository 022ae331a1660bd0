// The part of the router that lives on one loop: connections to engines, the ledger client, and the
// running requests.
#pragma once

#include <atomic>
#include <memory>
#include <span>
#include <string>
#include <unordered_set>

#include "common/clients/clients.h"
#include "common/http/client.h"
#include "services/inference_router/count/token_counter.h"
#include "services/inference_router/rpc/event_sink.h"
#include "services/inference_router/run/request_run.h"
#include "services/inference_router/run/table_holder.h"

namespace tollgate::inference_router {

struct WorkerOptions {
  RunSettings run;
  http::ClientOptions http;
  SettlerOptions settler;
  int64_t heartbeat_ms = 5'000;
  // One thread for all workers of the process, which parses and writes the texts of tokenizer calls
  // above kMaxBytesDecodedOnLoop. When kMaxWaitingTexts are waiting, prompts are estimated.
  static constexpr int kMaxWaitingTexts = 32;
  std::shared_ptr<ThreadPool> decoders =
      std::make_shared<ThreadPool>(1, kMaxWaitingTexts, "decode");
};

class Worker {
 public:
  Worker(Loop& loop, Clock& clock, std::unique_ptr<MeteringClient> metering, Journal& journal,
         Outbox& outbox, Outbox& admissions, TableHolder& table, RouterMetrics& metrics,
         const WorkerOptions& options);
  // Destroy on the loop, or after it has stopped.
  ~Worker();

  // Starts the heartbeats and the renewal of leases. Call on the loop.
  void Start();
  // Serves one request. Call on the loop.
  Task<void> Serve(inference::v1::GenerateRequest request, std::shared_ptr<EventSink> sink);

  // Counts one prompt. Call on the loop.
  Task<inference::v1::CountTokensResponse> Count(inference::v1::CountTokensRequest request) {
    return counter_.Count(table_.Get(), std::move(request));
  }

  Settler& settler() { return settler_; }
  http::Client& http() { return http_; }
  // The complete list of workspaces whose leases must end. Call on the loop.
  void OnLeaseRecalls(std::span<const std::string> workspaces) { leases_.OnRecalls(workspaces); }
  // Gives the leases back when no more requests arrive. Call on the loop.
  void GiveLeasesBack() { leases_.GiveBack(); }
  // Terminates all requests (RequestRun::Terminate). Call on the loop.
  void TerminateAll();
  // Stops heartbeats and settlement retries. Call on the loop.
  void Stop();
  // Thread-safe.
  int running() const { return running_.load(); }

 private:
  void ScheduleHeartbeat();
  void ScheduleLeases();

  Loop& loop_;
  std::unique_ptr<MeteringClient> metering_;
  TableHolder& table_;
  const WorkerOptions options_;
  http::Client http_;
  Settler settler_;
  CreditLeases leases_;
  RunHost host_;
  TokenCounter counter_;
  std::unordered_set<RequestRun*> runs_;
  std::atomic<int> running_{0};
  Loop::TimerId timer_ = 0;
  Loop::TimerId leases_timer_ = 0;
};

}  // namespace tollgate::inference_router
