// Fakes of everything around the pipeline: an exchange that records the response, and clients with
// configurable results. All of them run on one loop.
#pragma once

#include <atomic>
#include <cassert>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/keys/key_format.h"
#include "common/runtime/notify.h"
#include "common/runtime/testing/run_coro.h"
#include "gateway/pipeline/run.h"

namespace tollgate::gateway::testing {

namespace pb = inference::v1;

class FakeExchange : public Exchange {
 public:
  FakeExchange(Loop& loop, HttpRequest request) : loop_(loop), request_(std::move(request)) {}

  const HttpRequest& request() const override { return request_; }
  HttpRequest& mutable_request() override { return request_; }
  Loop& loop() override { return loop_; }
  Task<bool> Send(HttpResponse response) override {
    status = response.status;
    headers = std::move(response.headers);
    body = std::move(response.body);
    ++answers;
    co_return !disconnected_;
  }
  Task<bool> BeginStream(int with_status, Headers with_headers) override {
    status = with_status;
    headers = std::move(with_headers);
    ++answers;
    co_return !disconnected_;
  }
  Task<bool> Write(std::string bytes) override {
    if (disconnected_) co_return false;
    body += bytes;
    writes.push_back(std::move(bytes));
    if (on_write) on_write();
    co_return !disconnected_;
  }
  Task<void> EndStream() override {
    ended = true;
    co_return;
  }
  void Abort() override { aborted = true; }
  void OnDisconnect(std::function<void()> callback) override {
    if (disconnected_ && callback) return callback();
    on_disconnect_ = std::move(callback);
  }
  bool disconnected() const override { return disconnected_; }

  void OnDrainOver(std::function<void()> callback) override {
    if (drain_over_ && callback) return callback();
    on_drain_over_ = std::move(callback);
  }
  bool drain_over() const override { return drain_over_; }

  void EndDrain() {
    drain_over_ = true;
    if (on_drain_over_) on_drain_over_();
  }
  void Disconnect() {
    if (std::exchange(disconnected_, true)) return;
    if (on_disconnect_) on_disconnect_();
  }
  std::string header(std::string_view name) const {
    for (const auto& [key, value] : headers) {
      if (key == name) return value;
    }
    return "";
  }

  int status = 0;
  int answers = 0;
  Headers headers;
  std::string body;
  std::vector<std::string> writes;
  bool ended = false;
  bool aborted = false;
  std::function<void()> on_write;

