#include "services/billing/rpc/alerts_rpc.h"

#include <google/rpc/error_details.pb.h>
#include <google/rpc/status.pb.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/service_type.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>

#include "tollgate/admin/v1/alerts.grpc.pb.h"

namespace tollgate::billing {
namespace {

namespace av = admin::v1;

class AlertsRpcTest : public ::testing::Test {
 protected:
  void SetUp() override {
    file_ = (std::filesystem::temp_directory_path() /
             ("tollgate-alerts-rpc-" + std::to_string(getpid()) + ".db"))
                .string();
    Remove();
    LedgerService::Options options;
    options.group_commit.call_timeout_ms = 60'000;  // the machine may be busy
    options.sql.url = "sqlite:" + file_;
    ledger_ = std::make_unique<LedgerService>(options, SystemClock::Get());
    alerts::AlertsOptions settings;
    settings.sql.url = options.sql.url;
    alerts_ = std::make_unique<alerts::Alerts>(settings, SystemClock::Get(), *ledger_);
    service_ = MakeAlertRpc(*alerts_);
    grpc::ServerBuilder builder;
    builder.RegisterService(service_.get());
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port_);
    server_ = builder.BuildAndStart();
    stub_ = av::AlertService::NewStub(server_->InProcessChannel({}));
  }
  void TearDown() override {
    server_->Shutdown();
    alerts_->Stop();
    ledger_->Stop();
    Remove();
  }
  void Remove() {
    for (const char* suffix : {"", "-wal", "-shm"}) std::filesystem::remove(file_ + suffix);
  }
  void Start() {
    ASSERT_TRUE(ledger_->Start().ok());
    ASSERT_TRUE(alerts_->Start().ok());
  }
  template <typename Request, typename Response>
  grpc::Status Call(grpc::Status (av::AlertService::Stub::*method)(grpc::ClientContext*,
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
  av::CreateWebhookRequest Create(const std::string& url) {
    av::CreateWebhookRequest request;
    request.set_parent("workspaces/acme");
    request.mutable_webhook()->set_url(url);
    request.set_request_id("r1");
    return request;
  }

  using Stub = av::AlertService::Stub;
  std::string file_;
  int port_ = 0;
  std::unique_ptr<LedgerService> ledger_;
  std::unique_ptr<alerts::Alerts> alerts_;
  std::unique_ptr<grpc::Service> service_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<Stub> stub_;
};

TEST_F(AlertsRpcTest, CallsBeforeStartAreUnavailable) {
  av::Webhook webhook;
  EXPECT_EQ(ReasonOf(Call(&Stub::CreateWebhook, Create("https://example.com/"), webhook)),
            "SERVICE_UNAVAILABLE");
}

TEST_F(AlertsRpcTest, SettingsChangeByFieldAndStayOtherwise) {
  Start();
  av::UpdateAlertSettingsRequest update;
  update.mutable_alert_settings()->set_name("workspaces/acme/alertSettings");
  update.mutable_alert_settings()->add_emails("ann@example.com");
  update.mutable_alert_settings()->set_low_balance_usd("12.5");
  av::AlertSettings settings;
  EXPECT_EQ(Call(&Stub::UpdateAlertSettings, update, settings).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT)
      << "without a request id";
  update.set_request_id("r1");
  ASSERT_TRUE(Call(&Stub::UpdateAlertSettings, update, settings).ok());
  EXPECT_EQ(settings.low_balance_usd(), "12.50");
  EXPECT_EQ(settings.cap_percents_size(), 3);
  update.clear_alert_settings();
  update.mutable_alert_settings()->set_name("workspaces/acme/alertSettings");
  update.mutable_update_mask()->add_paths("capPercents");
  update.mutable_update_mask()->add_paths("reload_paused");
  EXPECT_EQ(ReasonOf(Call(&Stub::UpdateAlertSettings, update, settings)), "REQUEST_ID_REUSED");
  update.set_request_id("r2");
  ASSERT_TRUE(Call(&Stub::UpdateAlertSettings, update, settings).ok());
  av::GetAlertSettingsRequest get;
  get.set_name("workspaces/acme/alertSettings");
  ASSERT_TRUE(Call(&Stub::GetAlertSettings, get, settings = {}).ok());
  EXPECT_EQ(settings.cap_percents_size(), 0);
  EXPECT_FALSE(settings.reload_paused());
  EXPECT_EQ(settings.emails(0), "ann@example.com");
  update.mutable_update_mask()->add_paths("name");
  update.set_request_id("r3");
  EXPECT_EQ(ReasonOf(Call(&Stub::UpdateAlertSettings, update, settings)), "INVALID_FIELD");
}

TEST_F(AlertsRpcTest, AWebhookShowsItsSecretOnceAndOnlyToAKnownCaller) {
  Start();
  av::Webhook webhook;
  for (const char* url :
       {"http://example.com/", "https://127.0.0.1/", "https://169.254.169.254/"}) {
    EXPECT_EQ(ReasonOf(Call(&Stub::CreateWebhook, Create(url), webhook)), "INVALID_FIELD") << url;
  }
  ASSERT_TRUE(Call(&Stub::CreateWebhook, Create("https://example.com/hook"), webhook).ok());
  EXPECT_TRUE(webhook.signing_secret().starts_with("whsec_"));
  av::ListWebhooksRequest list;
  list.set_parent("workspaces/acme");
  av::ListWebhooksResponse listed;
  ASSERT_TRUE(Call(&Stub::ListWebhooks, list, listed).ok());
  ASSERT_EQ(listed.webhooks_size(), 1);
  EXPECT_EQ(listed.webhooks(0).name(), webhook.name());
  EXPECT_EQ(listed.webhooks(0).signing_secret(), "");
  av::DeleteWebhookRequest remove;
  remove.set_name(webhook.name());
  av::DeleteWebhookResponse removed;
  EXPECT_TRUE(Call(&Stub::DeleteWebhook, remove, removed).ok());
  EXPECT_EQ(Call(&Stub::DeleteWebhook, remove, removed).error_code(), grpc::StatusCode::NOT_FOUND);
  stub_ = av::AlertService::NewStub(grpc::CreateChannel("127.0.0.1:" + std::to_string(port_),
                                                        grpc::InsecureChannelCredentials()));
  EXPECT_EQ(ReasonOf(Call(&Stub::CreateWebhook, Create("https://example.com/"), webhook)),
            "STEP_UP_REQUIRED");
}

}  // namespace
}  // namespace tollgate::billing
