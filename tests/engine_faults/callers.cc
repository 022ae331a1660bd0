#include "tests/engine_faults/callers.h"

#include <algorithm>

#include "tests/support/http.h"

namespace tollgate::test {
namespace {

constexpr int kCustomers = 4;  // fewer than callers, so that callers share wallets
// Longer than any answer may take: a caller that waits this long got no answer.
constexpr int64_t kForeverMs = 60'000;
constexpr int64_t kNever = INT64_MAX;
constexpr size_t kShownBytes = 1'500;

int64_t Between(std::mt19937& random, int64_t least, int64_t most) {
  return least + static_cast<int64_t>(random() % static_cast<uint32_t>(most - least + 1));
}

// Reads to the end, or until the caller has waited or read enough.
Answer Read(HttpConnection& connection, int64_t patience_ms, int64_t reads, int64_t& longest_us) {
  Answer answer;
  int64_t last_us = MonotonicUs();
  const auto waited = [&] {
    const int64_t now_us = MonotonicUs();
    longest_us = std::max(longest_us, now_us - last_us);
    last_us = now_us;
  };
  const HttpResponse head = connection.ReadHead();
  waited();
  answer.status = head.status;
  answer.type = head.header("content-type");
  answer.error = head.error;
  if (head.status != 0) {
    for (; reads > 0; --reads) {
      const std::string more = connection.ReadSome();
      waited();
      if (more.empty()) break;
      answer.bytes += more;
    }
    answer.ended = connection.ended_properly();
    if (!answer.ended) answer.error = connection.error();
  }
  answer.left = !answer.ended && (reads == 0 || (patience_ms > 0 && answer.error == "timed out"));
  return answer;
}

}  // namespace

Callers::Callers(Cluster& cluster, int64_t seed) : cluster_(cluster), seed_(seed) {
  // With a limit, far above what runs, so that every call takes a slot.
  KeyOptions options;
  options.limits = {.requests_per_minute = 100'000, .concurrent_requests = 200};
  for (int i = 0; i < kCustomers; ++i) customers_.push_back(cluster.NewCustomer(kCredit, options));
}

Callers::~Callers() { Stop(); }

void Callers::Start() {
  stop_ = false;
  for (int i = 0; i < kWorkers; ++i) {
    threads_.emplace_back([this, i] { Work(seed_ * 1'000 + i); });
  }
}

void Callers::Stop() {
  stop_ = true;
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
}

FaultCall& Callers::Next() {
  std::lock_guard lock(mutex_);
  FaultCall& call = calls_.emplace_back();
  call.tag = "c" + std::to_string(calls_.size());
  return call;
}

Question Callers::Ask(std::mt19937& random, Surface surface, bool streamed, const char* model,
                      const std::string& tag) const {
  Question question;
  question.surface = surface;
  question.streamed = streamed;
  question.model = model;
  question.tag = tag;
  const bool chats = surface != Surface::kCompletions && surface != Surface::kEmbeddings;
  const int64_t tokens = Between(random, 5, 30);
  const int64_t reasoning = chats ? Between(random, 0, 1) * Between(random, 1, 6) : 0;
  if (surface == Surface::kCompletions) question.model = "sim/text";
  if (surface == Surface::kEmbeddings) question.model = "sim/embed";
  std::string body = R"({"model":")" + question.model + R"(","x_sim":{"marked":true,"tokens":)" +
                     std::to_string(tokens) + R"(,"reasoning_tokens":)" +
                     std::to_string(reasoning) + R"(,"delay_ms":)" +
                     std::to_string(Between(random, 0, 150)) + R"(,"token_ms":)" +
                     std::to_string(Between(random, 2, 12)) + R"(,"tag":")" + tag + "\"},";
  const std::string bound = std::to_string(tokens + reasoning + 10);
  const std::string messages = R"("messages":[{"role":"user","content":"a question"}])";
  switch (surface) {
    case Surface::kChat:
      body += messages;
      // A bound on output lets the engine generate a whole answer (decision 42).
      if (Between(random, 0, 2) > 0) body += R"(,"max_tokens":)" + bound;
      break;
    case Surface::kCompletions:
      body += R"("prompt":"a beginning","max_tokens":)" + bound;
      break;
    case Surface::kMessages:
      body += messages + R"(,"max_tokens":)" + bound;
      break;
    case Surface::kResponses:
      body += R"("input":"a question","max_output_tokens":)" + bound;
      break;
    case Surface::kEmbeddings:
      body += R"("input":")" + tag + "\"";
      break;
  }
  if (streamed) {
    body += R"(,"stream":true)";
    if (surface == Surface::kChat || surface == Surface::kCompletions) {
      body += R"(,"stream_options":{"include_usage":true})";
    }
  }
  question.body = body + "}";
  return question;
}

void Callers::Run(FaultCall& call, const Question& question, const ApiKey& key, int64_t patience_ms,
                  int64_t reads) {
  call.surface = question.surface;
  call.streamed = question.streamed;
  call.workspace = key.workspace_id;
  HeaderList headers = key.headers();
  headers.emplace_back("X-Request-Id", question.tag);
  const int64_t begun_us = MonotonicUs();
  Answer answer;
  {
    HttpConnection connection(cluster_.port(), patience_ms > 0 ? patience_ms : kForeverMs);
    if (connection.SendRequest("POST", PathOf(question.surface), headers, question.body)) {
      answer = Read(connection, patience_ms, reads, call.longest_wait_us);
    } else {
      answer.error = connection.error();
    }
  }
  call.took_us = MonotonicUs() - begun_us;
  call.verdict = Judge(question, answer);
  if (!call.verdict.wrong.empty()) call.bytes = answer.bytes.substr(0, kShownBytes);
  if (call.verdict.end == Verdict::End::kWhole) ++whole_;
}

void Callers::Work(int64_t seed) {
  std::mt19937 random(static_cast<uint32_t>(seed));
  while (!stop_) {
    FaultCall& call = Next();
    const auto surface = static_cast<Surface>(Between(random, 0, kSurfaces - 1));
    const bool streamed = surface != Surface::kEmbeddings && Between(random, 0, 2) > 0;
    const Question question =
        Ask(random, surface, streamed, kModels[Between(random, 0, 3) / 3], call.tag);
    const int64_t leaves = Between(random, 0, 11);
    const int64_t patience_ms = leaves == 0 ? Between(random, 1, 400) : 0;
    const int64_t reads = leaves == 1 && streamed ? Between(random, 1, 10) : kNever;
    const ApiKey& key = customers_[random() % customers_.size()];
    Run(call, question, key, patience_ms, reads);
    // Refusals are immediate: no busy loop while all engines are down.
    if (call.verdict.end != Verdict::End::kWhole) SleepMs(20);
  }
}

void Callers::AskEverything() {
  std::mt19937 random(static_cast<uint32_t>(seed_));
  for (const char* model : kModels) {
    for (int surface = 0; surface < kSurfaces; ++surface) {
      for (const bool streamed : {false, true}) {
        const auto which = static_cast<Surface>(surface);
        if (streamed && which == Surface::kEmbeddings) continue;
        FaultCall& call = Next();
        threads_.emplace_back(
            [this, &call, question = Ask(random, which, streamed, model, call.tag)] {
              Run(call, question, customers_.front(), 0, kNever);
            });
      }
    }
  }
  Stop();
}

}  // namespace tollgate::test
