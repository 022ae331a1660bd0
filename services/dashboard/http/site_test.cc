#include "services/dashboard/http/site.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "common/json/json.h"
#include "common/runtime/testing/run_coro.h"

namespace tollgate::dashboard {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::string_view kToken = "a-login-token-for-tests";

// Returns fixed responses, or `error` when it is set, and keeps the last state request.
class FakeAuth : public AuthAdminClient {
 public:
  Task<Result<auth::v1::CreateWorkspaceResponse>> CreateWorkspace(
      auth::v1::CreateWorkspaceRequest request) override {
    if (error) co_return Fail{*error};
    auth::v1::CreateWorkspaceResponse response;
    response.mutable_workspace()->set_workspace_id(request.workspace_id());
    co_return response;
  }
  Task<Result<auth::v1::ListWorkspacesResponse>> ListWorkspaces(
      auth::v1::ListWorkspacesRequest) override {
    if (error) co_return Fail{*error};
    auth::v1::ListWorkspacesResponse response;
    response.add_workspaces()->set_workspace_id("team");
    co_return response;
  }
  Task<Result<auth::v1::CreateKeyResponse>> CreateKey(auth::v1::CreateKeyRequest request) override {
    auth::v1::CreateKeyResponse response;
    response.mutable_key()->set_key_id("0123456789AB");
    response.mutable_key()->set_name(request.name());
    response.mutable_key()->set_state(auth::v1::KEY_STATE_ACTIVE);
    response.mutable_key()->add_allowed_models("a/b");
    response.set_secret("the-secret");
    co_return response;
  }
  Task<Result<auth::v1::ListKeysResponse>> ListKeys(auth::v1::ListKeysRequest) override {
    co_return auth::v1::ListKeysResponse();
  }
  Task<Result<auth::v1::SetKeyStateResponse>> SetKeyState(
      auth::v1::SetKeyStateRequest request) override {
    state_request = request;
    auth::v1::SetKeyStateResponse response;
    response.mutable_key()->set_state(request.state());
    co_return response;
  }
  Task<Result<auth::v1::ListAuditEventsResponse>> ListAuditEvents(
      auth::v1::ListAuditEventsRequest) override {
    auth::v1::ListAuditEventsResponse response;
    response.add_events()->set_action("key.create");
    co_return response;
  }

  std::optional<Error> error;
  auth::v1::SetKeyStateRequest state_request;
};

class FakeBilling : public BillingAdminClient {
 public:
  Task<Result<void>> OpenWallet(std::string workspace_id) override {
    opened.push_back(std::move(workspace_id));
    co_return Result<void>();
  }
  Task<Result<billing::v1::AddCreditResponse>> AddCredit(
      billing::v1::AddCreditRequest request) override {
    billing::v1::AddCreditResponse response;
    Fill(*response.mutable_balance(), request.amount_nano_usd());
    co_return response;
  }
  Task<Result<billing::v1::SetCapResponse>> SetCap(billing::v1::SetCapRequest request) override {
    billing::v1::SetCapResponse response;
    Fill(*response.mutable_balance(), 0);
    if (request.has_cap_nano_usd())
      response.mutable_balance()->set_cap_nano_usd(request.cap_nano_usd());
    co_return response;
  }
  Task<Result<billing::v1::GetBalanceResponse>> GetBalance(
      billing::v1::GetBalanceRequest) override {
    billing::v1::GetBalanceResponse response;
    Fill(*response.mutable_balance(), 1);
    co_return response;
  }
  Task<Result<billing::v1::ListEntriesResponse>> ListEntries(
      billing::v1::ListEntriesRequest) override {
    co_return billing::v1::ListEntriesResponse();
  }
  Task<Result<billing::v1::VerifyLedgerResponse>> VerifyLedger(
      billing::v1::VerifyLedgerRequest) override {
    billing::v1::VerifyLedgerResponse response;
    response.add_violations("I2: \"w\" is off");
    co_return response;
  }

  std::vector<std::string> opened;  // workspaces

 private:
  static void Fill(billing::v1::Balance& balance, int64_t paid) {
    balance.set_workspace_id("w");
    balance.set_paid_nano_usd(paid);
    balance.set_available_nano_usd(paid);
    balance.set_month(202611);
  }
};

class SiteTest : public ::testing::Test {
 protected:
  http::HttpResponse Send(const std::string& method, const std::string& path,
                          const std::string& body = "", std::string_view token = kToken) {
    http::HttpRequest request{.method = method, .path = path, .body = body};
    if (!token.empty())
      request.headers.emplace_back("authorization", "Bearer " + std::string(token));
    return Send(std::move(request));
  }
  http::HttpResponse Send(http::HttpRequest request) {
    http::HttpResponse response =
        ::tollgate::testing::RunTask([&](Loop&) -> Task<http::HttpResponse> {
          co_return co_await site_.Handle(request, Backends{auth_, billing_});
        });
    // Every response has the security headers, and JSON bodies parse.
    EXPECT_THAT(Header(response, "content-security-policy"), HasSubstr("frame-ancestors 'none'"));
    EXPECT_EQ(Header(response, "x-content-type-options"), "nosniff");
    EXPECT_EQ(Header(response, "cache-control"), "no-store");
    if (Header(response, "content-type") == "application/json") {
      EXPECT_TRUE(json::Document::Parse(response.body)) << response.body;
    }
    return response;
  }
  static std::string Header(const http::HttpResponse& response, std::string_view name) {
    for (const auto& [key, value] : response.headers) {
      if (key == name) return value;
    }
    return "";
  }

