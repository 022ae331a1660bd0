#include "tests/secrets/people_calls.h"

#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>

#include "tests/support/totp.h"
#include "tollgate/admin/v1/users.grpc.pb.h"
#include "tollgate/common/v1/identity.pb.h"

namespace tollgate::test {
namespace {

namespace pb = tollgate::admin::v1;

int64_t NowS() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// The part after the sign in "…?token=x" or "…/x".
std::string TokenOf(const std::string& path) { return path.substr(path.find_last_of("=/") + 1); }

}  // namespace

HttpResponse PeopleCalls::Send(const std::string& method, const std::string& target,
                               const std::string& body, HeaderList headers) {
  headers.emplace_back("content-type", "application/json");
  headers.emplace_back("sec-fetch-site", "same-origin");
  return Http(port_, method, target, headers, body);
}

void PeopleCalls::KeepCookie(const HttpResponse& answer) {
  for (const auto& [name, value] : answer.headers) {
    if (name != "set-cookie" || !value.starts_with("tollgate=")) continue;
    cookie_ = value.substr(0, value.find(';'));
    world_.canaries().Add("session cookie", cookie_.substr(cookie_.find('=') + 1));
  }
}

HttpResponse PeopleCalls::Session(const std::string& path, const std::string& body, bool once) {
  HeaderList headers;
  if (!cookie_.empty()) headers.emplace_back("cookie", cookie_);
  if (!csrf_.empty()) headers.emplace_back("x-csrf-token", csrf_);
  const HttpResponse answer = Send("POST", "/session/v1/" + path, body, headers);
  KeepCookie(answer);
  // The cookie itself is in the header.
  HttpResponse rest = answer;
  std::erase_if(rest.headers, [](const auto& header) { return header.first == "set-cookie"; });
  once ? world_.Collect(rest) : world_.CollectAll(rest);
  return answer;
}

void PeopleCalls::ReadCsrf() {
  const HttpResponse shown = Http(port_, "GET", "/session/v1/session", {{"cookie", cookie_}});
  csrf_ = shown.json()["csrf_token"].str();
  EXPECT_TRUE(world_.canaries().Add("CSRF token", csrf_)) << shown.body;
}

HttpResponse PeopleCalls::Admin(const std::string& method, const std::string& path,
                                const std::string& body, bool once) {
  // Reads use the token, changes the session.
  const HeaderList session = {{"cookie", cookie_}, {"x-csrf-token", csrf_}};
  const HeaderList token = {{"authorization", "Bearer " + token_}};
  const HttpResponse answer =
      Send(method, "/admin/v1/" + path, body, method == "GET" ? token : session);
  once ? world_.Collect(answer) : world_.CollectAll(answer);
  return answer;
}

void PeopleCalls::SignInAsOperator(const std::string& email) {
  email_ = email;
  password_ = world_.NewCanary("password");
  pb::CreateUserRequest request;
  request.mutable_user()->set_email(email);
  request.mutable_user()->set_platform_operator(true);
  request.set_request_id("first");
  common::v1::Identity identity;
  identity.set_actor("user:operator");
  identity.set_user_id("operator");
  identity.set_platform_operator(true);
  identity.set_signed_in_us(NowS() * 1'000'000);
  grpc::ClientContext context;
  context.AddMetadata("tollgate-identity-bin", identity.SerializeAsString());
  pb::CreateUserResponse response;
  const auto users =
      pb::UserService::NewStub(grpc::CreateChannel(admin_, grpc::InsecureChannelCredentials()));
  const grpc::Status status = users->CreateUser(&context, request, &response);
  ASSERT_TRUE(status.ok()) << status.error_message();
  const std::string link = TokenOf(response.sign_in_path());
  ASSERT_TRUE(world_.canaries().Add("token of a sign-in link", link));
  const std::string body = R"({"token":")" + link + R"(","new_password":")" + password_ + "\"}";
  ASSERT_EQ(Session("link", body).status, 200);
  cookie_.swap(token_);  // once more, without a session
  EXPECT_NE(Session("link", body).status, 200);
  // The page is for the holder of the link: its form contains the token.
  world_.Collect(Http(port_, "GET", response.sign_in_path()));
  cookie_.swap(token_);
  token_.clear();
  ReadCsrf();
}

