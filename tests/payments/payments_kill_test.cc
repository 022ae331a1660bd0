// Every trigger of auto-reload makes one charge and one credit, with two billing processes that are
// killed in turn (docs/design/ledger.md 8).
#include <grpcpp/create_channel.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <random>
#include <thread>

#include "common/base/clock.h"
#include "services/billing/payments/payment_store.h"
#include "services/billing/payments/testing/scripted_stripe.h"
#include "services/billing/reports/reports.h"
#include "services/billing/storage/store.h"
#include "services/billing/storage/testing/ledger_schema.h"
#include "tests/support/postgres.h"
#include "tests/support/process.h"
#include "tollgate/admin/v1/ledger.grpc.pb.h"
#include "tollgate/admin/v1/payments.grpc.pb.h"

namespace tollgate::billing::payments {
namespace {

namespace av = admin::v1;
constexpr int kPerKill = 4;  // workspaces that begin to charge before each kill

int64_t Setting(const char* name, int64_t fallback) {
  const char* text = std::getenv(name);
  return text ? std::atoll(text) : fallback;
}

// Waits for at least a minute: a busy machine delays everything.
bool Eventually(int seconds, const std::function<bool()>& condition) {
  for (int i = 0; i < std::max(seconds, 60) * 20; ++i) {
    if (condition()) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
  }
  return false;
}

class PaymentsKillTest : public ::testing::Test {
 protected:
  void SetUp() override {
    auto* server = testing::TestPostgres::Shared();
    if (!server) {
      ASSERT_FALSE(testing::TestPostgres::Required());
      GTEST_SKIP() << "PostgreSQL is not installed";
    }
    url_ = server->MakeDatabase("payments_kill");
    database_ = *sql::Database::Open({.url = url_});
    store_ = std::make_unique<PaymentStore>(*database_);
    ASSERT_TRUE(store_->Migrate().ok() && MigrateLedger(*database_).ok());
    DistributeForTests(*database_);
    stripe_.SetNow(SystemClock::Get().WallUs() / 1'000'000);
    std::ofstream(folder_.path() + "/key") << "sk_test_scripted\n";
    for (int i = 0; i < 2; ++i) StartProcess(i);
  }
  void StartProcess(int i) {
    const std::string name = folder_.path() + "/b" + std::to_string(i);
    std::ofstream(name + ".yaml") << "host: {admin_grpc_listen: \"unix:" << name
                                  << ".sock\", ops_listen: \"127.0.0.1:0\"}\n"
                                  << "billing:\n  sql: {url: \"" << url_ << "\"}\n"
                                  << "  payments: {provider: stripe, stripe_secret_key_file: \""
                                  << folder_.path() << "/key\", stripe_base_url: \""
                                  << stripe_.options().base_url
                                  << "\", success_url: \"https://example.test/\","
                                  << " provider_timeout_seconds: 2, reload_sweep_seconds: 1}\n";
    processes_[i] = std::make_unique<test::Process>(
        "billing",
        std::vector<std::string>{std::string(std::getenv("TOLLGATE_BIN")) + "/tollgate-billing",
                                 "--config", name + ".yaml"},
        name + ".log");
    ASSERT_TRUE(processes_[i]->Start());
  }
  std::shared_ptr<grpc::Channel> Channel(int i) {
    return grpc::CreateChannel("unix:" + folder_.path() + "/b" + std::to_string(i) + ".sock",
                               grpc::InsecureChannelCredentials());
  }
  std::unique_ptr<av::PaymentService::Stub> Stub(int i) {
    return av::PaymentService::NewStub(Channel(i));
  }
  // Calls both processes until one has done or refused it: any replica serves any workspace.
  grpc::Status Call(
      const std::function<grpc::Status(av::PaymentService::Stub&, grpc::ClientContext&)>& call) {
    grpc::Status status;
    (void)Eventually(20, [&] {
      for (int i = 0; i < 2; ++i) {
        grpc::ClientContext context;
        context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
        status = call(*Stub(i), context);
        const bool lost = status.error_code() == grpc::StatusCode::UNAVAILABLE ||
                          status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED ||
                          status.error_code() == grpc::StatusCode::CANCELLED;
        if (!lost) return true;
      }
      return false;
    });
    return status;
  }
  void Enable(const std::string& workspace) {
    ASSERT_TRUE(store_
                    ->Run(workspace, 1,
                          [&](WorkspaceTx& tx) -> sql::SqlResult<void> {
                            if (auto put = tx.PutCustomer("stripe", "cus_" + workspace);
                                !put.ok()) {
                              return put;
                            }
                            return tx.Put(PaymentMethod{workspace, "pm_" + workspace, "stripe",
                                                        "visa", "4242", "2029-04", 1});
                          })
                    .ok());
    // A workspace without a wallet is not charged.
    EXPECT_TRUE(Eventually(20, [&, i = 0]() mutable {
      const auto stub = av::LedgerService::NewStub(Channel(i++ % 2));
      grpc::ClientContext context;
      context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(10));
      av::OpenWalletRequest open;
      open.set_name("workspaces/" + workspace + "/balance");
      av::Balance balance;
      return stub->OpenWallet(&context, open, &balance).ok();
    })) << workspace;
    av::UpdateAutoReloadRequest request;
    request.mutable_auto_reload()->set_name("workspaces/" + workspace + "/autoReload");
    request.mutable_auto_reload()->set_enabled(true);
    request.mutable_auto_reload()->set_threshold_usd("5");
    request.mutable_auto_reload()->set_amount_usd("10");
    request.mutable_auto_reload()->set_monthly_ceiling_usd("100");
    request.set_request_id("on-" + workspace);
    const grpc::Status set =
        Call([&](av::PaymentService::Stub& stub, grpc::ClientContext& context) {
          av::AutoReload reload;
          return stub.UpdateAutoReload(&context, request, &reload);
        });
    ASSERT_TRUE(set.ok()) << workspace << ": " << set.error_message();
  }
  bool Charged(const std::string& workspace) {
    auto reload = store_->FindReload(workspace);
    return reload.ok() && *reload && (*reload)->state == ReloadState::kIdle &&
           !(*reload)->reload_id.empty();
  }