  FakeAuth auth_;
  FakeBilling billing_;
  ManualClock clock_;
  Site site_{
      {.login_token = std::string(kToken), .base_url = "http://127.0.0.1:8080/", .clock = &clock_}};
};

TEST_F(SiteTest, ThePageIsPublicAndShowsTheBaseUrl) {
  const auto page = Send("GET", "/", "", "");
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(Header(page, "content-type"), "text/html; charset=utf-8");
  EXPECT_THAT(page.body, HasSubstr("<code>http://127.0.0.1:8080/v1</code>"));
  EXPECT_THAT(page.body, Not(HasSubstr("%BASE%")));
  EXPECT_THAT(page.body, Not(HasSubstr("<script")));
  EXPECT_THAT(page.body, Not(HasSubstr("style=")));
  const auto css = Send("GET", "/style.css", "", "");
  EXPECT_EQ(css.status, 200);
  EXPECT_EQ(Header(css, "content-type"), "text/css; charset=utf-8");
  EXPECT_EQ(Send("GET", "/other", "", "").status, 404);
  EXPECT_EQ(Send("POST", "/", "", "").status, 404);
}

TEST_F(SiteTest, TheAdminApiNeedsTheToken) {
  for (const char* token :
       {"", "a", "a-login-token-for-test", "a-login-token-for-tests ", "A-login-token-for-tests"}) {
    for (const char* path : {"/api/admin/workspaces", "/api/admin/no-such-path"}) {
      const auto answer = Send("GET", path, "", token);
      EXPECT_EQ(answer.status, 401) << token;
      EXPECT_THAT(answer.body, HasSubstr("login_required"));
      EXPECT_THAT(Header(answer, "www-authenticate"), HasSubstr("Bearer"));
    }
  }
  http::HttpRequest basic{.method = "GET", .path = "/api/admin/workspaces"};
  basic.headers.emplace_back("authorization", "Basic " + std::string(kToken));
  EXPECT_EQ(Send(std::move(basic)).status, 401);
}

TEST_F(SiteTest, AnAddressThatGuessesTokensIsThrottled) {
  const auto ask = [&](std::string_view token, const std::string& peer) {
    http::HttpRequest request{.method = "GET", .path = "/api/admin/workspaces"};
    if (!token.empty())
      request.headers.emplace_back("authorization", "Bearer " + std::string(token));
    request.peer_address = peer;
    return Send(std::move(request));
  };
  // Neither a missing nor a correct token counts as a guess.
  for (int i = 0; i < 20; ++i) EXPECT_EQ(ask("", "10.6.6.6").status, 401);
  for (int i = 0; i < 20; ++i) EXPECT_EQ(ask(kToken, "10.6.6.6").status, 200);
  for (int i = 0; i < 10; ++i) EXPECT_EQ(ask("a-guess", "10.6.6.6").status, 401);
  const auto refused = ask("a-guess", "10.6.6.6");
  EXPECT_EQ(refused.status, 429);
  EXPECT_EQ(Header(refused, "retry-after"), "6");
  EXPECT_EQ(ask(kToken, "10.6.6.6").status, 429)
      << "a throttled address must not learn that its guess is right";
  EXPECT_EQ(ask(kToken, "10.0.0.1").status, 200) << "other addresses are not affected";
  clock_.Advance(6'000'000);
  EXPECT_EQ(ask("a-guess", "10.6.6.6").status, 401);
  EXPECT_EQ(ask("a-guess", "10.6.6.6").status, 429);
  clock_.Advance(60'000'000);
  EXPECT_EQ(ask(kToken, "10.6.6.6").status, 200);
}

TEST_F(SiteTest, WithoutAConfiguredTokenEveryLoginIsRefused) {
  Site closed({});
  http::HttpRequest request{.method = "GET", .path = "/api/admin/workspaces"};
  EXPECT_FALSE(closed.login().Matches(request));
  request.headers.emplace_back("authorization", "Bearer ");
  EXPECT_FALSE(closed.login().Matches(request));
}

TEST_F(SiteTest, CallsReachTheServicesAndReturnJson) {
  EXPECT_THAT(Send("GET", "/api/admin/workspaces").body, HasSubstr(R"("workspace_id":"team")"));
  const auto workspace = Send("POST", "/api/admin/workspaces", R"({"workspace_id":"new"})");
  EXPECT_EQ(billing_.opened, std::vector<std::string>{"new"}) << "its wallet (decision 64)";
  EXPECT_EQ(workspace.status, 201);
  EXPECT_THAT(workspace.body, HasSubstr(R"("workspace":{"workspace_id":"new")"));
  const auto key = Send("POST", "/api/admin/keys", R"({"workspace_id":"w","name":"a \"name\""})");
  EXPECT_EQ(key.status, 201);
  EXPECT_THAT(key.body, HasSubstr(R"("secret":"the-secret")"));
  EXPECT_THAT(key.body, HasSubstr(R"("name":"a \"name\"")"));
  EXPECT_THAT(key.body, HasSubstr(R"("expires_at":null,"allowed_models":["a/b"])"));
  EXPECT_THAT(Send("GET", "/api/admin/keys").body, HasSubstr(R"({"keys":[]})"));
  EXPECT_THAT(Send("POST", "/api/admin/keys/0123456789AB/revoke").body,
              HasSubstr(R"("state":"revoked")"));
  EXPECT_EQ(auth_.state_request.key_id(), "0123456789AB");
  EXPECT_THAT(Send("GET", "/api/admin/audit").body, HasSubstr(R"("action":"key.create")"));
}

TEST_F(SiteTest, AmountsAreDecimalText) {
  const auto credit =
      Send("POST", "/api/admin/workspaces/w/credit", R"({"amount_usd":"0.000000001"})");
  EXPECT_EQ(credit.status, 200);
  EXPECT_THAT(credit.body, HasSubstr(R"("paid_usd":"0.000000001")"));
  EXPECT_THAT(credit.body, HasSubstr(R"("cap_usd":null,"month":"2026-11")"));
  EXPECT_THAT(Send("PUT", "/api/admin/workspaces/w/cap", R"({"cap_usd":"10"})").body,
              HasSubstr(R"("cap_usd":"10")"));
  EXPECT_THAT(Send("GET", "/api/admin/workspaces/w/balance").body,
              HasSubstr(R"("available_usd":"0.000000001")"));
}

TEST_F(SiteTest, LedgerViolationsAreReported) {
  const auto answer = Send("POST", "/api/admin/ledger/verify");
  EXPECT_EQ(answer.status, 200);
  EXPECT_THAT(answer.body, HasSubstr(R"("ok":false)"));
  EXPECT_THAT(answer.body, HasSubstr(R"("violations":["I2: \"w\" is off"])"));
}

TEST_F(SiteTest, ServiceErrorsKeepTheirStatus) {
  auth_.error = Error{.id = ErrorId::kBadRequest, .message = "Taken.", .param = "workspace_id"};
  auto answer = Send("POST", "/api/admin/workspaces", "{}");
  EXPECT_EQ(answer.status, 400);
  EXPECT_THAT(answer.body, HasSubstr(R"("message":"Taken.")"));
  EXPECT_THAT(answer.body, HasSubstr(R"("param":"workspace_id")"));
  auth_.error = Unavailable("the database password is wrong", 1500).error;
  answer = Send("GET", "/api/admin/workspaces");
  EXPECT_EQ(answer.status, 503);
  EXPECT_EQ(Header(answer, "retry-after"), "2");
  EXPECT_THAT(answer.body, Not(HasSubstr("password")));
}

TEST_F(SiteTest, TheCatalogHidesEngineApiKeys) {
  EXPECT_EQ(Send("GET", "/api/admin/catalog").status, 503);
  catalog::v1::Snapshot snapshot;
  snapshot.set_version(7);
  auto& model = *snapshot.add_models();
  model.set_id("a/b");
  model.mutable_price()->set_output_pico_usd(2'200'000);
  model.add_capabilities(catalog::v1::CAPABILITY_CHAT);
  auto& engine = *snapshot.add_pools()->add_engines();
  engine.set_kind(catalog::v1::ENGINE_KIND_LLAMACPP);
  engine.set_api_key("engine-secret");
  site_.SetCatalog(snapshot);
  const auto answer = Send("GET", "/api/admin/catalog");
  EXPECT_EQ(answer.status, 200);
  EXPECT_THAT(answer.body, HasSubstr(R"("output_usd_per_million":"2.2")"));
  EXPECT_THAT(answer.body, HasSubstr(R"("capabilities":["chat"])"));
  EXPECT_THAT(answer.body, HasSubstr(R"("kind":"llamacpp")"));
  EXPECT_THAT(answer.body, HasSubstr(R"("has_api_key":true)"));
  EXPECT_THAT(answer.body, Not(HasSubstr("engine-secret")));
}

}  // namespace
}  // namespace tollgate::dashboard
