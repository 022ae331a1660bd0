#include "services/billing/rpc/billing_rpc.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/service_type.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <future>

#include "common/observability/metrics.h"
#include "common/rpc/error_status.h"
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
    options.sql.url = "sqlite:" + file_;
    ledger_ = std::make_unique<LedgerService>(options, SystemClock::Get());
    services_ = MakeRpcServices(*ledger_);
    for (auto& service : MakeAdminServices(*ledger_)) services_.push_back(std::move(service));
    grpc::ServerBuilder builder;
    for (const auto& service : services_) builder.RegisterService(service.get());
    server_ = builder.BuildAndStart();
    auto channel = server_->InProcessChannel({});
    billing_ = v1::BillingService::NewStub(channel);
    metering_ = v1::MeteringService::NewStub(channel);
    admin_ = v1::BillingAdminService::NewStub(channel);
  }
  void TearDown() override {
    server_->Shutdown();
    ledger_->Stop();
    Remove();
  }
  void Remove() {
    for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(file_ + suffix);
  }
  v1::Balance Credit(int64_t amount) {
    std::promise<bool> opened;
    ledger_->Submit({OpenWallet{"ws"}}, [&opened](Result<std::vector<Reply>> replies) {
      opened.set_value(replies.ok());
    });
    EXPECT_TRUE(opened.get_future().get());
    v1::AddCreditRequest request;
    request.set_request_id("credit");
    request.set_workspace_id("ws");
    request.set_amount_nano_usd(amount);
    request.set_actor("tester");
    v1::AddCreditResponse response;
    grpc::ClientContext context;
    const grpc::Status status = admin_->AddCredit(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response.balance();
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

  std::string file_;
  std::unique_ptr<LedgerService> ledger_;
  std::vector<std::unique_ptr<grpc::Service>> services_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<v1::BillingService::Stub> billing_;
  std::unique_ptr<v1::MeteringService::Stub> metering_;
  std::unique_ptr<v1::BillingAdminService::Stub> admin_;
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

TEST_F(BillingRpcTest, CreditForAWorkspaceWithoutAWalletIsNotFound) {
  ASSERT_TRUE(ledger_->Start().ok());
  v1::AddCreditRequest request;
  request.set_request_id("credit");
  request.set_workspace_id("typo");
  request.set_amount_nano_usd(1);
  v1::AddCreditResponse response;
  grpc::ClientContext context;
  const Error error = rpc::FromStatus(admin_->AddCredit(&context, request, &response));
  EXPECT_EQ(error.id, ErrorId::kNotFound);
  EXPECT_EQ(error.param, "workspace_id");
}

TEST_F(BillingRpcTest, ACheckHoldsNothingAndARepairOfARightClockWritesNothing) {
  ASSERT_TRUE(ledger_->Start().ok());
  Credit(300);
  v1::AuthorizeRequest check = AuthorizeFor({Id::New()});
  check.mutable_items(0)->set_check_only(true);
  v1::AuthorizeResponse checked;
  grpc::ClientContext context;
  ASSERT_TRUE(billing_->Authorize(&context, check, &checked).ok());
  EXPECT_TRUE(checked.results(0).granted());
  v1::RepairClockRequest repair;
  repair.set_workspace_id("ws");
  repair.set_request_id("repair");
  v1::RepairClockResponse repaired;
  grpc::ClientContext second;
  ASSERT_TRUE(admin_->RepairClock(&second, repair, &repaired).ok());
  EXPECT_EQ(repaired.moved_back_us(), 0);
  v1::ListEntriesRequest list;
  list.set_workspace_id("ws");
  v1::ListEntriesResponse entries;
  grpc::ClientContext third;
  ASSERT_TRUE(admin_->ListEntries(&third, list, &entries).ok());
  EXPECT_EQ(entries.entries_size(), 1) << "the credit only";
}

TEST_F(BillingRpcTest, FromAuthorizeToUsageReport) {
  ASSERT_TRUE(ledger_->Start().ok());
  EXPECT_EQ(Credit(300).available_nano_usd(), 300);
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
}

TEST_F(BillingRpcTest, AdminCalls) {
  ASSERT_TRUE(ledger_->Start().ok());
  Credit(1000);
  EXPECT_EQ(Credit(1000).paid_nano_usd(), 1000) << "the same command counts once";
  v1::SetCapRequest cap;
  cap.set_request_id("cap");
  cap.set_workspace_id("ws");
  cap.set_cap_nano_usd(700);
  v1::SetCapResponse capped;
  {
    grpc::ClientContext context;
    ASSERT_TRUE(admin_->SetCap(&context, cap, &capped).ok());
  }
  EXPECT_EQ(capped.balance().cap_nano_usd(), 700);
  cap.set_cap_nano_usd(800);
  {
    grpc::ClientContext context;
    const Error error = rpc::FromStatus(admin_->SetCap(&context, cap, &capped));
    EXPECT_EQ(error.id, ErrorId::kBadRequest);
    EXPECT_EQ(error.param, "request_id");
  }
  v1::GetBalanceRequest get_balance;
  get_balance.set_workspace_id("ws");
  v1::GetBalanceResponse balance;
  {
    grpc::ClientContext context;
    ASSERT_TRUE(admin_->GetBalance(&context, get_balance, &balance).ok());
  }
  EXPECT_EQ(balance.balance().available_nano_usd(), 1000);
  EXPECT_TRUE(balance.balance().has_cap_nano_usd());
  v1::ListEntriesRequest list;
  list.set_workspace_id("ws");
  v1::ListEntriesResponse entries;
  {
    grpc::ClientContext context;
    ASSERT_TRUE(admin_->ListEntries(&context, list, &entries).ok());
  }
  ASSERT_EQ(entries.entries_size(), 2);
  EXPECT_EQ(entries.entries(0).kind(), "cap_change");
  EXPECT_EQ(entries.entries(1).kind(), "topup");
  EXPECT_EQ(entries.entries(1).debit_account(), "funding");
  EXPECT_EQ(entries.entries(1).credit_account(), "paid");
  v1::VerifyLedgerResponse verified;
  {
    grpc::ClientContext context;
    ASSERT_TRUE(admin_->VerifyLedger(&context, {}, &verified).ok());
  }
  EXPECT_TRUE(verified.ok());
  EXPECT_EQ(verified.workspaces(), 1);
  EXPECT_EQ(verified.entries(), 2);
}

TEST_F(BillingRpcTest, ARefusedSettlementIsListedRetriedAndWrittenOff) {
  ASSERT_TRUE(ledger_->Start().ok());
  Credit(1000);
  const Id id = Id::New(), other = Id::New();
  v1::MeterRequest meter;
  for (const Id& settled : {id, other}) {
    v1::MeterOp& op = *meter.add_ops();
    op.set_request_id(settled.ToBytes());
    op.set_workspace_id("ws");
    op.mutable_settle()->mutable_usage()->set_prompt_tokens(100);
    op.mutable_settle()->mutable_usage()->set_completion_tokens(30);
    op.mutable_settle()->set_outcome(v1::OUTCOME_COMPLETED);
    op.mutable_settle()->set_engine_id("engine-1");
  }
  v1::MeterResponse metered;
  {
    grpc::ClientContext context;
    ASSERT_TRUE(metering_->Meter(&context, meter, &metered).ok());
  }
  EXPECT_EQ(metered.results(0).denied_by(), v1::DENY_REASON_INVALID);

  const auto list = [this](bool resolved, int page_size = 0, const std::string& token = "") {
    v1::ListDeadLettersRequest request;
    request.set_resolved(resolved);
    request.set_page_size(page_size);
    request.set_page_token(token);
    v1::ListDeadLettersResponse response;
    grpc::ClientContext context;
    const grpc::Status status = admin_->ListDeadLetters(&context, request, &response);
    EXPECT_TRUE(status.ok()) << status.error_message();
    return response;
  };
  ASSERT_EQ(list(false).dead_letters_size(), 2);
  const v1::DeadLetter letter = list(false).dead_letters(1);
  EXPECT_EQ(letter.request_id(), std::min(id.ToBytes(), other.ToBytes()));
  EXPECT_EQ(letter.settle().usage().completion_tokens(), 30);
  EXPECT_EQ(letter.settle().engine_id(), "engine-1");
  EXPECT_EQ(letter.reason(), v1::DENY_REASON_INVALID);
  const auto first = list(false, 1);
  const auto second = list(false, 1, first.next_page_token());
  ASSERT_EQ(second.dead_letters_size(), 1);
  EXPECT_NE(second.dead_letters(0).request_id(), first.dead_letters(0).request_id());
  v1::ListDeadLettersRequest wrong;
  wrong.set_page_token("made up");
  v1::ListDeadLettersResponse none;
  grpc::ClientContext wrong_context;
  EXPECT_FALSE(admin_->ListDeadLetters(&wrong_context, wrong, &none).ok());

  v1::RetryDeadLetterRequest retry;
  retry.set_workspace_id("ws");
  retry.set_request_id(id.ToBytes());
  retry.set_number(1);
  retry.set_actor("ann");
  retry.set_reason("hold restored");
  v1::RetryDeadLetterResponse retried;
  {
    grpc::ClientContext context;
    const grpc::Status status = admin_->RetryDeadLetter(&context, retry, &retried);
    EXPECT_NE(rpc::FromStatus(status).message.find("no hold of this request"), std::string::npos)
        << rpc::FromStatus(status).ToString();
  }
  {
    grpc::ClientContext context;
    v1::AuthorizeResponse held;
    ASSERT_TRUE(billing_->Authorize(&context, AuthorizeFor({id}), &held).ok());
  }
  for (int i = 0; i < 2; ++i) {
    grpc::ClientContext context;
    ASSERT_TRUE(admin_->RetryDeadLetter(&context, retry, &retried).ok());
  }
  v1::WriteOffDeadLetterRequest write_off;
  write_off.set_workspace_id("ws");
  write_off.set_request_id(other.ToBytes());
  write_off.set_number(1);
  write_off.set_actor("bob");
  v1::WriteOffDeadLetterResponse written_off;
  {
    grpc::ClientContext context;
    EXPECT_FALSE(admin_->WriteOffDeadLetter(&context, write_off, &written_off).ok()) << "no reason";
  }
  write_off.set_reason("test traffic");
  {
    grpc::ClientContext context;
    ASSERT_TRUE(admin_->WriteOffDeadLetter(&context, write_off, &written_off).ok());
  }
  EXPECT_EQ(list(false).dead_letters_size(), 0);
  EXPECT_EQ(list(true).dead_letters_size(), 2);

  // A settle that names no workspace: it can only be written off, and retry says so.
  meter.mutable_ops()->DeleteSubrange(1, 1);
  meter.mutable_ops(0)->set_workspace_id("No Name!");
  {
    grpc::ClientContext context;
    ASSERT_TRUE(metering_->Meter(&context, meter, &metered).ok());
  }
  retry.clear_workspace_id();
  {
    grpc::ClientContext context;
    const grpc::Status status = admin_->RetryDeadLetter(&context, retry, &retried);
    EXPECT_NE(rpc::FromStatus(status).message.find("names no workspace"), std::string::npos)
        << rpc::FromStatus(status).ToString();
  }
  write_off.clear_workspace_id();
  write_off.set_request_id(id.ToBytes());
  {
    grpc::ClientContext context;
    EXPECT_TRUE(admin_->WriteOffDeadLetter(&context, write_off, &written_off).ok());
  }
  EXPECT_EQ(list(false).dead_letters_size(), 0);
  EXPECT_EQ(
      metrics::Counter("tollgate_billing_dead_letters_total", "", {{"reason", "invalid"}}).Value(),
      3);
  EXPECT_EQ(metrics::Gauge("tollgate_billing_dead_letters_open", "").Value(), 0);
  v1::GetBalanceRequest query;
  query.set_workspace_id("ws");
  v1::GetBalanceResponse balance;
  grpc::ClientContext context;
  ASSERT_TRUE(admin_->GetBalance(&context, query, &balance).ok());
  EXPECT_EQ(balance.balance().available_nano_usd(), 1000 - 160) << "once";
}

}  // namespace
}  // namespace tollgate::billing
