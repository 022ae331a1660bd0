// A small balance is usable without `max_tokens`, and is never overspent, whatever requests compete
// for its last cent (decisions 1 to 4).
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "tests/support/cluster.h"
#include "tests/support/engine_sim.h"

namespace tollgate::test {
namespace {

constexpr int kRequests = 200, kConcurrency = 16;
constexpr char kBody[] =
    R"({"model":"sim/model","messages":[{"role":"user","content":"hello there"}],)"
    R"("x_sim":{"token_ms":0.5,"tokens":100})";

struct Price {
  const char* name;
  const char* input;  // USD per million tokens
  const char* output;
};

class SmallBalanceTest : public ::testing::TestWithParam<Price> {
 protected:
  void SetUp() override {
    ASSERT_TRUE(engine_.Start());
    ClusterOptions options;
    options.catalog = DefaultCatalog({engine_.base_url()}, GetParam().input, GetParam().output);
    cluster_ = std::make_unique<Cluster>(options);
    ASSERT_EQ(cluster_->Start(), "");
  }
  void TearDown() override {
    if (!cluster_) return;
    EXPECT_EQ(cluster_->StopOrderly(), "");
    if (HasFailure()) std::fprintf(stderr, "%s\n", cluster_->Logs().c_str());
  }
  double BillingMetric(const std::string& name) {
    const std::string text = Http(cluster_->admin_port("allinone"), "GET", "/metrics", {}, "").body;
    const size_t at = text.find("\n" + name + " ");
    return at == std::string::npos ? -1 : std::stod(text.substr(at + name.size() + 2));
  }

  EngineSim engine_;
  std::unique_ptr<Cluster> cluster_;
};

TEST_P(SmallBalanceTest, ServesAtLeast95PercentOfWhatItIsWorthAndNotANanoMore) {
  const ApiKey rich = cluster_->NewCustomer(1'000'000'000'000);
  ASSERT_EQ(cluster_->Post(rich, "/v1/chat/completions", std::string(kBody) + "}").status, 200);
  ASSERT_TRUE(cluster_->WaitIdle(rich.workspace_id));
  const int64_t price = 1'000'000'000'000 - cluster_->Balance(rich.workspace_id)->available;
  ASSERT_GT(price, 0);

  const int64_t credit = kRequests * price;
  const ApiKey key = cluster_->NewCustomer(credit);
  std::atomic<int> served{0}, cut{0}, out_of_credit{0}, held{0}, other{0};
  std::vector<std::thread> callers;
  for (int i = 0; i < kConcurrency; ++i) {
    callers.emplace_back([&, streamed = i % 2 == 0] {
      // Runs until the ledger reports that the credit is used up; credit that is only held is a
      // temporary refusal.
      while (served < 2 * kRequests) {
        const std::string more = streamed ? R"(,"stream":true})" : "}";
        const SseStream answer = HttpStream(cluster_->port(), "/v1/chat/completions", key.headers(),
                                            kBody + more, 60'000);
        if (answer.head.status == 429) {
          ++held;
          SleepMs(20);
          continue;
        }
        if (answer.head.status == 402) {
          ++out_of_credit;
          return;
        }
        if (answer.head.status != 200) {
          ++other;
          ADD_FAILURE() << answer.head.status << answer.head.body << answer.head.error;
          return;
        }
        const std::string reason = streamed
                                       ? answer.FinishReason()
                                       : answer.head.json()["choices"][0]["finish_reason"].str();
        ++(reason == "stop" ? served : cut);
      }
    });
  }
  for (std::thread& caller : callers) caller.join();
  EXPECT_TRUE(cluster_->WaitIdle(key.workspace_id));
  std::fprintf(stderr, "%s: served %d, cut %d, 402 %d, 429 %d, price %lld\n", GetParam().name,
               served.load(), cut.load(), out_of_credit.load(), held.load(),
               static_cast<long long>(price));
  EXPECT_GE(served.load(), kRequests * 95 / 100);
  EXPECT_LE(served.load(), kRequests);
  const auto balance = cluster_->Balance(key.workspace_id);
  ASSERT_TRUE(balance);
  EXPECT_GE(balance->available, 0);
  EXPECT_LT(balance->available, price) << "the remaining credit does not cover another answer";
  EXPECT_EQ(balance->held, 0);
  EXPECT_EQ(BillingMetric("tollgate_billing_overrun_nano_usd_total"), 0);
  const LedgerCheck check = cluster_->VerifyLedger();
  EXPECT_TRUE(check.ok) << check.violations;
}

INSTANTIATE_TEST_SUITE_P(Prices, SmallBalanceTest,
                         ::testing::Values(Price{"cheap", "0.020001", "0.080003"},
                                           Price{"usual", "0.5", "2.2"}, Price{"dear", "15", "75"}),
                         [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace tollgate::test
