#include "services/dashboard/http/admin_api.h"

#include <gmock/gmock.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <future>

#include "common/http/client.h"
#include "common/http/server.h"
#include "common/http/testing/raw_client.h"
#include "common/json/json.h"
#include "common/rpc/channel.h"
#include "common/runtime/testing/run_coro.h"
#include "tollgate/admin/v1/alerts.grpc.pb.h"

namespace tollgate::dashboard {
namespace {

using ::testing::HasSubstr;

constexpr char kPath[] = "/admin/v1/workspaces/acme/alertSettings";

// Records the calls that it receives.
class Alerts : public admin::v1::AlertService::WithCallbackMethod_ListWebhooks<
                   admin::v1::AlertService::Service> {
 public:
  grpc::Status GetAlertSettings(grpc::ServerContext* context,
                                const admin::v1::GetAlertSettingsRequest* request,
                                admin::v1::AlertSettings* response) override {
    Keep(*context);
    response->set_name(request->name());
    return grpc::Status::OK;
  }
  grpc::Status UpdateAlertSettings(grpc::ServerContext* context,
                                   const admin::v1::UpdateAlertSettingsRequest* request,
                                   admin::v1::AlertSettings* response) override {
    Keep(*context);
    ++updates;
    *response = request->alert_settings();
    return grpc::Status::OK;
  }
  // Ends when the client cancels.
  grpc::ServerUnaryReactor* ListWebhooks(grpc::CallbackServerContext*,
                                         const admin::v1::ListWebhooksRequest*,
                                         admin::v1::ListWebhooksResponse*) override {
    class Waiting : public grpc::ServerUnaryReactor {
     public:
      explicit Waiting(std::promise<void>& cancelled) : cancelled_(cancelled) {}
      void OnCancel() override {
        cancelled_.set_value();
        Finish(grpc::Status::CANCELLED);
      }
      void OnDone() override { delete this; }

     private:
      std::promise<void>& cancelled_;
    };
    started.set_value();
    return new Waiting(cancelled);
  }
  void Keep(const grpc::ServerContext& context) {
    metadata.clear();
    for (const auto& [key, value] : context.client_metadata()) {
      metadata.emplace(std::string(key.data(), key.size()),
                       std::string(value.data(), value.size()));
    }
  }

  std::multimap<std::string, std::string> metadata;
  int updates = 0;
  std::promise<void> started;
  std::promise<void> cancelled;
};

// Accepts a session's cookie "session=good", or the login token.
class Sessions : public CredentialSource {
 public:
  Task<Result<std::optional<Credential>>> Resolve(const http::HttpRequest& request,
                                                  Loop& loop) override {
    if (request.header("cookie") != "session=good")
      co_return co_await login_.Resolve(request, loop);
    Credential credential;
    credential.identity.set_actor("user:u1");
    credential.csrf_token = "the-csrf-token";
    co_return std::optional(std::move(credential));
  }

 private:
  LoginToken token_{"a-login-token-for-tests"};
  LoginTokenSource login_{token_};
};

class AdminApiTest : public ::testing::Test {
 protected:
  AdminApiTest() {
    grpc::ServerBuilder builder;
    builder.RegisterService(&alerts_);
    backend_ = builder.BuildAndStart();
    channels_.SetServers(nullptr, backend_.get());
    pool_.Start();
    channel_ = channels_.Channel(rpc::kInprocAdmin, "auth");
    auto made =
        AdminApi::Make(sessions_, {.channel_to = [this](const google::protobuf::ServiceDescriptor&,
                                                        Loop&) { return channel_; }});
    EXPECT_TRUE(made.ok());
    api_ = std::move(*made);
    server_ = std::make_unique<http::Server>(
        pool_, http::ServerOptions{},
        [this](http::Exchange& exchange) { return api_->Serve(exchange); });
    EXPECT_TRUE(server_->Listen("127.0.0.1:0").ok());
  }
  ~AdminApiTest() override {
    server_->Stop();
    pool_.loop(0).RunAndWait([this] { channel_.reset(); });
    pool_.Stop();
    backend_->Shutdown(std::chrono::system_clock::now());
  }