  test::TempDir folder_;
  std::string url_;
  ScriptedStripe stripe_;
  std::unique_ptr<sql::Database> database_;
  std::unique_ptr<PaymentStore> store_;
  std::unique_ptr<test::Process> processes_[2];
};

TEST_F(PaymentsKillTest, EveryTriggerMakesOneChargeAndOneCredit) {
  const auto kills = Setting("TOLLGATE_PAYMENT_KILLS", 12);
  std::mt19937_64 random(static_cast<uint64_t>(Setting("TOLLGATE_PAYMENT_SEED", 1)));
  stripe_.SetFaults({.lost_before = 50, .lost_after = 100, .error_after = 50});
  std::vector<std::string> workspaces;
  for (int64_t kill = 0; kill < kills; ++kill) {
    for (int i = 0; i < kPerKill; ++i) {
      workspaces.push_back("w" + std::to_string(workspaces.size()));
      ASSERT_NO_FATAL_FAILURE(Enable(workspaces.back()));
    }
    // The kill comes at a random moment.
    std::this_thread::sleep_for(std::chrono::microseconds(random() % 100'000));
    const int victim = static_cast<int>(random() % 2);
    processes_[victim]->Kill();
    StartProcess(victim);
  }
  stripe_.SetFaults({});
  for (const std::string& workspace : workspaces) {
    EXPECT_TRUE(Eventually(90, [&] { return Charged(workspace); })) << workspace;
  }
  std::map<std::string, int> charges;
  for (const ScriptedStripe::Intent& intent : stripe_.intents()) ++charges[intent.workspace];
  for (const std::string& workspace : workspaces) {
    EXPECT_EQ(charges[workspace], 1) << workspace;
    auto entries = ReadEntries(*database_, workspace, 100, 0);
    ASSERT_TRUE(entries.ok());
    int topups = 0;
    for (const Entry& entry : *entries) topups += entry.kind == EntryKind::kTopup;
    EXPECT_EQ(topups, 1) << workspace;
    EXPECT_EQ(CheckEvents(*store_->Events(workspace)), "") << workspace;
  }
  for (auto& process : processes_) EXPECT_EQ(process->Crash(), "");
}

}  // namespace
}  // namespace tollgate::billing::payments