 private:
  Loop& loop_;
  HttpRequest request_;
  bool disconnected_ = false;
  std::function<void()> on_disconnect_;
  bool drain_over_ = false;
  std::function<void()> on_drain_over_;
};

class FakeSubscription : public Subscription {};

class FakeAuth : public AuthClient {
 public:
  explicit FakeAuth(Loop& loop) : gate(loop) { gate.Set(); }
  // The real clients may be destroyed during a call; this fake must not be.
  ~FakeAuth() override { assert(running == 0); }
  Task<Result<auth::v1::VerifyKeyResponse>> VerifyKey(auth::v1::VerifyKeyRequest request) override {
    ++calls;
    auth::v1::VerifyKeyResponse response;
    if (const auto found = keys.find(request.key_digest()); found != keys.end()) {
      response.set_found(true);
      *response.mutable_key() = found->second;
    }
    response.set_version(version);
    // The response reflects the state at the time of the call.
    ++running;
    (void)co_await gate.Wait();
    --running;
    if (down) co_return Unavailable("auth is down");
    co_return response;
  }
  Task<Result<auth::v1::ReadVersionResponse>> ReadVersion(auth::v1::ReadVersionRequest) override {
    ++version_reads;
    auth::v1::ReadVersionResponse response;
    response.set_version(version);
    ++running;
    (void)co_await gate.Wait();
    --running;
    if (down) co_return Unavailable("auth is down");
    co_return response;
  }
  Task<Result<auth::v1::ReportKeyUseResponse>> ReportKeyUse(
      auth::v1::ReportKeyUseRequest request) override {
    use_reports.push_back(std::move(request));
    if (down) co_return Unavailable("auth is down");
    if (refuses_reports) co_return BadRequest("The report is malformed.", "uses");
    auth::v1::ReportKeyUseResponse response;
    response.set_wants_addresses(wants_addresses);
    co_return response;
  }
  std::unique_ptr<Subscription> WatchKeys(WatchHandler<auth::v1::WatchKeysResponse>) override {
    return std::make_unique<FakeSubscription>();
  }
  std::map<std::string, auth::v1::Key> keys;  // by digest
  int64_t version = 0;                        // the database's; 0: not reported
  bool down = false;
  int calls = 0;
  std::vector<auth::v1::ReportKeyUseRequest> use_reports;
  bool refuses_reports = false;
  bool wants_addresses = false;
  int version_reads = 0;
  std::atomic<int> running = 0;
  Event gate;  // responses wait for this event
};

class FakeLimiter : public RateLimitClient {
 public:
  Task<Result<ratelimit::v1::AcquireResult>> Acquire(ratelimit::v1::AcquireItem item) override {
    acquired.push_back(item);
    if (on_call) on_call();
    // This model is at its limit.
    if (item.model() == model_at_limit && !model_at_limit.empty()) {
      ratelimit::v1::AcquireResult denied;
      denied.set_denied_by(ratelimit::v1::LIMIT_KIND_REQUESTS);
      denied.set_denied_subject(ratelimit::v1::LIMIT_SUBJECT_MODEL);
      denied.set_retry_after_ms(2'000);
      co_return denied;
    }
    co_return answer;
  }
  Task<void> Present() override {
    ++presences;
    co_return;
  }
  Task<void> Release(ratelimit::v1::ReleaseItem item) override {
    released.push_back(std::move(item));
    return WaitFor(release_applied);
  }
  static Task<void> WaitFor(std::shared_ptr<Event> event) {
    if (event) (void)co_await event->Wait();
  }
  Task<std::vector<std::string>> Renew(std::vector<ratelimit::v1::RenewItem> slots) override {
    renewed.push_back(std::move(slots));
    if (on_renew) on_renew();
    co_return restored;
  }
  Task<Result<ratelimit::v1::PeekResponse>> Peek(ratelimit::v1::PeekRequest request) override {
    peeked.push_back(std::move(request));
    co_return peek_result;
  }
  // Unused: gateways never call GetUse.
  Task<Result<ratelimit::v1::GetUseResponse>> GetUse(ratelimit::v1::GetUseRequest) override {
    co_return ratelimit::v1::GetUseResponse();
  }

  Result<ratelimit::v1::AcquireResult> answer = [] {
    ratelimit::v1::AcquireResult granted;
    granted.set_granted(true);
    return granted;
  }();
  int presences = 0;
  std::function<void()> on_call;
  std::string model_at_limit;
  // If set, Release returns after this event.
  std::shared_ptr<Event> release_applied;
  std::vector<ratelimit::v1::AcquireItem> acquired;
  std::vector<ratelimit::v1::ReleaseItem> released;
  std::vector<std::vector<ratelimit::v1::RenewItem>> renewed;
  std::function<void()> on_renew;
  std::vector<std::string> restored;  // what Renew returns
  std::vector<ratelimit::v1::PeekRequest> peeked;
  Result<ratelimit::v1::PeekResponse> peek_result = ratelimit::v1::PeekResponse();
};

class FakeBilling : public BillingClient {
 public:
  Task<Result<billing::v1::AuthorizeResult>> Authorize(billing::v1::AuthorizeItem item,
                                                       int64_t) override {
    authorized.push_back(item);
    if (on_call) on_call();
    co_return answer;
  }
  void Void(billing::v1::VoidItem item) override { voided.push_back(std::move(item)); }
  Task<Result<billing::v1::GetUsageResponse>> GetUsage(
      billing::v1::GetUsageRequest request) override {
    reported.push_back(std::move(request));
    co_return usage;
  }
  Task<Result<billing::v1::GetReceiptResponse>> GetReceipt(
      billing::v1::GetReceiptRequest request) override {
    receipts_asked.push_back(std::move(request));
    co_return receipt;
  }
  Task<Result<billing::v1::StoreAnswerResponse>> StoreAnswer(
      billing::v1::StoreAnswerRequest request) override {
    stored_answers.push_back(std::move(request));
    co_return billing::v1::StoreAnswerResponse();
  }
  Task<Result<billing::v1::GetAnswerResponse>> GetAnswer(
      billing::v1::GetAnswerRequest request) override {
    wanted_answers.push_back(std::move(request));
    co_return kept_answer;
  }