void PeopleCalls::WrongSignIns() {
  const std::string wrong = world_.NewCanary("wrong password");
  const std::string mail = R"("email":")" + email_ + "\"";
  for (const std::string& body :
       {"{" + mail + R"(,"password":")" + wrong + "\"}",
        "{" + mail + ",\"password\":" + wrong + "}",
        "{" + mail + R"(,"password":[")" + wrong + "\"]}", "{\"" + password_ + "\":",
        R"({"email":")" + password_ + R"(","password":")" + password_ + "\"}",
        R"({"token":")" + wrong + R"(","new_password":"x"})"}) {
    for (const char* path : {"signIn", "secondStep", "link", "invitation", "password", "stepUp"}) {
      Session(path, body);
    }
  }
  const std::string changed = password_ + "x";
  world_.canaries().Add("password", changed);
  const HttpResponse set = Session("password", R"({"current_password":")" + password_ +
                                                   R"(","new_password":")" + changed + "\"}");
  EXPECT_EQ(set.status, 200) << set.body;
  ReadCsrf();
  world_.CollectAll(Http(port_, "GET", "/session/v1/oidc/start"));
  world_.CollectAll(Http(port_, "GET",
                         "/session/v1/oidc/callback?state=" + wrong + "&code=" + wrong,
                         {{"cookie", cookie_}}));
  for (const std::string& token : {"Bearer " + wrong, "Bearer tgp_" + wrong, "Basic " + wrong}) {
    world_.CollectAll(Http(port_, "GET", "/admin/v1/workspaces", {{"authorization", token}}));
  }
  world_.CollectAll(Http(port_, "GET", "/admin/v1/workspaces?token=" + wrong, {}));
  world_.CollectAll(Http(port_, "GET", "/admin/v1/workspaces", {{"cookie", "tollgate=" + wrong}}));
}

void PeopleCalls::SecondStep() {
  const HttpResponse started = Session("totp/start", "{}", true);
  ASSERT_EQ(started.status, 200) << started.body;
  const std::string secret = started.json()["secret"].str();
  const std::string seed = Base32Decode(secret);
  ASSERT_TRUE(world_.canaries().Add("TOTP seed", secret));
  ASSERT_TRUE(world_.canaries().Add("TOTP seed in bytes", seed));
  EXPECT_NE(Session("totp/confirm", R"({"code":"000000"})").status, 200);
  const int64_t step = NowS() / 30;
  const HttpResponse confirmed =
      Session("totp/confirm", R"({"code":")" + TotpCode(seed, step) + "\"}", true);
  ASSERT_EQ(confirmed.status, 200) << confirmed.body;
  const Json codes = confirmed.json()["recovery_codes"];
  ASSERT_GT(codes.size(), 1U) << confirmed.body;
  for (size_t i = 0; i < codes.size(); ++i) {
    ASSERT_TRUE(world_.canaries().Add("recovery code", codes[i].str()));
  }
  for (size_t i = 0; i < codes.size(); ++i) codes_.push_back(codes[i].str());
  ASSERT_NO_FATAL_FAILURE(SignInAgain());
}

void PeopleCalls::SignInAgain() {
  const HttpResponse half =
      Session("signIn", R"({"email":")" + email_ + R"(","password":")" + password_ + "\"}", true);
  const std::string challenge = half.json()["challenge"].str();
  ASSERT_FALSE(challenge.empty()) << half.body;
  const std::string step = R"({"challenge":")" + challenge + R"(","recovery_code":")";
  EXPECT_NE(Session("secondStep", step + "abcd-efgh\"}").status, 200);
  const HttpResponse whole = Session("secondStep", step + codes_.back() + "\"}");
  codes_.pop_back();
  ASSERT_EQ(whole.status, 200) << whole.body;
  ReadCsrf();
}

