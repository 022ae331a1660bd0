// Fixture for tests of request runs: up to two simulated engines, a scripted ledger, and a sink
// that records events.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <deque>
#include <filesystem>
#include <functional>
#include <map>
#include <string>
#include <vector>

#include "common/base/id.h"
#include "common/runtime/notify.h"
#include "common/runtime/testing/run_coro.h"
#include "services/inference_router/run/worker.h"
#include "tests/support/engine_sim.h"

namespace tollgate::inference_router {

// A ledger with one hold: grants extensions up to its limit, charges the usage, and records
// operations.
struct LedgerScript {
  int64_t limit_nano_usd = INT64_MAX;  // extensions are granted up to here
  // Why extensions above the limit are refused.
  billing::v1::DenyReason limited_by = billing::v1::DENY_REASON_NO_CREDIT;
  bool closed = false;  // the hold has expired
  bool unreachable = false;
  bool refuses_settles = false;
  int64_t answer_ms = 0;
  std::vector<billing::v1::MeterOp> ops;
  int64_t lease_nano_usd = 0;  // granted for each lease request; 0: no leases
  bool frozen = false;         // leases are refused and recalled
  std::vector<billing::v1::TakeLeaseRequest> leases_asked;

  std::vector<billing::v1::MeterOp> Settles() const {
    std::vector<billing::v1::MeterOp> found;
    for (const auto& op : ops) {
      if (op.has_settle()) found.push_back(op);
    }
    return found;
  }
  int Count(billing::v1::MeterOp::OpCase kind) const {
    int count = 0;
    for (const auto& op : ops) count += op.op_case() == kind ? 1 : 0;
    return count;
  }
};

class ScriptedLedger : public MeteringClient {
 public:
  ScriptedLedger(Loop& loop, LedgerScript& script, int64_t authorized, Rates rates)
      : loop_(loop), script_(script), authorized_(authorized), rates_(rates) {}
  Task<Result<billing::v1::MeterResult>> Meter(billing::v1::MeterOp op, int64_t) override {
    if (script_.answer_ms > 0) co_await loop_.Sleep(script_.answer_ms);
    if (script_.unreachable) co_return Unavailable("ledger unreachable");
    script_.ops.push_back(op);
    billing::v1::MeterResult result;
    if (script_.closed) {
      result.set_denied_by(billing::v1::DENY_REASON_CLOSED);
      co_return result;
    }
    result.set_ok(true);
    if (op.has_extend()) {
      const int64_t total = op.extend().authorized_total_nano_usd();
      authorized_ = std::max(authorized_, std::min(total, script_.limit_nano_usd));
      if (total > authorized_) result.set_denied_by(script_.limited_by);
    }
    if (op.has_settle() && script_.refuses_settles) {
      result.set_ok(false);
      result.set_denied_by(billing::v1::DENY_REASON_INVALID);
    } else if (op.has_settle()) {
      const auto& usage = op.settle().usage();
      result.set_charged_nano_usd(std::min(
          ChargeNanoUsd(CostPicoUsd(rates_, usage.prompt_tokens(), usage.completion_tokens())),
          authorized_));
    }
    result.set_authorized_nano_usd(authorized_);
    co_return result;
  }
  Task<Result<billing::v1::TakeLeaseResponse>> TakeLease(billing::v1::TakeLeaseRequest request,
                                                         int64_t) override {
    if (script_.unreachable) co_return Unavailable("ledger unreachable");
    script_.leases_asked.push_back(std::move(request));
    billing::v1::TakeLeaseResponse response;
    if (script_.frozen && script_.leases_asked.back().wanted_nano_usd() > 0) {
      response.set_denied_by(billing::v1::DENY_REASON_FROZEN);
      response.set_recalled(true);
      co_return response;
    }
    if (script_.lease_nano_usd == 0) response.set_denied_by(billing::v1::DENY_REASON_NO_LEASE);
    response.set_month(202611);
    response.set_granted_nano_usd(script_.lease_nano_usd);
    response.set_valid_ms(50'000);
    co_return response;
  }

 private:
  Loop& loop_;
  LedgerScript& script_;
  int64_t authorized_;
  Rates rates_;
};

class RecordingSink : public EventSink {
 public:
  explicit RecordingSink(Loop& loop) : room_(loop) {}
  Task<bool> Send(inference::v1::Event event) override {
    while (!cancelled_ && blocked) co_await room_.Wait();
    if (cancelled_) co_return false;
    events.push_back(std::move(event));
    if (on_event) on_event(events.back());
    co_return !cancelled_;
  }
  bool cancelled() const override { return cancelled_; }
  void OnCancel(std::function<void()> callback) override {
    callback_ = std::move(callback);
    if (cancelled_ && callback_) callback_();
  }
  void Cancel() {
    cancelled_ = true;
    room_.NotifyAll();
    if (callback_) callback_();
  }
  bool receiver_lost() const override { return lost; }
  void Unblock() {
    blocked = false;
    room_.NotifyAll();
  }

  std::vector<inference::v1::Event> events;
  std::function<void(const inference::v1::Event&)> on_event;
  bool blocked = false;
  bool lost = false;  // Cancel means that the gateway was lost

