#include "services/billing/rpc/payments_rpc.h"

#include <google/rpc/error_details.pb.h>
#include <google/rpc/status.pb.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/service_type.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "tollgate/admin/v1/payments.grpc.pb.h"

namespace tollgate::billing {
namespace {

namespace av = admin::v1;

class PaymentsRpcTest : public ::testing::Test {
 protected:
  void SetUp() override {
    file_ = (std::filesystem::temp_directory_path() /
             ("tollgate-payments-rpc-" + std::to_string(getpid()) + ".db"))
                .string();
    Remove();
    LedgerService::Options options;
    options.group_commit.call_timeout_ms = 60'000;  // the machine may be busy
    options.sql.url = "sqlite:" + file_;
    ledger_ = std::make_unique<LedgerService>(options, SystemClock::Get());
    payments::PaymentsOptions settings;
    settings.sql.url = options.sql.url;
    payments_ = std::make_unique<payments::Payments>(settings, SystemClock::Get(), *ledger_);
    service_ = MakePaymentRpc(*payments_);
    grpc::ServerBuilder builder;
    builder.RegisterService(service_.get());
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    server_ = builder.BuildAndStart();
    stub_ = av::PaymentService::NewStub(server_->InProcessChannel({}));
    loops_.Start();
  }
  void TearDown() override {
    server_->Shutdown();
    payments_->Stop();
    ledger_->Stop();
    loops_.Stop();
    Remove();
  }
  void Remove() {
    for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(file_ + suffix);
  }
  void Start() {
    ASSERT_TRUE(ledger_->Start().ok());
    ASSERT_TRUE(payments_->Start(loops_).ok());
    payments::LedgerServicePort port(*ledger_);
    ASSERT_TRUE(port.Submit(OpenWallet{"acme"})->ok);
  }
  template <typename Request, typename Response>
  grpc::Status Call(grpc::Status (av::PaymentService::Stub::*method)(grpc::ClientContext*,
                                                                     const Request&, Response*),
                    const Request& request, Response& response) {
    grpc::ClientContext context;
    context.AddMetadata("tollgate-operator", "ann");
    return (stub_.get()->*method)(&context, request, &response);
  }
  static std::string ReasonOf(const grpc::Status& status) {
    google::rpc::Status details;
    google::rpc::ErrorInfo info;
    if (!details.ParseFromString(status.error_details()) || details.details_size() == 0 ||
        !details.details(0).UnpackTo(&info)) {
      return "no details";
    }
    return info.reason();
  }
  av::CreatePaymentRequest Create(const std::string& id, const std::string& usd) {
    av::CreatePaymentRequest request;
    request.set_parent("workspaces/acme");
    request.mutable_payment()->set_amount_usd(usd);
    request.set_request_id(id);
    return request;
  }

