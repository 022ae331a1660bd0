#include "tests/chaos/load.h"

#include <cstdlib>

namespace tollgate::test {
namespace {

constexpr int64_t kInputPico = 150'101;
constexpr int64_t kOutputPico = 600'307;
// Longer than any fault lasts, so that a caller learns the outcome of its call.
constexpr int64_t kCallMs = 60'000;

}  // namespace

int64_t FromEnvironment(const char* name, int64_t otherwise) {
  const char* value = std::getenv(name);
  return value ? std::atoll(value) : otherwise;
}

int64_t Load::Cost(int64_t prompt_tokens, int64_t completion_tokens) {
  return (prompt_tokens * kInputPico + completion_tokens * kOutputPico) / 1000;
}

Load::Load(Cluster& cluster, const std::string& name, int keys_of_a_workspace, int workspaces)
    : cluster_(cluster), name_(name) {
  for (int i = 0; i < workspaces; ++i) customers_.push_back(cluster.NewCustomer(kCredit));
  keys_ = customers_;
  for (int i = workspaces; i < workspaces * keys_of_a_workspace; ++i) {
    keys_.push_back(cluster.NewKey(customers_[static_cast<size_t>(i % workspaces)].workspace_id));
  }
}

Load::~Load() { Stop(); }

void Load::Start() {
  for (int i = 0; i < kWorkers; ++i) threads_.emplace_back([this] { Work(); });
  threads_.emplace_back([this] { GiveCredit(); });
}

void Load::Stop() {
  stop_ = true;
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

Call& Load::Next(int64_t& index) {
  std::lock_guard lock(mutex_);
  index = static_cast<int64_t>(calls_.size());
  Call& call = calls_.emplace_back();
  call.tag = name_ + "-" + std::to_string(index);
  return call;
}

void Load::Work() {
  while (!stop_) {
    int64_t index = 0;
    Call& call = Next(index);
    call.streamed = index % 2 == 0;
    // Some calls produce no output for long, so that faults hit them before output begins.
    Run(call, keys_[static_cast<size_t>(index * 7) % keys_.size()], index % 3 == 0 ? 2'000 : 100,
        40 + static_cast<int>(index * 37 % 200));
    // Refusals are immediate: no busy loop while a service is unreachable.
    if (call.status != 200) SleepMs(50);
    if (call.complete) ++complete_;
  }
}

bool Load::Probe() {
  int64_t index = 0;
  Call& call = Next(index);
  Run(call, customers_.front(), 0, 1);
  return call.complete;
}

void Load::GiveCredit() {
  for (int64_t i = 0; !stop_; ++i) {
    TopUp top_up{customers_[static_cast<size_t>(i) % customers_.size()].workspace_id,
                 name_ + "-credit-" + std::to_string(i), 1'000 + i, false};
    // Every second caller repeats its call with the same id until it is answered.
    do {
      top_up.acknowledged = cluster_.TryAddCredit(top_up.workspace, top_up.nano_usd, top_up.id);
      SleepMs(20);
    } while (!top_up.acknowledged && i % 2 == 0 && !stop_);
    top_ups_.push_back(top_up);
  }
}

void Load::Run(Call& call, const ApiKey& key, int delay_ms, int tokens) {
  call.workspace = key.workspace_id;
  call.begun_us = MonotonicUs();
  call.engine_us = int64_t{1'000} * (delay_ms + 5 * tokens);
  const std::string body =
      R"({"model":"sim/model","messages":[{"role":"user","content":"chaos"}],)" +
      // A bound on output lets the engine generate unstreamed answers as a whole (decision 42).
      std::string(call.streamed ? R"("stream":true,"stream_options":{"include_usage":true},)"
                                : R"("max_tokens":)" + std::to_string(tokens + 10) + ",") +
      R"("x_sim":{"delay_ms":)" + std::to_string(delay_ms) + R"(,"token_ms":5,"tokens":)" +
      std::to_string(tokens) + R"(,"tag":")" + call.tag + R"("}})";
  while (true) {
    call.streamed ? RunStreamed(call, key, body) : RunWhole(call, key, body);
    // Connection refused while the gateway restarts: nothing was sent.
    if (!call.error.starts_with("connect:") || stop_) break;
    SleepMs(10);
  }
  call.told_of_error = call.told_of_error || call.status >= 400;
  call.ended_us = MonotonicUs();
}

void Load::RunStreamed(Call& call, const ApiKey& key, const std::string& body) {
  HeaderList headers = key.headers();
  headers.emplace_back("X-Request-Id", call.tag);
  const SseStream stream =
      HttpStream(cluster_.port(), "/v1/chat/completions", headers, body, kCallMs);
  call.status = stream.head.status;
  call.error = stream.head.error;
  call.complete = stream.done();
  for (const SseEvent& event : stream.events) {
    const Json chunk = event.json();
    call.seen_tokens += chunk["choices"][0]["delta"]["content"].str().empty() ? 0 : 1;
    call.told_of_error = call.told_of_error || chunk.has("error");
  }
  const Json usage = stream.Usage();
  call.prompt_tokens = usage["prompt_tokens"].integer();
  call.completion_tokens = usage["completion_tokens"].integer();
}

void Load::RunWhole(Call& call, const ApiKey& key, const std::string& body) {
  HeaderList headers = key.headers();
  headers.emplace_back("X-Request-Id", call.tag);
  const HttpResponse answer =
      Http(cluster_.port(), "POST", "/v1/chat/completions", headers, body, kCallMs);
  call.status = answer.status;
  call.error = answer.error;
  call.complete = answer.status == 200 && answer.complete;
  if (!call.complete) return;
  const Json usage = answer.json()["usage"];
  call.prompt_tokens = usage["prompt_tokens"].integer();
  call.completion_tokens = usage["completion_tokens"].integer();
}

}  // namespace tollgate::test