 private:
  Notify room_;
  bool cancelled_ = false;
  std::function<void()> callback_;
};

// The events of one request.
struct Outcome {
  std::vector<inference::v1::Event> events;

  bool started() const { return !events.empty() && events[0].has_started(); }
  bool ended() const { return !events.empty() && events.back().has_end(); }
  const inference::v1::End& end() const { return events.back().end(); }
  int deltas() const {
    int count = 0;
    for (const auto& event : events) count += event.has_delta() ? 1 : 0;
    return count;
  }
  std::string text(int choice = 0) const {
    std::string text;
    for (const auto& event : events) {
      if (event.has_delta() && event.delta().choice() == choice)
        text += event.delta().content_json();
    }
    return text;
  }
  inference::v1::FinishReason finish(int choice = 0) const {
    for (const auto& event : events) {
      if (event.has_delta() && event.delta().choice() == choice && event.delta().finish_reason()) {
        return event.delta().finish_reason();
      }
    }
    return inference::v1::FINISH_REASON_UNSPECIFIED;
  }
};

class RequestRunTest : public ::testing::Test {
 protected:
  RequestRunTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "runXXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    journal_ = std::move(Journal::Open(folder_ + "/journal")).value();
    outbox_ = std::move(Outbox::Open(folder_ + "/outbox")).value();
    admissions_ = std::move(Outbox::Open(folder_ + "/admissions")).value();
    pool_.Start();
    options_.run.idle_timeout_ms = 5'000;
    options_.heartbeat_ms = 60'000;
    options_.settler.patience_ms = 50;
    options_.settler.first_pause_ms = 10;
    EXPECT_TRUE(first_.Start());
    EXPECT_TRUE(second_.Start());
    request_.set_request_id(Id::New().ToBytes());
    request_.set_workspace_id("ws");
    request_.set_key_id("key");
    request_.set_model("ns/m");
    request_.set_kind(inference::v1::REQUEST_KIND_CHAT);
    request_.set_prompt_tokens_bound(1000);
    request_.set_choices(1);
    request_.set_streamed(true);
    // 1 nano-USD per prompt token, 2 per completion token. The hold pays for the prompt's bound and
    // 1000 completion tokens.
    auto& hold = *request_.mutable_hold();
    hold.mutable_price()->set_input_pico_usd(1000);
    hold.mutable_price()->set_output_pico_usd(2000);
    hold.set_authorized_nano_usd(3000);
    hold.set_slice_nano_usd(2000);
  }
  ~RequestRunTest() override {
    pool_.Stop();
    outbox_.reset();
    admissions_.reset();
    journal_.reset();
    std::filesystem::remove_all(folder_);
  }

  // engines: number of the two simulated engines in the catalog.
  void UseEngines(int engines, int64_t max_concurrency = 0,
                  catalog::v1::EngineKind kind = catalog::v1::ENGINE_KIND_VLLM) {
    catalog::v1::Snapshot snapshot;
    auto& model = *snapshot.add_models();
    model.set_id("ns/m");
    model.set_pool("p");
    model.set_engine_model("sim/model");
    model.set_serving(true);
    model.set_context_window(131'072);
    auto& pool = *snapshot.add_pools();
    pool.set_name("p");
    for (int i = 0; i < engines; ++i) {
      auto& engine = *pool.add_engines();
      engine.set_id(i == 0 ? "first" : "second");
      engine.set_kind(kind);
      engine.set_base_url(i == 0 ? first_.base_url() : second_.base_url());
      engine.set_max_concurrency(max_concurrency);
    }
    auto table = std::make_shared<const RoutingTable>(snapshot, table_.Get().get());
    table_.Set(std::move(table));
  }

  // script: the members of x_sim.
  void Script(const std::string& script) {
    request_.set_members_json(R"("messages":[{"role":"user","content":"hello there"}],"x_sim":{)" +
                              script + "}");
  }

  Outcome Run(std::function<void(Loop&, RecordingSink&)> prepare = {}) {
    if (table_.Get() == nullptr) UseEngines(1);
    return testing::RunOn(pool_.loop(0), [&](Loop& loop) -> Task<Outcome> {
      const auto& price = request_.hold().price();
      Worker worker(
          loop, SystemClock::Get(),
          std::make_unique<ScriptedLedger>(loop, ledger_, request_.hold().authorized_nano_usd(),
                                           Rates{price.input_pico_usd(), price.output_pico_usd()}),
          *journal_, *outbox_, *admissions_, table_, metrics_, options_);
      worker.Start();
      auto sink = std::make_shared<RecordingSink>(loop);
      if (prepare) prepare(loop, *sink);
      co_await worker.Serve(request_, sink);
      // Background operations refer to the worker.
      for (int i = 0; i < 4'000 && (outbox_->depth() > 0 || journal_->in_use() > 0); ++i) {
        co_await loop.Sleep(5);
      }
      co_await loop.Sleep(1);
      co_return Outcome{sink->events};
    });
  }

  std::string folder_;
  test::EngineSim first_, second_;
  LoopPool pool_{1};
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<Outbox> outbox_;
  std::unique_ptr<Outbox> admissions_;
  TableHolder table_;
  RouterMetrics metrics_;
  WorkerOptions options_;
  LedgerScript ledger_;
  inference::v1::GenerateRequest request_;
};

}  // namespace tollgate::inference_router