  http::HttpResponse Send(const std::string& method, const std::string& target,
                          http::Headers headers, std::string body = "") {
    http::HttpResponse answer;
    tollgate::testing::RunOn(pool_.loop(0), [&](Loop& loop) -> Task<int> {
      http::Client client(loop, {});
      http::ClientRequest request;
      request.method = method;
      request.origin = http::ParseBaseUrl("http://" + server_->address())->origin;
      request.target = target;
      request.headers = headers;
      request.body = body;
      auto got = co_await client.Fetch(std::move(request));
      EXPECT_TRUE(got.ok());
      if (got.ok()) answer = {.status = got->head.status, .body = std::move(got->body)};
      co_return 0;
    });
    return answer;
  }

  Alerts alerts_;
  Sessions sessions_;
  std::unique_ptr<grpc::Server> backend_;
  rpc::ChannelSource channels_;
  LoopPool pool_{1};
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<AdminApi> api_;
  std::unique_ptr<http::Server> server_;
};

const std::pair<std::string, std::string> kToken = {"authorization",
                                                    "Bearer a-login-token-for-tests"};
const std::pair<std::string, std::string> kCookie = {"cookie", "session=good"};

TEST_F(AdminApiTest, WithoutACredentialEveryPathIsA401) {
  for (const char* path : {kPath, "/admin/v1/no-such-path"}) {
    const auto answer = Send("GET", path, {});
    EXPECT_EQ(answer.status, 401) << path;
    EXPECT_THAT(answer.body, HasSubstr(R"("reason":"SIGN_IN_REQUIRED")"));
  }
  EXPECT_EQ(Send("GET", kPath, {{"authorization", "Bearer a-wrong-token"}}).status, 401);
  EXPECT_EQ(Send("GET", "/admin/v1/no-such-path", {kToken}).status, 404);
}

TEST_F(AdminApiTest, TheIdentityGoesOutAndTheCredentialStays) {
  const auto answer = Send("GET", kPath, {kToken, {"cookie", "other=1"}});
  EXPECT_EQ(answer.status, 200) << answer.body;
  EXPECT_THAT(answer.body, HasSubstr(R"({"name":"workspaces/acme/alertSettings","emails":[])"));
  common::v1::Identity identity;
  ASSERT_EQ(alerts_.metadata.count("tollgate-identity-bin"), 1U);
  ASSERT_TRUE(identity.ParseFromString(alerts_.metadata.find("tollgate-identity-bin")->second));
  EXPECT_EQ(identity.actor(), "token:login");
  EXPECT_TRUE(identity.platform_operator());
  EXPECT_EQ(identity.address(), "127.0.0.1");
  for (const auto& [key, value] : alerts_.metadata) {
    EXPECT_EQ(value.find("a-login-token-for-tests"), std::string::npos) << key;
    EXPECT_EQ(value.find("other=1"), std::string::npos) << key;
  }
}

TEST_F(AdminApiTest, ClientsCannotSetWhoTheyAre) {
  const auto answer = Send("GET", kPath,
                           {kToken,
                            {"grpc-metadata-tollgate-identity-bin", "AAAA"},
                            {"grpc-metadata-tollgate-operator", "root"},
                            {"grpc-metadata-x-tollgate-a", "1"},
                            {"grpc-metadata-authorization", "Bearer other"},
                            {"grpc-metadata-fine", "yes"}});
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(alerts_.metadata.count("tollgate-identity-bin"), 1U);
  EXPECT_EQ(alerts_.metadata.count("tollgate-operator"), 0U);
  EXPECT_EQ(alerts_.metadata.count("x-tollgate-a"), 0U);
  EXPECT_EQ(alerts_.metadata.count("authorization"), 0U);
  EXPECT_EQ(alerts_.metadata.count("fine"), 1U);
}

// A cookie alone must not change anything, because requests of other sites carry it, too.
TEST_F(AdminApiTest, WritesWithACookieNeedTheSameOriginAndTheToken) {
  const std::pair<std::string, std::string> same = {"sec-fetch-site", "same-origin"};
  const std::pair<std::string, std::string> token = {"x-csrf-token", "the-csrf-token"};
  const auto update = [&](http::Headers headers) {
    headers.push_back(kCookie);
    return Send("PATCH", kPath, std::move(headers), R"({"emails":["a@example.com"]})");
  };
  EXPECT_THAT(update({}).body, HasSubstr("CROSS_SITE_REQUEST"));
  EXPECT_THAT(update({token}).body, HasSubstr("CROSS_SITE_REQUEST"));
  EXPECT_THAT(update({token, {"origin", "https://evil.example"}}).body,
              HasSubstr("CROSS_SITE_REQUEST"));
  EXPECT_THAT(update({same}).body, HasSubstr("CSRF_TOKEN_REQUIRED"));
  EXPECT_THAT(update({same, {"x-csrf-token", "wrong"}}).body, HasSubstr("CSRF_TOKEN_REQUIRED"));
  EXPECT_EQ(update({same}).status, 403);
  EXPECT_EQ(alerts_.updates, 0);
  EXPECT_EQ(update({same, token}).status, 200);
  EXPECT_EQ(alerts_.updates, 1);
  // A posted form may be turned into another method, even GET, so it counts as a write before
  // routing.
  const auto form = Send("POST", kPath,
                         {kCookie,
                          {"content-type", "application/x-www-form-urlencoded"},
                          {"x-http-method-override", "PATCH"}});
  EXPECT_EQ(form.status, 403);
  EXPECT_EQ(Send("GET", kPath, {kCookie}).status, 200);
}

TEST_F(AdminApiTest, LargeBodiesAreRefused) {
  const auto answer =
      Send("PATCH", kPath, {kToken}, "{\"x\":\"" + std::string((1 << 20) + 1, 'x') + "\"}");
  EXPECT_EQ(answer.status, 400);
  EXPECT_THAT(answer.body, HasSubstr("request body too large"));
}

TEST_F(AdminApiTest, TheCallIsCancelledWhenItsClientLeaves) {
  {
    http::testing::RawClient client(server_->port());
    client.Write(
        "GET /admin/v1/workspaces/acme/webhooks HTTP/1.1\r\nHost: t\r\n"
        "Authorization: Bearer a-login-token-for-tests\r\n\r\n");
    ASSERT_EQ(alerts_.started.get_future().wait_for(std::chrono::seconds(60)),
              std::future_status::ready);
    client.CloseWithReset();
  }
  EXPECT_EQ(alerts_.cancelled.get_future().wait_for(std::chrono::seconds(60)),
            std::future_status::ready)
      << "the service works for nobody";
}

TEST_F(AdminApiTest, ADeadlineIsA504) {
  const auto answer =
      Send("GET", "/admin/v1/workspaces/acme/webhooks", {kToken, {"grpc-timeout", "2S"}});
  EXPECT_EQ(answer.status, 504) << answer.body;
  EXPECT_EQ(alerts_.cancelled.get_future().wait_for(std::chrono::seconds(60)),
            std::future_status::ready);
}

TEST_F(AdminApiTest, AnUnreachableServiceIsA503) {
  pool_.loop(0).RunAndWait([this] { channel_ = channels_.Channel("unix:/dev/null/none", "auth"); });
  const auto answer = Send("GET", kPath, {kToken});
  EXPECT_EQ(answer.status, 503) << answer.body;
  EXPECT_THAT(answer.body, HasSubstr(R"("code":14)"));
}

TEST_F(AdminApiTest, GuessesAreThrottled) {
  for (int i = 0; i < 10; ++i) {
    EXPECT_EQ(Send("GET", kPath, {{"authorization", "Bearer a-guess"}}).status, 401);
  }
  const auto refused = Send("GET", kPath, {kToken});
  EXPECT_EQ(refused.status, 429);
  EXPECT_THAT(refused.body, HasSubstr("RetryInfo"));
}

// Denied by default: a service without a home is not served.
TEST(AdminApiHomesTest, EveryServiceHasAHome) {
  const auto services = transcode::ServicesOf("tollgate.admin.v1");
  EXPECT_GT(services.size(), 5U);
  for (const auto* service : services) {
    EXPECT_TRUE(TargetOf(*service)) << service->full_name() << " has no option home in its proto";
  }
  for (const auto* service : transcode::ServicesOf("tollgate.auth.v1")) {
    EXPECT_FALSE(TargetOf(*service)) << service->full_name();
  }
}

}  // namespace
}  // namespace tollgate::dashboard