  Result<billing::v1::AuthorizeResult> answer = [] {
    billing::v1::AuthorizeResult granted;
    granted.set_granted(true);
    granted.set_authorized_nano_usd(777);
    granted.set_slice_nano_usd(55);
    return granted;
  }();
  std::function<void()> on_call;
  std::vector<billing::v1::AuthorizeItem> authorized;
  std::vector<billing::v1::VoidItem> voided;
  std::vector<billing::v1::GetUsageRequest> reported;
  std::vector<billing::v1::GetReceiptRequest> receipts_asked;
  Result<billing::v1::GetReceiptResponse> receipt = billing::v1::GetReceiptResponse();
  std::vector<billing::v1::StoreAnswerRequest> stored_answers;
  std::vector<billing::v1::GetAnswerRequest> wanted_answers;
  Result<billing::v1::GetAnswerResponse> kept_answer = billing::v1::GetAnswerResponse();
  Result<billing::v1::GetUsageResponse> usage = billing::v1::GetUsageResponse();
};

// The events that the router sends: batches, then silence or a broken link.
struct Script {
  std::deque<std::vector<pb::Event>> batches;
  std::optional<Error> broken;  // after the batches
  bool sent = true;
  bool cancelled = false;
  std::unique_ptr<Notify> more;

  void Push(std::vector<pb::Event> batch) {
    batches.push_back(std::move(batch));
    more->NotifyAll();
  }
};

class FakeGeneration : public Generation {
 public:
  explicit FakeGeneration(std::shared_ptr<Script> script) : script_(std::move(script)) {}
  Task<Result<std::vector<pb::Event>>> Next() override {
    const auto script = script_;
    while (script->batches.empty()) {
      if (script->cancelled) co_return Internal("cancelled");
      if (script->broken) co_return Fail{*script->broken};
      (void)co_await script->more->Wait();
    }
    auto batch = std::move(script->batches.front());
    script->batches.pop_front();
    co_return batch;
  }
  void Cancel() override {
    script_->cancelled = true;
    script_->batches.clear();
    script_->more->NotifyAll();
  }
  bool sent() const override { return script_->sent; }

