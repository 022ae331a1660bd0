// Callers leave, in every stage of a request, by FIN and by RST. Every counter of work returns to
// zero, no engine generates for a caller that left, no hold stays open, and the next caller is
// answered. See docs/design/failures.md and decisions 22 and 25.
//
// TOLLGATE_ABORTS sets how many leave (600 when not set).
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <deque>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/chaos/load.h"
#include "tests/support/cluster.h"
#include "tests/support/engine_sim.h"
#include "tests/support/metrics.h"

namespace tollgate::test {
namespace {

constexpr int kEngines = 2;
constexpr int kPlaces = 10;  // of each engine: fewer than the open requests of all callers
constexpr int kCallers = 12;
constexpr size_t kOpen = 3;  // requests of one caller, besides the one that it reads
constexpr int kCustomers = 4;
constexpr int64_t kCredit = 1'000'000'000'000'000;
constexpr int64_t kIdleMs = 30'000;
constexpr double kMoreFiles = 100;  // connections that are kept
// Upper bound of the growth of caches: a leaked request keeps more than a KiB.
constexpr double kMoreMiB = 256;

struct Form {
  const char* path;
  const char* body;  // without the closing brace
};
// An answer of ten seconds, so that no caller sees its end.
#define SCRIPT R"("x_sim":{"tokens":2500,"reasoning_tokens":3,"token_ms":4})"
constexpr Form kForms[] = {
    {"/v1/chat/completions",
     R"({"model":"sim/model","messages":[{"role":"user","content":"hello there"}],)" SCRIPT},
    {"/v1/messages",
     R"({"model":"sim/model","max_tokens":3000,"messages":[{"role":"user","content":"hello"}],)" SCRIPT},
    {"/v1/responses", R"({"model":"sim/model","input":"hello there",)" SCRIPT},
    {"/v1/completions", R"({"model":"sim/text","prompt":"hello there","max_tokens":3000,)"
                        R"("x_sim":{"tokens":2500,"token_ms":4})"},
};
#undef SCRIPT

enum Stage { kInBody, kUnseen, kUnseenWhole, kAfterHead, kAfterEvents, kStages };

class AbortsTest : public ::testing::TestWithParam<const char*> {
 protected:
  bool AllInOne() const { return GetParam() == std::string("allinone"); }