void PeopleCalls::Mails() {
  const auto forget = [this] {
    EXPECT_EQ(Session("forgotPassword", R"({"email":")" + email_ + "\"}").status, 200);
  };
  const auto reset = [this] {
    const std::string token =
        world_.mails().TakeToken(email_, "a new password for your Tollgate account");
    EXPECT_TRUE(world_.canaries().Add("token of a reset link", token));
    return token;
  };
  const auto body = [](const std::string& token, const std::string& password) {
    return R"({"token":")" + token + R"(","new_password":")" + password + "\"}";
  };
  world_.mails().Stop();
  forget();
  EXPECT_TRUE(WaitUntil(
      [&] { return world_.cluster().Logs().find("a mail could not be sent") != std::string::npos; },
      30'000));
  world_.mails().Start();
  const std::string late = reset();
  EXPECT_NE(Session("resetPassword", body(late, "short")).status, 200);
  EXPECT_NE(Session("resetPassword", body(late + "x", password_)).status, 200);
  // The page is for the holder of the link: its form contains the token.
  world_.Collect(Http(port_, "GET", "/session/v1/resetPassword?token=" + late));
  forget();
  const std::string token = reset();
  password_ = world_.NewCanary("password");
  EXPECT_EQ(Session("resetPassword", body(token, password_)).status, 200);
  EXPECT_NE(Session("resetPassword", body(token, password_)).status, 200) << "used";
  ASSERT_NO_FATAL_FAILURE(SignInAgain());
}

void PeopleCalls::AdminCalls(const ApiKey& key) {
  const std::string canary = world_.NewCanary("text in a wrong admin call");
  const auto id = [this] { return "?request_id=secrets-" + std::to_string(++requests_); };
  // A token, made by the session.
  char until[32];
  const std::time_t day = NowS() + 86'400;
  std::strftime(until, sizeof until, "%Y-%m-%dT%H:%M:%SZ", std::gmtime(&day));
  const HttpResponse token = world_.Collect(Send(
      "POST", "/admin/v1/users/me/tokens" + id(),
      R"({"display_name":"ci","scopes":["operator"],"expire_time":")" + std::string(until) + "\"}",
      {{"cookie", cookie_}, {"x-csrf-token", csrf_}}));
  token_ = token.json()["secret"].str();
  ASSERT_TRUE(token_.starts_with("tgp_")) << token.body;
  ASSERT_TRUE(world_.canaries().Add("access token", token_.substr(4)));

  const std::string workspace = "workspaces/" + key.workspace_id;
  // An operator becomes an owner by an invitation.
  const HttpResponse invited = Admin("POST", workspace + "/invitations" + id(),
                                     R"({"email":")" + email_ + R"(","role":"owner"})", true);
  EXPECT_EQ(invited.json()["acceptPath"].str(), "") << "only the mail has the link";
  const std::string invitation = world_.mails().TakeToken(email_, "invites you");
  ASSERT_TRUE(world_.canaries().Add("token of an invitation", invitation)) << invited.body;
  const HttpResponse accepted =
      Admin("POST", "invitations:accept", R"({"token":")" + invitation + "\"}");
  EXPECT_EQ(accepted.status, 200) << accepted.body;
  Admin("POST", "invitations:accept", R"({"token":")" + invitation + "\"}");
  ASSERT_NO_FATAL_FAILURE(SignInAgain());
  // Calls that read existing resources.
  for (const std::string& path :
       {std::string("workspaces"), workspace, workspace + "/keys",
        workspace + "/keys/" + key.key_id, workspace + "/webhooks", workspace + "/alertSettings",
        workspace + "/payments", workspace + "/members", workspace + "/invitations",
        workspace + "/requests", std::string("auditEntries"), std::string("users"),
        std::string("users/me"), std::string("users/me/tokens"), std::string("users/me/sessions"),
        std::string("models")}) {
    Admin("GET", path, "");
  }
  // Calls that return a secret once.
  const HttpResponse made =
      Admin("POST", workspace + "/keys" + id(), R"({"display_name":"b"})", true);
  const std::string secret = made.json()["secret"].str();
  ASSERT_GT(secret.size(), 49U) << made.body;
  ASSERT_TRUE(world_.canaries().Add("key of the admin API", secret.substr(secret.size() - 49)));
  const HttpResponse webhook = Admin("POST", workspace + "/webhooks" + id(),
                                     R"({"url":")" + world_.echo().url() + "/hook\"}", true);
  ASSERT_TRUE(world_.canaries().Add("webhook secret", webhook.json()["signingSecret"].str()))
      << webhook.body;
  const HttpResponse support =
      Admin("POST", workspace + "/supportSessions" + id(), R"({"reason":"a"})", true);
  const std::string session = support.json()["secret"].str();
  ASSERT_TRUE(session.starts_with("tgs_")) << support.body;
  ASSERT_TRUE(world_.canaries().Add("secret of a support session", session.substr(4)));
  for (const char* path : {"/keys", "/members"}) {
    world_.CollectAll(Http(port_, "GET", "/admin/v1/" + workspace + path,
                           {{"authorization", "Bearer " + session}}));
  }
  world_.CollectAll(Send("POST", "/admin/v1/" + workspace + "/keys" + id(), "{}",
                         {{"authorization", "Bearer " + session}}));
  Admin("POST", support.json()["supportSession"]["name"].str() + ":end", "{}");
  const int before = world_.echo().requests();
  Admin("POST", webhook.json()["name"].str() + ":test", "{}");
  EXPECT_GT(world_.echo().requests(), before) << "the webhook was called";
  // Calls that are refused. The payment provider answers with the request it received.
  Admin("POST", workspace + "/payments" + id(), R"({"amount_usd":"50"})");
  EXPECT_GT(world_.echo().requests(), before + 1) << "the provider was asked";
  Admin("POST", workspace + "/paymentMethods:setup", "{}");
  Admin("POST", "keys:reportLeak", R"({"secret":")" + secret + "\"}");
  Admin("POST", "keys:reportLeak", R"({"secret":[")" + key.secret + "\"]}");
  for (const std::string& body :
       {"{" + canary, "{\"" + canary + "\":1}", "[\"" + canary + "\"]", "\"" + canary + "\"",
        "{\"display_name\":[\"" + canary + "\"]}", "{\"url\":\"http://" + canary + "/\"}",
        "{\"amount_usd\":\"" + canary + "\"}", "{\"email\":\"" + canary + "\"}"}) {
    for (const char* path : {"/keys", "/webhooks", "/payments", "/invitations"}) {
      Admin("POST", workspace + path + id(), body);
    }
  }
}

}  // namespace tollgate::test