 private:
  std::shared_ptr<Script> script_;
};

class FakeInference : public InferenceClient {
 public:
  std::unique_ptr<Generation> Start(pb::GenerateRequest request) override {
    started.push_back(std::move(request));
    auto generation = std::make_unique<FakeGeneration>(script);
    if (!later.empty()) {
      script = std::move(later.front());
      later.pop_front();
    }
    return generation;
  }
  Task<Result<pb::CountTokensResponse>> CountTokens(pb::CountTokensRequest request) override {
    counted.push_back(std::move(request));
    if (on_count) on_count();
    co_return count;
  }
  std::shared_ptr<Script> script;
  std::deque<std::shared_ptr<Script>> later;  // scripts of the calls after the first
  std::vector<pb::GenerateRequest> started;
  std::vector<pb::CountTokensRequest> counted;
  // No engine can count by default.
  Result<pb::CountTokensResponse> count = pb::CountTokensResponse();
  std::function<void()> on_count;
};

inline pb::Event Started() {
  pb::Event event;
  event.mutable_started();
  return event;
}
inline pb::Event Text(std::string escaped) {
  pb::Event event;
  event.mutable_delta()->set_content_json(std::move(escaped));
  return event;
}
inline pb::Event Finish(pb::FinishReason reason = pb::FINISH_REASON_STOP) {
  pb::Event event;
  event.mutable_delta()->set_finish_reason(reason);
  return event;
}
inline pb::Event End(int64_t prompt, int64_t completion) {
  pb::Event event;
  event.mutable_end()->mutable_usage()->set_prompt_tokens(prompt);
  event.mutable_end()->mutable_usage()->set_completion_tokens(completion);
  return event;
}
inline pb::Event Failed(std::string name, int64_t retry_after_ms = 0, std::string message = "") {
  pb::Event event;
  auto* error = event.mutable_end()->mutable_error();
  error->set_error(std::move(name));
  error->set_message(std::move(message));
  error->set_retry_after_ms(retry_after_ms);
  return event;
}

// A worker with its fakes, one key (`key_text`) of workspace ws1 with a request limit, and one
// model, "ns/model".
class Rig {
 public:
  explicit Rig(PipelineOptions options = {}) {
    pool.Start();
    RunOnLoop([&](Loop& loop) {
      WorkerClients clients;
      auth = new FakeAuth(loop);
      limiter = new FakeLimiter;
      billing = new FakeBilling;
      inference = new FakeInference;
      clients.auth.reset(auth);
      clients.limiter.reset(limiter);
      clients.billing.reset(billing);
      clients.inference.reset(inference);
      inference->script = std::make_shared<Script>();
      inference->script->more = std::make_unique<Notify>(loop);
      worker = std::make_unique<Worker>(
          loop, clock, std::move(options), std::move(clients),
          std::make_shared<AddressLimiter>(KeyCache::kUnknownKeysPerAddress), decoders,
          std::make_shared<RefusalBudget>(), std::make_shared<ClockCheck>());
    });
    const MadeKey made = MakeKey("tollgate");
    key_text = made.text;
    key.set_key_id(made.key_id);
    key.set_workspace_id("ws1");
    key.set_state(auth::v1::KEY_STATE_ACTIVE);
    key.set_version(1);
    key.mutable_key_limits()->set_requests_per_minute(100);
    catalog::v1::Model* model = snapshot.add_models();
    model->set_id("ns/model");
    model->set_context_window(1000);
    model->set_max_output_tokens(400);
    model->set_serving(true);
    model->add_capabilities(catalog::v1::CAPABILITY_CHAT);
    model->mutable_price()->set_input_pico_usd(3);
    model->mutable_price()->set_output_pico_usd(4);
    model->mutable_price()->set_version(9);
    snapshot.set_version(9);
    Publish();
  }
  ~Rig() {
    RunOnLoop([&](Loop&) {
      inference->script.reset();
      inference->later.clear();
      worker.reset();
    });
  }

  // Publishes the key and the snapshot through the fakes of auth and catalog.
  void Publish() {
    RunOnLoop([&](Loop&) {
      auth->keys[KeyDigest(key_text)] = key;
      worker->catalog = std::make_shared<const CatalogView>(snapshot);
    });
  }

  void RunOnLoop(const std::function<void(Loop&)>& callback) {
    tollgate::testing::RunOn(pool.loop(0), [&](Loop& loop) -> Task<int> {
      callback(loop);
      co_return 0;
    });
  }

  HttpRequest ChatRequest(std::string body) const {
    HttpRequest request;
    request.method = "POST";
    request.path = "/v1/chat/completions";
    request.headers = {{"authorization", "Bearer " + key_text},
                       {"content-type", "application/json"}};
    request.body = std::move(body);
    request.x_request_id = "x-1";
    return request;
  }

  // Runs the whole pipeline. `prepare` is called with the exchange before.
  std::shared_ptr<FakeExchange> Run(const Surface& surface, HttpRequest request,
                                    std::function<void(FakeExchange&)> prepare = {}) {
    std::shared_ptr<FakeExchange> exchange;
    tollgate::testing::RunOn(pool.loop(0), [&](Loop& loop) -> Task<int> {
      exchange = std::make_shared<FakeExchange>(loop, std::move(request));
      if (prepare) prepare(*exchange);
      co_await RunInference(*worker, surface, *exchange, endpoint);
      co_return 0;
    });
    return exchange;
  }

  ManualClock clock;
  LoopPool pool{1};
  std::shared_ptr<ThreadPool> decoders = std::make_shared<ThreadPool>(1, 2, "decode");
  std::string key_text;
  auth::v1::Key key;
  catalog::v1::Snapshot snapshot;
  Endpoint endpoint{"POST",          "/v1/chat/completions",  "chat_completions",
                    Family::kOpenAi, CredentialRule::kBearer, {}};
  // Owned by the worker.
  FakeAuth* auth = nullptr;
  FakeLimiter* limiter = nullptr;
  FakeBilling* billing = nullptr;
  FakeInference* inference = nullptr;
  std::unique_ptr<Worker> worker;
};

}  // namespace tollgate::gateway::testing
