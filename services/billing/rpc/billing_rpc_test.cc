#include "services/billing/rpc/billing_rpc.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/service_type.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <future>

#include "common/rpc/error_status.h"
#include "services/billing/reports/transactions.h"
#include "tollgate/billing/v1/billing.grpc.pb.h"

namespace tollgate::billing {
namespace {

class BillingRpcTest : public ::testing::Test {
 protected:
  void SetUp() override {
    file_ = (std::filesystem::temp_directory_path() /
             ("tollgate-rpc-" + std::to_string(getpid()) + ".db"))
                .string();
    Remove();
    LedgerService::Options options;
    options.group_commit.call_timeout_ms = 60'000;  // the machine may be busy
    options.sql.url = "sqlite:" + file_;
    options.lease_above_per_second = 1;
    options.expiry_interval_ms = 5;
    ledger_ = std::make_unique<LedgerService>(options, SystemClock::Get());
    services_ = MakeRpcServices(*ledger_).services;
    grpc::ServerBuilder builder;
    for (const auto& service : services_) builder.RegisterService(service.get());
    server_ = builder.BuildAndStart();
    auto channel = server_->InProcessChannel({});
    billing_ = v1::BillingService::NewStub(channel);
    metering_ = v1::MeteringService::NewStub(channel);
  }
  void TearDown() override {
    server_->Shutdown();
    ledger_->Stop();
    Remove();
  }
  void Remove() {
    for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(file_ + suffix);
  }
  void Credit(int64_t nano_usd) {
    AddCredit credit;
    credit.workspace = "ws";
    credit.command_id = "credit";
    credit.amount_nano_usd = nano_usd;
    std::promise<bool> done;
    ledger_->Submit({OpenWallet{"ws"}, credit}, [&done](Result<std::vector<Reply>> replies) {
      done.set_value(replies.ok() && replies->back().ok);
    });
    ASSERT_TRUE(done.get_future().get());
  }
  int64_t Entries() {
    std::promise<int64_t> counted;
    ledger_->Read(
        [&](sql::Database& database) {
          auto rows = ReadTransactions(database, {.workspace = "ws"});
          counted.set_value(rows.ok() ? static_cast<int64_t>(rows->size()) : -1);
        },
        [&](Error) { counted.set_value(-1); });
    return counted.get_future().get();
  }
  static v1::AuthorizeRequest AuthorizeFor(const std::vector<Id>& ids) {
    v1::AuthorizeRequest request;
    for (const Id& id : ids) {
      v1::AuthorizeItem* item = request.add_items();
      item->set_request_id(id.ToBytes());
      item->set_workspace_id("ws");
      item->set_key_id("key");
      item->set_model("model");
      item->mutable_price()->set_input_pico_usd(1000);
      item->mutable_price()->set_output_pico_usd(2000);
      item->set_prompt_tokens_bound(100);
      item->set_output_tokens_bound(50);
    }
    return request;
  }

