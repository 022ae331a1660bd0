// Races for the last cent: 64 clients and two billing processes on one PostgreSQL, at the end of a
// balance, of a month cap and of a key's quota. In every order, the customer is charged exactly
// what was acknowledged, and never more than the limit. TOLLGATE_RACES: number of races (./dev
// prove races: 10,000).
#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <barrier>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <random>
#include <thread>
#include <vector>

#include "common/base/clock.h"
#include "services/billing/reports/reports.h"
#include "services/billing/storage/store.h"
#include "services/billing/storage/testing/ledger_schema.h"
#include "services/billing/verify/verify.h"
#include "tests/support/postgres.h"
#include "tests/support/process.h"
#include "tollgate/billing/v1/billing.grpc.pb.h"

namespace tollgate::billing {
namespace {

constexpr int kClients = 64;
constexpr int kReplicas = 2;
constexpr int64_t kCent = kNanoPerUsd / 100;
// Far above what all clients of one race may spend.
constexpr int64_t kPlenty = 100 * kNanoPerUsd;

int64_t Setting(const char* name, int64_t fallback) {
  const char* text = std::getenv(name);
  return text ? std::atoll(text) : fallback;
}

// The limit that ends in a race. The other two are ample or absent.
enum class End { kBalance, kCap, kQuota };

struct Race {
  std::string workspace;
  End end = End::kBalance;
  int64_t limit_nano_usd = 0;
  std::atomic<int64_t> charged_nano_usd = 0;  // as acknowledged
  std::atomic<int> settled = 0;
  std::atomic<int> refused = 0;
};

class LedgerRacesTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto* server = testing::TestPostgres::Shared();
    if (!server) {
      ASSERT_FALSE(testing::TestPostgres::Required());
      GTEST_SKIP() << "PostgreSQL is not installed";
    }
    url_ = server->MakeDatabase("ledger_races");
    database_ = *sql::Database::Open({.url = url_});
    ASSERT_TRUE(MigrateLedger(*database_).ok());
    DistributeForTests(*database_);
    for (int i = 0; i < kReplicas; ++i) StartReplica(i);
  }

  void StartReplica(int i) {
    const std::string name = folder_.path() + "/b" + std::to_string(i);
    std::ofstream(name + ".yaml") << "host: {grpc_listen: \"unix:" << name
                                  << ".sock\", ops_listen: \"127.0.0.1:0\"}\n"
                                  << "billing:\n  sql: {url: \"" << url_ << "\"}\n";
    replicas_[i] = std::make_unique<test::Process>(
        "billing",
        std::vector<std::string>{std::string(std::getenv("TOLLGATE_BIN")) + "/tollgate-billing",
                                 "--config", name + ".yaml"},
        name + ".log");
    ASSERT_TRUE(replicas_[i]->Start());
    channels_[i] =
        grpc::CreateChannel("unix:" + name + ".sock", grpc::InsecureChannelCredentials());
    ASSERT_TRUE(channels_[i]->WaitForConnected(std::chrono::system_clock::now() +
                                               std::chrono::seconds(30)));
  }

  // Opens the wallets with their credit and caps.
  void Prepare(std::vector<Race>& races, std::mt19937_64& random) {
    auto connection = *database_->Connect();
    std::vector<Operation> operations;
    const auto run = [&] {
      auto applied = RunBatch(*connection, operations, SystemClock::Get().WallUs(), Policy());
      ASSERT_TRUE(applied.ok()) << applied.error().message;
      for (const Reply& reply : applied->replies) ASSERT_TRUE(reply.ok);
      operations.clear();
    };
    for (size_t i = 0; i < races.size(); ++i) {
      Race& race = races[i];
      race.workspace = "race-" + std::to_string(i);
      race.end = static_cast<End>(i % 3);
      // A cent and some nano-USD, so that no multiple of a price fits.
      race.limit_nano_usd = kCent + static_cast<int64_t>(random() % 1'000'000);
      AddCredit credit;
      credit.workspace = race.workspace;
      credit.command_id = "credit";
      credit.amount_nano_usd = race.end == End::kBalance ? race.limit_nano_usd : kPlenty;
      credit.granted = i % 2 == 0;
      credit.actor = "test";
      operations.push_back(credit);
      if (race.end == End::kCap) {
        operations.push_back(SetCap{race.workspace, "cap", race.limit_nano_usd, "test"});
      }
      if (operations.size() >= 500) run();
    }
    if (!operations.empty()) run();
  }

  // Calls one replica after the other, under the same id, until there is a response.
  template <typename Request, typename Response, typename Call>
  Response Ask(const Request& request, int replica, Call call) {
    for (int attempt = 0; attempt < 100; ++attempt) {
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
      Response response;
      const grpc::Status status =
          call(channels_[(replica + attempt) % kReplicas], context, request, response);
      const bool answered = status.ok() && response.results_size() == 1 &&
                            response.results(0).denied_by() != v1::DENY_REASON_UNAVAILABLE;
      if (answered) return response;
    }
    ADD_FAILURE() << "no replica answers";
    Response none;
    none.add_results();
    return none;
  }

