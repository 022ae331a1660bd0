// One request from its arrival at the router to its settlement: chooses an engine, forwards its
// events, counts, keeps the hold ahead, and ends in exactly one settlement. One coroutine, on one
// loop.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/base/clock.h"
#include "common/http/client.h"
#include "services/inference_router/balancer/routing_table.h"
#include "services/inference_router/count/token_counter.h"
#include "services/inference_router/domain/token_meter.h"
#include "services/inference_router/engine/engine_attempt.h"
#include "services/inference_router/rpc/link_server.h"
#include "services/inference_router/session/hold_keeper.h"
#include "services/inference_router/session/router_metrics.h"
#include "services/inference_router/settlement/settler.h"

namespace tollgate::inference_router {

struct SessionSettings {
  int64_t idle_timeout_ms = 600'000;
  // The number of engines that are tried before the first byte of output.
  int tries = 2;
};

// What a session needs of its loop. Outlives it.
struct SessionHost {
  Loop& loop;
  Clock& clock;
  http::Client& http;
  MeteringClient& metering;
  Journal& journal;
  Settler& settler;
  RouterMetrics& metrics;
  SessionSettings settings;
  // Breaks ties between engines.
  uint64_t turn = 0;
  TokenCounter* counter = nullptr;
};

class Session : public std::enable_shared_from_this<Session> {
 public:
  Session(SessionHost& host, std::shared_ptr<const RoutingTable> table,
          inference::v1::GenerateRequest request, std::shared_ptr<EventSink> sink);
  ~Session();

  Task<void> Run();
  // Reports progress to the ledger, if an engine works on it.
  void Heartbeat();
  // The process is about to end: breaks off, settles what was delivered and tells the caller so.
  void Terminate();

 private:
  enum class Ended {
    kWell,
    kCut,     // the money is at its end
    kGone,    // the caller has gone
    kFailed,  // see failure_
  };
  bool Prepare();
  const Route* FindRoute() const;
  Task<bool> HoldUnseen();
  Task<Ended> TryEngines();
  Task<Ended> TryEngine(EngineState& engine);
  Task<Ended> Relay(EngineAttempt& attempt);
  Task<Ended> Forward();
  Task<bool> SendStarted();
  Task<void> CloseChoices();
  Task<void> Finish(Ended ended);
  Task<void> CountOverflow();
  Task<void> Settle(Ended ended);
  Task<void> SendEnd(inference::v1::End end, const Error* error);

  void OnCancel();
  void FailChoice(const Choice& choice);
  void Measure();
  void KeepCount();
  std::string EngineRequestId() const;
  http::ClientRequest EngineCall(const EngineState& engine) const;
  TokenMeter::Options MeterOptions(const EngineState* engine) const;
  int64_t UnseenTokens() const;
  common::v1::Usage UsageNow() const;

  SessionHost& host_;
  const std::shared_ptr<const RoutingTable> table_;
  inference::v1::GenerateRequest request_;
  const std::shared_ptr<EventSink> sink_;
  const int64_t arrived_us_;

  const Route* route_ = nullptr;
  JournalSlot* slot_ = nullptr;
  std::shared_ptr<HoldKeeper> hold_;
  std::optional<TokenMeter> meter_;
  std::string engine_id_;
  std::string engine_body_;
  EngineAttempt* attempt_ = nullptr;  // the one that runs
  EngineFailure failure_;

  EngineBatch batch_;
  // Completion tokens that must be paid for before the event of the same place may go out.
  std::vector<int64_t> price_;
  std::vector<bool> closed_choices_;
  bool accepted_ = false;  // an engine has taken the request
  bool started_ = false;   // the caller has seen something
  bool cut_ = false;
  bool terminated_ = false;
};

}  // namespace tollgate::inference_router