  uint64_t asked_ = 0;
  std::string file_;
  std::unique_ptr<LedgerService> ledger_;
  std::vector<std::unique_ptr<grpc::Service>> services_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<v1::BillingService::Stub> billing_;
  std::unique_ptr<v1::MeteringService::Stub> metering_;
};

TEST_F(BillingRpcTest, CallsBeforeStartAreUnavailable) {
  v1::AuthorizeResponse response;
  grpc::ClientContext context;
  const grpc::Status status = billing_->Authorize(&context, AuthorizeFor({Id::New()}), &response);
  EXPECT_EQ(rpc::FromStatus(status).id, ErrorId::kServiceUnavailable);
  v1::GetUsageResponse usage;
  grpc::ClientContext second;
  EXPECT_FALSE(billing_->GetUsage(&second, {}, &usage).ok());
}

TEST_F(BillingRpcTest, ACheckHoldsNothing) {
  ASSERT_TRUE(ledger_->Start().ok());
  Credit(300);
  v1::AuthorizeRequest check = AuthorizeFor({Id::New()});
  check.mutable_items(0)->set_check_only(true);
  v1::AuthorizeResponse checked;
  grpc::ClientContext context;
  ASSERT_TRUE(billing_->Authorize(&context, check, &checked).ok());
  EXPECT_TRUE(checked.results(0).granted());
  EXPECT_EQ(Entries(), 1) << "only the entry of the credit";
}

TEST_F(BillingRpcTest, ABusyWorkspaceLeasesCredit) {
  ASSERT_TRUE(ledger_->Start().ok());
  Credit(100'000);
  v1::TakeLeaseRequest take;
  take.set_workspace_id("ws");
  take.set_lessee("loop");
  take.set_wanted_nano_usd(5000);
  const auto ask = [&] {
    grpc::ClientContext context;
    v1::TakeLeaseResponse response;
    EXPECT_TRUE(metering_->TakeLease(&context, take, &response).ok());
    return response;
  };
  EXPECT_EQ(ask().denied_by(), v1::DENY_REASON_NO_LEASE);
  // Repeats until a reply says that the workspace is busy.
  for (int n = 1;; ++n) {
    ASSERT_LT(n, 10'000);
    const auto request = AuthorizeFor({Id::Make(ledger_->NowUs() / 1000, 0, n)});
    grpc::ClientContext context;
    v1::AuthorizeResponse response;
    ASSERT_TRUE(billing_->Authorize(&context, request, &response).ok());
    if (response.results(0).lease()) break;
  }
  const auto lease = ask();
  EXPECT_EQ(lease.denied_by(), v1::DENY_REASON_UNSPECIFIED);
  EXPECT_GT(lease.granted_nano_usd(), 0);
  EXPECT_GT(lease.valid_ms(), 0);
  EXPECT_NE(lease.month(), 0);

  v1::MeterRequest meter;
  v1::MeterOp& op = *meter.add_ops();
  const Id id = Id::Make(ledger_->NowUs() / 1000, 1, 1);
  op.set_request_id(id.ToBytes());
  op.set_workspace_id("ws");
  op.set_sequence(1);
  op.mutable_settle()->mutable_usage()->set_prompt_tokens(100);
  op.mutable_settle()->set_outcome(v1::OUTCOME_COMPLETED);
  v1::Admission& admission = *op.mutable_admission();
  *admission.mutable_item() = AuthorizeFor({id}).items(0);
  admission.set_lessee("loop");
  admission.set_month(lease.month());
  admission.set_authorized_nano_usd(150);
  for (int i = 0; i < 2; ++i) {
    grpc::ClientContext context;
    v1::MeterResponse response;
    ASSERT_TRUE(metering_->Meter(&context, meter, &response).ok());
    EXPECT_TRUE(response.results(0).ok()) << response.results(0).DebugString();
    EXPECT_EQ(response.results(0).charged_nano_usd(), 100);
  }
  take.set_month(lease.month());
  take.set_used_nano_usd(150);
  take.set_wanted_nano_usd(0);
  EXPECT_EQ(ask().granted_nano_usd(), 150);
}

TEST_F(BillingRpcTest, MissingCreditOfAWorkspaceThatIsReloadedSaysSo) {
  ASSERT_TRUE(ledger_->Start().ok());
  const auto ask = [&] {
    v1::AuthorizeResponse response;
    grpc::ClientContext context;
    const auto request = AuthorizeFor({Id::Make(ledger_->NowUs() / 1000, 0, ++asked_)});
    EXPECT_TRUE(billing_->Authorize(&context, request, &response).ok());
    return response.results(0);
  };
  EXPECT_FALSE(ask().reloading());
  ledger_->reloading().Set({"another", "ws"});
  EXPECT_EQ(ask().denied_by(), v1::DENY_REASON_NO_CREDIT);
  EXPECT_TRUE(ask().reloading());
  Credit(100'000);
  EXPECT_TRUE(ask().granted());
  EXPECT_FALSE(ask().reloading()) << "it has credit";
}

TEST_F(BillingRpcTest, FromAuthorizeToUsageReport) {
  ASSERT_TRUE(ledger_->Start().ok());
  Credit(300);
  const Id id = Id::New();
  const Id other = Id::New();
  v1::AuthorizeResponse holds;
  {
    grpc::ClientContext context;
    ASSERT_TRUE(billing_->Authorize(&context, AuthorizeFor({id, other, Id::New()}), &holds).ok());
  }
  ASSERT_EQ(holds.results_size(), 3);
  EXPECT_TRUE(holds.results(0).granted());
  EXPECT_EQ(holds.results(0).authorized_nano_usd(), 200);
  EXPECT_EQ(holds.results(0).slice_nano_usd(), 8192);
  EXPECT_FALSE(holds.results(1).granted());
  EXPECT_EQ(holds.results(1).denied_by(), v1::DENY_REASON_HELD);
  EXPECT_EQ(holds.results(1).retry_after_ms(), 1000);

  v1::MeterRequest meter;
  for (int i = 0; i < 4; ++i) {
    v1::MeterOp* op = meter.add_ops();
    op->set_request_id(i == 3 ? std::string("short") : id.ToBytes());
    op->set_workspace_id("ws");
    op->set_sequence(i + 1);
  }
  meter.mutable_ops(0)->mutable_extend()->set_authorized_total_nano_usd(400);
  meter.mutable_ops(1)->mutable_heartbeat()->mutable_usage()->set_prompt_tokens(100);
  v1::SettleOp* settle = meter.mutable_ops(2)->mutable_settle();
  settle->mutable_usage()->set_prompt_tokens(100);
  settle->mutable_usage()->set_cached_tokens(40);
  settle->mutable_usage()->set_completion_tokens(30);
  settle->set_outcome(v1::OUTCOME_COMPLETED);
  settle->set_engine_id("engine-1");
  v1::MeterResponse metered;
  {
    grpc::ClientContext context;
    ASSERT_TRUE(metering_->Meter(&context, meter, &metered).ok());
  }
  EXPECT_TRUE(metered.results(0).ok()) << "granted in part";
  EXPECT_EQ(metered.results(0).authorized_nano_usd(), 300);
  EXPECT_EQ(metered.results(0).denied_by(), v1::DENY_REASON_NO_CREDIT);
  EXPECT_TRUE(metered.results(1).ok());
  EXPECT_TRUE(metered.results(2).ok());
  EXPECT_EQ(metered.results(2).charged_nano_usd(), 160);
  EXPECT_EQ(metered.results(3).denied_by(), v1::DENY_REASON_INVALID);

  v1::VoidRequest void_request;
  void_request.add_items()->set_request_id(id.ToBytes());
  void_request.mutable_items(0)->set_workspace_id("ws");
  v1::VoidResponse voided;
  {
    grpc::ClientContext context;
    ASSERT_TRUE(billing_->Void(&context, void_request, &voided).ok());
  }
  EXPECT_EQ(voided.results(0).denied_by(), v1::DENY_REASON_CLOSED);

  v1::GetUsageRequest get_usage;
  get_usage.set_workspace_id("ws");
  get_usage.set_key_id("key");
  get_usage.set_end_us(INT64_MAX);
  v1::GetUsageResponse usage;
  {
    grpc::ClientContext context;
    ASSERT_TRUE(billing_->GetUsage(&context, get_usage, &usage).ok());
  }
  EXPECT_EQ(usage.total().requests(), 1);
  EXPECT_EQ(usage.total().usage().cached_tokens(), 40);
  EXPECT_EQ(usage.total().charged_nano_usd(), 160);
  ASSERT_EQ(usage.buckets_size(), 1);
  EXPECT_EQ(usage.balance().paid_nano_usd(), 140);
  EXPECT_EQ(usage.balance().held_nano_usd(), 0);

  const auto receipt = [&](const std::string& workspace, const std::string& text) {
    v1::GetReceiptRequest request;
    request.set_workspace_id(workspace);
    request.set_id(text);
    v1::GetReceiptResponse response;
    grpc::ClientContext context;
    const grpc::Status status = billing_->GetReceipt(&context, request, &response);
    EXPECT_EQ(status.ok(), workspace == "ws" || workspace == "other");
    return response;
  };
  for (const std::string& text : {id.ToHex(), "chatcmpl-" + id.ToBase62()}) {
    const v1::GetReceiptResponse found = receipt("ws", text);
    EXPECT_EQ(found.matches(), 1);
    EXPECT_EQ(found.receipt().request_id(), id.ToBytes());
    EXPECT_EQ(found.receipt().model(), "model");
    EXPECT_FALSE(found.receipt().open());
    EXPECT_EQ(found.receipt().outcome(), v1::OUTCOME_COMPLETED);
    EXPECT_EQ(found.receipt().charged_nano_usd(), 160);
    EXPECT_EQ(found.receipt().usage().cached_tokens(), 40);
    EXPECT_EQ(found.receipt().price().output_pico_usd(), 2000);
    EXPECT_GT(found.receipt().closed_us(), 0);
  }
  // Finds no receipts of other workspaces, and does not search all of them.
  EXPECT_FALSE(receipt("other", id.ToHex()).has_receipt());
  EXPECT_FALSE(receipt("-", id.ToHex()).has_receipt());
  EXPECT_FALSE(receipt("", id.ToHex()).has_receipt());
  EXPECT_FALSE(receipt("ws", "no-such-request").has_receipt());
}

}  // namespace
}  // namespace tollgate::billing