  // One client's part in a race: a request that may cost more than it has reserved.
  void Request(Race& race, uint64_t number, std::mt19937_64& random) {
    const int64_t prompt = 200 + static_cast<int64_t>(random() % 2000);
    const int64_t output = 100 + static_cast<int64_t>(random() % 900);
    v1::AuthorizeRequest ask;
    auto& item = *ask.add_items();
    const Id id = Id::Make(SystemClock::Get().WallUs() / 1000, 0, number);
    item.set_request_id(id.ToBytes());
    item.set_workspace_id(race.workspace);
    item.set_key_id("key");
    item.set_model("demo/model");
    item.mutable_price()->set_input_pico_usd(1'000'003);
    item.mutable_price()->set_output_pico_usd(3'000'001);
    item.mutable_price()->set_version(1);
    item.set_prompt_tokens_bound(prompt);
    item.set_output_tokens_bound(output);
    if (race.end == End::kQuota) item.set_key_quota_nano_usd(race.limit_nano_usd);
    const int replica = static_cast<int>(random() % kReplicas);
    const auto held = Ask<v1::AuthorizeRequest, v1::AuthorizeResponse>(
        ask, replica, [](auto& channel, auto& context, const auto& request, auto& response) {
          return v1::BillingService::NewStub(channel)->Authorize(&context, request, &response);
        });
    if (!held.results(0).granted()) {
      ++race.refused;
      return;
    }
    v1::MeterRequest meter;
    auto& op = *meter.add_ops();
    op.set_request_id(id.ToBytes());
    op.set_workspace_id(race.workspace);
    op.set_sequence(1);
    auto& settle = *op.mutable_settle();
    settle.mutable_usage()->set_prompt_tokens(prompt);
    // Up to twice the requested amount: cost that no credit covers is the operator's.
    settle.mutable_usage()->set_completion_tokens(static_cast<int64_t>(random() % (2 * output)));
    settle.set_outcome(v1::OUTCOME_COMPLETED);
    settle.set_engine_id("engine");
    const int other = static_cast<int>(random() % kReplicas);
    const auto settled = Ask<v1::MeterRequest, v1::MeterResponse>(
        meter, other, [](auto& channel, auto& context, const auto& request, auto& response) {
          return v1::MeteringService::NewStub(channel)->Meter(&context, request, &response);
        });
    EXPECT_TRUE(settled.results(0).ok());
    race.charged_nano_usd += settled.results(0).charged_nano_usd();
    ++race.settled;
  }

  // The ledger agrees with what the clients were told.
  void Check(const Race& race) {
    auto balance = ReadBalance(*database_, race.workspace, SystemClock::Get().WallUs());
    ASSERT_TRUE(balance.ok()) << balance.error().message;
    const int64_t credit = race.end == End::kBalance ? race.limit_nano_usd : kPlenty;
    const int64_t left = balance->paid_nano_usd + balance->granted_nano_usd;
    const int64_t charged = race.charged_nano_usd;
    EXPECT_EQ(left, credit - charged) << race.workspace;
    EXPECT_GE(left, 0) << race.workspace;
    EXPECT_LE(charged, race.limit_nano_usd) << race.workspace << ": over the limit";
    EXPECT_EQ(balance->held_nano_usd, 0) << race.workspace;
    EXPECT_EQ(balance->open_holds, 0) << race.workspace;
    EXPECT_EQ(balance->month_spent_nano_usd, charged) << race.workspace;
    EXPECT_GT(race.settled, 0) << race.workspace;
    EXPECT_GT(race.refused, 0) << race.workspace << ": no client met the limit";
  }

  test::TempDir folder_;
  std::string url_;
  std::unique_ptr<sql::Database> database_;
  std::array<std::unique_ptr<test::Process>, kReplicas> replicas_;
  std::array<std::shared_ptr<grpc::Channel>, kReplicas> channels_;
};

TEST_F(LedgerRacesTest, NobodyPaysMoreThanThereIs) {
  const int64_t count = Setting("TOLLGATE_RACES", 60);
  const auto seed = static_cast<uint64_t>(Setting("TOLLGATE_RACES_SEED", 1));
  std::vector<Race> races(static_cast<size_t>(count));
  std::mt19937_64 random(seed);
  Prepare(races, random);
  const auto begin = std::chrono::steady_clock::now();
  std::barrier start(kClients);
  std::vector<std::thread> clients;
  for (int client = 0; client < kClients; ++client) {
    clients.emplace_back([&, client] {
      std::mt19937_64 own(seed * 1000 + static_cast<uint64_t>(client));
      for (size_t i = 0; i < races.size(); ++i) {
        start.arrive_and_wait();
        Request(races[i], i * kClients + static_cast<uint64_t>(client), own);
      }
    });
  }
  for (std::thread& client : clients) client.join();
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  int64_t settled = 0, refused = 0, exhausted = 0;
  for (const Race& race : races) {
    Check(race);
    settled += race.settled;
    refused += race.refused;
    exhausted += race.charged_nano_usd == race.limit_nano_usd;
  }
  auto report = VerifyLedger(*database_);
  ASSERT_TRUE(report.ok()) << report.error().message;
  EXPECT_TRUE(report->ok()) << report->violations.front();
  EXPECT_EQ(report->usage_records, settled);
  if (!HasFailure()) {
    std::printf(
        "LEDGER_RACES races=%lld charged=%lld refused=%lld exhausted=%lld seconds=%.0f"
        " seed=%llu\n",
        static_cast<long long>(count), static_cast<long long>(settled),
        static_cast<long long>(refused), static_cast<long long>(exhausted), took.count(),
        static_cast<unsigned long long>(seed));
  }
}

}  // namespace
}  // namespace tollgate::billing
