// A router never loses records of unpaid answers silently: a damaged outbox delivers the records
// that are intact, and a lost outbox is reported. With real processes (docs/design/ledger.md 6).
#include <gtest/gtest.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <future>
#include <iterator>
#include <memory>

#include "tests/support/cluster.h"
#include "tests/support/engine_sim.h"

namespace tollgate::test {
namespace {

constexpr int kAnswers = 5;
constexpr int kTokens = 60;
constexpr char kPath[] = "/v1/chat/completions";
constexpr char kRouter[] = "inference-router";
constexpr char kBody[] =
    R"({"model":"sim/model","messages":[{"role":"user","content":"hello there"}],"stream":true,)"
    R"("x_sim":{"token_ms":20,"tokens":60}})";
constexpr int64_t kUsd = 1'000'000'000;
constexpr int64_t kPromptNano = 1'000, kOutputNano = 3'000;  // per token

class EvidenceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(engine_.Start());
    ClusterOptions options;
    options.all_in_one = false;
    options.hold_ttl_seconds = 5;
    options.catalog = DefaultCatalog({engine_.base_url()});
    cluster_ = std::make_unique<Cluster>(options);
    ASSERT_EQ(cluster_->Start(), "");
    key_ = cluster_->NewCustomer(kUsd);
  }
  void TearDown() override {
    if (!cluster_) return;
    EXPECT_TRUE(cluster_->VerifyLedger().ok);
    EXPECT_EQ(cluster_->StopOrderly(), "");
    if (HasFailure()) std::fprintf(stderr, "%s\n", cluster_->Logs().c_str());
  }

  // Makes complete answers whose settlements are only in the outbox, then crashes the router.
  // Returns their total cost.
  int64_t AnswersWithoutLedger() {
    std::vector<std::future<SseStream>> streams;
    for (int i = 0; i < kAnswers; ++i) {
      streams.push_back(std::async(std::launch::async, [this] {
        return HttpStream(cluster_->port(), kPath, key_.headers(), kBody, 30'000);
      }));
    }
    EXPECT_TRUE(WaitUntil([&] { return engine_.running() == kAnswers; }, 5'000));
    cluster_->process("billing").Kill();
    int64_t cost = 0;
    for (auto& stream : streams) {
      const SseStream events = stream.get();
      EXPECT_TRUE(events.done());
      EXPECT_EQ(events.FinishReason(), "stop");
    }
    for (const SimRequest& request : engine_.requests()) {
      cost += request.prompt_tokens * kPromptNano + kTokens * kOutputNano;
    }
    cluster_->process(kRouter).Kill();
    return cost;
  }
  void RestartBoth() {
    // The first router is ready, but the cluster is not ready before the second one is.
    (void)cluster_->Restart(kRouter, 2'000);
    EXPECT_EQ(cluster_->Restart("billing", 20'000), "");
  }
  int64_t Spent() {
    EXPECT_TRUE(cluster_->WaitIdle(key_.workspace_id, 20'000));
    const auto balance = cluster_->Balance(key_.workspace_id);
    return balance ? kUsd - balance->posted : -1;
  }
  bool HasMetric(const std::string& line) {
    return Http(cluster_->admin_port(kRouter), "GET", "/metrics").body.find(line + "\n") !=
           std::string::npos;
  }
  std::string File(const std::string& name) const { return cluster_->dir() + "/router/" + name; }
  static std::string Read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string((std::istreambuf_iterator<char>(file)), {});
  }

  EngineSim engine_;
  std::unique_ptr<Cluster> cluster_;
  ApiKey key_;
};

TEST_F(EvidenceTest, ADamagedRecordCostsOneSettlementAndNotThoseBehindIt) {
  const int64_t cost = AnswersWithoutLedger();
  std::string outbox = Read(File("outbox"));
  size_t record = std::string::npos;
  for (int i = 0; i < 2; ++i) record = outbox.find("TOB1", record + 1);
  ASSERT_NE(record, std::string::npos);
  outbox[record + 40] = static_cast<char>(outbox[record + 40] ^ 1);
  std::ofstream(File("outbox"), std::ios::binary) << outbox;
  RestartBoth();
  EXPECT_TRUE(HasMetric("tollgate_router_settlements_quarantined_total{reason=\"corrupt\"} 1"));
  EXPECT_TRUE(HasMetric("tollgate_router_settlement_files_lost_total{file=\"outbox\"} 0"));
  EXPECT_NE(Read(File("outbox.quarantine")).find("\"reason\":\"corrupt\""), std::string::npos);
  const int64_t spent = Spent();
  EXPECT_GE(spent, cost / kAnswers * (kAnswers - 1)) << "the others are charged in full";
  EXPECT_LE(spent, cost);
}

TEST_F(EvidenceTest, AnEmptiedOutboxIsNoticed) {
  const int64_t cost = AnswersWithoutLedger();
  std::filesystem::resize_file(File("outbox"), 0);
  RestartBoth();
  EXPECT_TRUE(HasMetric("tollgate_router_settlement_files_lost_total{file=\"outbox\"} 1"));
  EXPECT_TRUE(HasMetric("tollgate_router_settlement_files_lost_total{file=\"journal\"} 0"));
  EXPECT_NE(cluster_->Logs().find("a settlement file of this router was lost"), std::string::npos);
  EXPECT_LT(Spent(), cost) << "only the last heartbeats are left";
}

TEST_F(EvidenceTest, AnUntouchedOutboxIsDeliveredInFullAndWithoutAWord) {
  const int64_t cost = AnswersWithoutLedger();
  RestartBoth();
  EXPECT_EQ(Spent(), cost);
  for (const char* file : {"outbox", "journal", "state"}) {
    EXPECT_TRUE(HasMetric("tollgate_router_settlement_files_lost_total{file=\"" +
                          std::string(file) + "\"} 0"))
        << file;
  }
}

}  // namespace
}  // namespace tollgate::test
