// The simulated engine's endpoints and the pacing of its answers. Everything but the accessors
// marked otherwise runs on the loop's thread.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/engine_sim.h"
#include "tests/support/sim_faults.h"
#include "tests/support/sim_net.h"
#include "tests/support/sim_plan.h"
#include "tests/support/sim_render.h"

namespace tollgate::test {

// The record of one request. The loop writes, any thread reads.
struct SimRecord {
  SimRequest fixed;  // set at the start, constant afterwards
  std::atomic<int> status{0};
  std::atomic<bool> running{false}, finished{false}, aborted{false}, cut{false};
  std::atomic<int64_t> tokens{0}, first_token_us{0}, ended_us{0};
  SimRequest Snapshot() const;
};

class SimService : public SimLoop::Handler {
 public:
  explicit SimService(EngineSimOptions options);
  void Attach(SimLoop* loop) { loop_ = loop; }

  void OnRequest(SimConnection& connection, SimHttpRequest request) override;
  void OnDue(SimConnection& connection) override;
  void OnDrained(SimConnection& connection) override;
  void OnGone(SimConnection& connection) override;

  // Callable from any thread.
  std::vector<SimRequest> Requests() const;
  SimTotals Totals() const;
  void Forget();
  void SetDefaultScript(const std::string& json_object);
  // Sets scripts for the next chat requests that offer tools, one each, instead of the default
  // script; returns how many of the earlier scripts were not used.
  size_t SetQueue(const std::string& json_list);
  // See SimFaults::Set.
  void SetFaults(const std::string& json_object);
  void SetHealthy(bool healthy) { healthy_.store(healthy); }

 private:
  struct Answer;
  void Generate(SimConnection& connection, SimHttpRequest request, SimKind kind);
  void Begin(SimConnection& connection, Answer& answer);
  // Emits what is due; ends the answer after the last token.
  void Continue(SimConnection& connection, Answer& answer);
  void Step(Answer& answer);
  bool Fault(SimConnection& connection, Answer& answer);
  void FinishStream(SimConnection& connection, Answer& answer);
  void SendRaw(SimConnection& connection, Answer& answer);
  // Returns false when the connection has closed.
  bool SendHalf(SimConnection& connection, const std::string& body);
  void SendRawResponse(SimConnection& connection, Answer& answer);
  void SendEvents(SimConnection& connection, Answer& answer);
  void Ended(Answer& answer);
  void Respond(SimConnection& connection, int status, const std::string& body,
               const char* type = "application/json",
               const std::vector<std::pair<std::string, std::string>>& headers = {},
               const std::string& behind = "");
  void RespondError(SimConnection& connection, const SimError& error);
  // Answers a tokenizer call; false when the request is not one.
  void Drip(SimConnection& connection, int64_t every_ms);
  void Health(SimConnection& connection);
  bool Tokenize(SimConnection& connection, const SimHttpRequest& request);
  std::string Metrics() const;
  std::string Models() const;
  std::string RequestList(bool bodies, const std::string& tag) const;

  EngineSimOptions options_;
  SimLoop* loop_ = nullptr;
  std::atomic<bool> healthy_{true};
  std::string answer_prefix_;
  int64_t next_number_ = 1;

  mutable std::mutex mutex_;  // guards the members below
  Json default_script_;
  std::deque<Json> queue_;
  SimFaults faults_;
  std::map<std::string, int64_t> refused_;  // by tag; see MakePlan
  std::vector<std::shared_ptr<SimRecord>> records_;
  std::atomic<int64_t> tokenizer_requests_{0}, requests_{0}, running_{0}, finished_{0}, aborted_{0},
      prompt_tokens_{0}, tokens_{0};
};

}  // namespace tollgate::test