  void SetUp() override {
    std::vector<std::string> urls;
    EngineSimOptions sim;
    sim.keep_requests = false;
    for (int i = 0; i < kEngines; ++i) {
      engines_.push_back(std::make_unique<EngineSim>(sim));
      ASSERT_TRUE(engines_.back()->Start());
      urls.push_back(engines_.back()->base_url());
    }
    ClusterOptions options;
    options.all_in_one = AllInOne();
    options.log_level = "warn";
    options.router_settings = {"queue_seconds: 1"};
    options.catalog = DefaultCatalog(urls, "1", "3", kPlaces);
    cluster_ = std::make_unique<Cluster>(options);
    ASSERT_EQ(cluster_->Start(), "");
    // With limits, far above what runs, so that every request has a slot. Without a limit on
    // requests, a key would be refused after a number of abandoned ones.
    KeyOptions key;
    key.limits = {.requests_per_minute = 100'000'000, .concurrent_requests = 1'000};
    for (int i = 0; i < kCustomers; ++i) customers_.push_back(cluster_->NewCustomer(kCredit, key));
  }
  void TearDown() override {
    if (!cluster_) return;
    EXPECT_EQ(cluster_->StopOrderly(), "");
    if (HasFailure()) std::fprintf(stderr, "%s\n", cluster_->Logs().c_str());
  }

  // Sends a request; in Stage kBody only half of its body.
  std::unique_ptr<HttpConnection> Ask(std::mt19937& random, Stage stage) {
    const Form& form = kForms[random() % std::size(kForms)];
    const ApiKey& key = customers_[random() % customers_.size()];
    const bool streamed = stage != kUnseenWhole && (stage > kUnseen || random() % 2 == 0);
    const std::string body = std::string(form.body) + (streamed ? R"(,"stream":true})" : "}");
    auto connection = std::make_unique<HttpConnection>(cluster_->port());
    bool sent = false;
    if (stage == kInBody) {
      std::string bytes = std::string("POST ") + form.path + " HTTP/1.1\r\nHost: a\r\n";
      for (const auto& [name, value] : key.headers()) bytes.append(name + ": " + value + "\r\n");
      bytes += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n";
      sent = connection->Send(bytes + body.substr(0, body.size() / 2));
    } else {
      sent = connection->SendRequest("POST", form.path, key.headers(), body);
    }
    if (!sent) ++unsent_;
    return connection;
  }
  void Leave(std::mt19937& random, HttpConnection& connection, Stage stage) {
    connection.Close(random() % 2 == 0);
    ++left_[stage];
  }

  // Waits for the head, and for some events.
  void Read(std::mt19937& random, HttpConnection& connection, Stage stage) {
    const HttpResponse head = connection.ReadHead();
    if (head.status != 200) {
      ++refused_;
      EXPECT_TRUE(head.status == 429 || head.status == 503) << head.status << " " << head.error;
    } else if (stage == kAfterEvents) {
      for (auto events = 1 + random() % 4; events > 0; --events) {
        EXPECT_TRUE(connection.NextEvent()) << connection.error();
      }
    }
  }
  // When some more requests have been sent, unread ones are left, whatever their stage.
  void Work(int seed) {
    std::mt19937 random(static_cast<uint32_t>(seed));
    std::deque<std::pair<Stage, std::unique_ptr<HttpConnection>>> open;
    const auto leave_first = [&] {
      Leave(random, *open.front().second, open.front().first);
      open.pop_front();
    };
    while (rest_.fetch_sub(1) > 0) {
      const auto stage = static_cast<Stage>(random() % kStages);
      auto connection = Ask(random, stage);
      if (stage >= kAfterHead) {
        Read(random, *connection, stage);
        Leave(random, *connection, stage);
      } else {
        open.emplace_back(stage, std::move(connection));
        if (open.size() > random() % kOpen) leave_first();
      }
    }
    while (!open.empty()) leave_first();
  }
  double MiB() {
    return SumOfMetric(*cluster_, "process_resident_memory_bytes").value_or(0) / 1048576;
  }
  int64_t Running() const {
    int64_t running = 0;
    for (const auto& engine : engines_) running += engine->running();
    return running;
  }
  // Returns true when each customer gets a whole answer.
  bool AnswersEveryone() {
    const std::string body =
        R"({"model":"sim/model","messages":[{"role":"user","content":"hello"}],"x_sim":{"tokens":3}})";
    bool all = true;
    for (const ApiKey& key : customers_) {
      all = cluster_->Post(key, "/v1/chat/completions", body).status == 200 && all;
    }
    return all;
  }
  void Abort(int64_t times) {
    rest_ = times;
    std::vector<std::thread> callers;
    for (int i = 0; i < kCallers; ++i) callers.emplace_back([this, i] { Work(i); });
    for (std::thread& caller : callers) caller.join();
  }
  void ExpectNoWork() {
    EXPECT_EQ(WaitWithoutWork(*cluster_, kIdleMs), "");
    EXPECT_TRUE(WaitUntil([&] { return Running() == 0; }, kIdleMs, 20))
        << "an engine generates for a caller that left";
    for (const ApiKey& key : customers_) {
      EXPECT_TRUE(cluster_->WaitIdle(key.workspace_id, kIdleMs));
      const auto balance = cluster_->Balance(key.workspace_id);
      EXPECT_TRUE(balance && balance->held == 0 && balance->month_held == 0);
    }
  }

  const int64_t aborts_ = FromEnvironment("TOLLGATE_ABORTS", 600);
  std::vector<std::unique_ptr<EngineSim>> engines_;
  std::unique_ptr<Cluster> cluster_;
  std::vector<ApiKey> customers_;
  std::atomic<int64_t> rest_{0};
  std::array<std::atomic<int64_t>, kStages> left_{};
  std::atomic<int64_t> refused_{0};  // readers that were refused because all slots were taken
  std::atomic<int64_t> unsent_{0};
};

INSTANTIATE_TEST_SUITE_P(Systems, AbortsTest, ::testing::Values("allinone", "tcp"),
                         [](const auto& info) { return info.param; });

TEST_P(AbortsTest, EveryCounterReturnsToZero) {
  const int64_t first = aborts_ / 10;
  ASSERT_TRUE(AnswersEveryone());
  Abort(first);  // the caches are full afterwards
  ExpectNoWork();
  const double files = SumOfMetric(*cluster_, "process_open_fds").value_or(0);
  const double before = MiB();
  const int64_t begun_us = MonotonicUs();
  Abort(aborts_ - first);
  const double seconds = static_cast<double>(MonotonicUs() - begun_us) / 1e6;
  ExpectNoWork();
  const double after = MiB();
  EXPECT_LT(after, before + kMoreMiB);
  EXPECT_LE(SumOfMetric(*cluster_, "process_open_fds").value_or(0), files + kMoreFiles)
      << "connections are not closed";
  EXPECT_EQ(unsent_, 0);

  int64_t asked = 0, aborted = 0;
  for (const auto& engine : engines_) {
    asked += engine->totals().requests;
    aborted += engine->totals().aborted;
  }
  for (const std::atomic<int64_t>& stage : left_) EXPECT_GT(stage, 0);
  EXPECT_GT(aborted, aborts_ / 5) << "the run did not contain the case";
  EXPECT_LT(refused_, aborts_ / 20) << "the run did not contain the case";
  EXPECT_EQ(asked - aborted, kCustomers) << "requests whose client stayed";
  const double queued = SumOfMetric(*cluster_, "tollgate_router_queued_requests_total").value_or(0);
  EXPECT_GT(queued, 0) << "the run did not contain the case";
  int64_t spent = 0;
  for (const ApiKey& key : customers_) {
    const auto balance = cluster_->Balance(key.workspace_id);
    ASSERT_TRUE(balance);
    spent += kCredit - balance->posted;
  }
  EXPECT_GT(spent, 0);
  const LedgerCheck check = cluster_->VerifyLedger();
  EXPECT_TRUE(check.ok) << check.violations;
  EXPECT_TRUE(AnswersEveryone());
  std::printf(
      "ABORTS | %s | %lld | %lld, %lld, %lld, %lld, %lld | %lld | %lld | %.0f | %.0f | %.0f, %.0f "
      "| %lld |\n",
      AllInOne() ? "all-in-one" : "cluster", static_cast<long long>(aborts_),
      static_cast<long long>(left_[kInBody]), static_cast<long long>(left_[kUnseen]),
      static_cast<long long>(left_[kUnseenWhole]), static_cast<long long>(left_[kAfterHead]),
      static_cast<long long>(left_[kAfterEvents]), static_cast<long long>(asked),
      static_cast<long long>(refused_), queued, static_cast<double>(aborts_ - first) / seconds,
      before, after, static_cast<long long>(check.entries));
}

}  // namespace
}  // namespace tollgate::test