  using Stub = av::PaymentService::Stub;
  std::string file_;
  int port_ = 0;
  LoopPool loops_{1};
  std::unique_ptr<LedgerService> ledger_;
  std::unique_ptr<payments::Payments> payments_;
  std::unique_ptr<grpc::Service> service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Stub> stub_;
};

TEST_F(PaymentsRpcTest, CallsBeforeStartAreUnavailable) {
  av::Payment payment;
  const grpc::Status status = Call(&Stub::CreatePayment, Create("r", "10"), payment);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
  EXPECT_EQ(ReasonOf(status), "SERVICE_UNAVAILABLE");
}

// Decision 64.
TEST_F(PaymentsRpcTest, NothingIsPaidForAWorkspaceWithoutAWallet) {
  Start();
  av::Payment payment;
  av::CreatePaymentRequest create = Create("r1", "10");
  create.set_parent("workspaces/no-such");
  const grpc::Status status = Call(&Stub::CreatePayment, create, payment);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(ReasonOf(status), "WALLET_NOT_FOUND");
  av::ListPaymentsRequest list;
  list.set_parent("workspaces/no-such");
  av::ListPaymentsResponse payments;
  ASSERT_TRUE(Call(&Stub::ListPayments, list, payments).ok());
  EXPECT_EQ(payments.payments_size(), 0);
  av::SetupPaymentMethodRequest setup;
  setup.set_parent("workspaces/no-such");
  setup.set_request_id("s1");
  av::SetupPaymentMethodResponse page;
  EXPECT_EQ(ReasonOf(Call(&Stub::SetupPaymentMethod, setup, page)), "WALLET_NOT_FOUND");
}

TEST_F(PaymentsRpcTest, ATransferFromCreationToCreditWithPages) {
  Start();
  av::Payment payment;
  for (int i = 0; i < 5; ++i) {
    ASSERT_TRUE(Call(&Stub::CreatePayment, Create("r" + std::to_string(i), "10.50"), payment).ok());
  }
  EXPECT_EQ(payment.state(), av::PAYMENT_STATE_AWAITING_TRANSFER);
  EXPECT_EQ(payment.amount_usd(), "10.50");
  EXPECT_EQ(payment.actor(), "local:ann");
  av::ConfirmPaymentRequest confirm;
  confirm.set_name(payment.name());
  confirm.set_request_id("c1");
  confirm.set_reference("bank 17");
  av::Payment confirmed;
  ASSERT_TRUE(Call(&Stub::ConfirmPayment, confirm, confirmed).ok());
  EXPECT_EQ(confirmed.state(), av::PAYMENT_STATE_SUCCEEDED);
  EXPECT_TRUE(confirmed.credited());
  EXPECT_EQ(confirmed.provider_id(), "bank 17");

  av::ListPaymentsRequest list;
  av::ListPaymentsResponse everywhere;
  list.set_parent("workspaces/-");
  list.set_filter("state = \"SUCCEEDED\"");
  ASSERT_TRUE(Call(&Stub::ListPayments, list, everywhere).ok());
  ASSERT_EQ(everywhere.payments_size(), 1);
  EXPECT_EQ(everywhere.payments(0).name(), payment.name());
  list.clear_filter();
  list.set_parent("workspaces/acme");
  list.set_page_size(2);
  std::vector<std::string> names;
  do {
    av::ListPaymentsResponse page;
    ASSERT_TRUE(Call(&Stub::ListPayments, list, page).ok());
    for (const av::Payment& one : page.payments()) names.push_back(one.name());
    list.set_page_token(page.next_page_token());
  } while (!list.page_token().empty());
  ASSERT_EQ(names.size(), 5u);
  EXPECT_EQ(names.front(), payment.name()) << "newest first";
  list.set_page_token("00");
  av::ListPaymentsResponse page;
  EXPECT_EQ(ReasonOf(Call(&Stub::ListPayments, list, page)), "INVALID_FIELD");

  // The filter selects payments, and a page token is valid only for its filter.
  const auto count = [&](const std::string& filter) {
    av::ListPaymentsRequest filtered;
    filtered.set_parent("workspaces/acme");
    filtered.set_filter(filter);
    av::ListPaymentsResponse answer;
    const grpc::Status status = Call(&Stub::ListPayments, filtered, answer);
    return status.ok() ? answer.payments_size() : -1;
  };
  EXPECT_EQ(count("state = \"SUCCEEDED\""), 1);
  EXPECT_EQ(count("state = \"AWAITING_TRANSFER\" AND origin = \"CUSTOMER\""), 4);
  EXPECT_EQ(count("origin = \"AUTO_RELOAD\""), 0);
  EXPECT_EQ(count("state = \"UNSPECIFIED\""), -1);
  EXPECT_EQ(count("state = \"PAID\""), -1);
  EXPECT_EQ(count("origin = \"MAIL\""), -1);
  list.set_page_token("");
  list.set_page_size(1);
  ASSERT_TRUE(Call(&Stub::ListPayments, list, page).ok());
  list.set_page_token(page.next_page_token());
  list.set_filter("origin = \"CUSTOMER\"");
  EXPECT_EQ(ReasonOf(Call(&Stub::ListPayments, list, page)), "INVALID_FIELD");

  av::ReconcilePaymentsResponse compared;
  ASSERT_TRUE(Call(&Stub::ReconcilePayments, av::ReconcilePaymentsRequest(), compared).ok());
  EXPECT_EQ(compared.differences_size(), 0);
}

TEST_F(PaymentsRpcTest, WrongRequestsAreRefusedWithTheirReason) {
  Start();
  av::Payment payment;
  const auto reason = [&](const av::CreatePaymentRequest& request) {
    return ReasonOf(Call(&Stub::CreatePayment, request, payment));
  };
  EXPECT_EQ(reason(Create("", "10")), "INVALID_FIELD");
  EXPECT_EQ(reason(Create("r", "0.001")), "INVALID_FIELD");
  EXPECT_EQ(reason(Create("r", "-5")), "INVALID_FIELD");
  EXPECT_EQ(reason(Create("r", "100001")), "INVALID_FIELD");
  av::CreatePaymentRequest wrong = Create("r", "10");
  wrong.set_parent("workspaces/ACME");
  EXPECT_EQ(reason(wrong), "INVALID_FIELD");
  ASSERT_TRUE(Call(&Stub::CreatePayment, Create("r", "10"), payment).ok());
  EXPECT_EQ(reason(Create("r", "11")), "REQUEST_ID_REUSED");
  av::GetPaymentRequest get;
  get.set_name("workspaces/acme/payments/none");
  EXPECT_EQ(ReasonOf(Call(&Stub::GetPayment, get, payment)), "NOT_FOUND");

  av::UpdateAutoReloadRequest update;
  update.mutable_auto_reload()->set_name("workspaces/acme/autoReload");
  update.mutable_auto_reload()->set_enabled(true);
  update.mutable_auto_reload()->set_amount_usd("10");
  update.mutable_auto_reload()->set_monthly_ceiling_usd("100");
  update.set_request_id("u1");
  av::AutoReload reload;
  EXPECT_EQ(ReasonOf(Call(&Stub::UpdateAutoReload, update, reload)), "NO_PAYMENT_PROVIDER");
  update.mutable_update_mask()->add_paths("state");
  EXPECT_EQ(ReasonOf(Call(&Stub::UpdateAutoReload, update, reload)), "INVALID_FIELD");
  update.clear_update_mask();
  update.mutable_auto_reload()->set_enabled(false);
  ASSERT_TRUE(Call(&Stub::UpdateAutoReload, update, reload).ok());
  EXPECT_EQ(reload.amount_usd(), "10.00");
  EXPECT_EQ(reload.state(), av::AUTO_RELOAD_STATE_IDLE);
}

TEST_F(PaymentsRpcTest, OverTcpWithoutACertificateNothingIsConfirmed) {
  Start();
  stub_ = av::PaymentService::NewStub(grpc::CreateChannel("127.0.0.1:" + std::to_string(port_),
                                                          grpc::InsecureChannelCredentials()));
  av::Payment payment;
  ASSERT_TRUE(Call(&Stub::CreatePayment, Create("r", "10"), payment).ok());
  EXPECT_TRUE(payment.actor().starts_with("unverified:")) << payment.actor();
  av::ConfirmPaymentRequest confirm;
  confirm.set_name(payment.name());
  confirm.set_request_id("c1");
  EXPECT_EQ(ReasonOf(Call(&Stub::ConfirmPayment, confirm, payment)), "STEP_UP_REQUIRED");
}

}  // namespace
}  // namespace tollgate::billing
