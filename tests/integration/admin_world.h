// The owner of a workspace at the dashboard's JSON front, and helpers for calls of the admin API.
#pragma once

#include <ctime>

#include "common/base/base64.h"
#include "common/base/crypto.h"
#include "common/base/id.h"
#include "tests/integration/people_world.h"
#include "tests/support/http.h"
#include "tests/support/totp.h"
#include "tollgate/billing/v1/billing.grpc.pb.h"

namespace tollgate::test {

inline constexpr char kPassword[] = "correct horse battery";

class AdminWorld : public PeopleWorld {
 protected:
  void SetUp() override {
    PeopleWorld::SetUp();
    if (!cluster_) return;
    boss_ = NewBrowser("boss@example.com", true);
    second_ = NewBrowser("second@example.com", true);
    // Billing opens its alerts after its ledger.
    ASSERT_TRUE(WaitUntil(
        [&] { return Admin("GET", "/admin/v1/workspaces/team/alertSettings", "").status != 503; },
        10'000));
    ASSERT_EQ(Post("workspaces?workspace_id=team&request_id=team", "{}").status, 200);
    ASSERT_EQ(
        Post("workspaces/team/creditGrants?request_id=first", R"({"amountUsd":"90","paid":true})")
            .status,
        200);
  }

  // A person who has just signed in. The boss is an operator of the platform and, as its creator,
  // the owner of the workspace team: one of the two roles permits every method.
  struct Browser {
    std::string email, cookie, csrf, actor;
    int64_t signed_in_us = 0;
  };
  HttpResponse Send(const Browser& browser, const std::string& verb, const std::string& path,
                    const std::string& body = "") {
    HeaderList headers = {{"content-type", "application/json"},
                          {"sec-fetch-site", "same-origin"},
                          {"cookie", browser.cookie},
                          {"x-csrf-token", browser.csrf}};
    return Http(cluster_->dashboard_port(), verb, path, headers, body);
  }
  void SignIn(Browser& browser, const std::string& path, const std::string& body) {
    const HttpResponse answer = Send(browser, "POST", "/session/v1/" + path, body);
    EXPECT_EQ(answer.status, 200) << answer.body;
    for (const auto& [name, value] : answer.headers) {
      if (name == "set-cookie" && value.starts_with("tollgate=")) {
        browser.cookie = value.substr(0, value.find(';'));
      }
    }
    const Json session = Send(browser, "GET", "/session/v1/session").json();
    browser.csrf = session["csrf_token"].str();
    browser.signed_in_us = NowUs();
  }
  Browser NewBrowser(const std::string& email, bool platform_operator) {
    pb::CreateUserRequest request;
    request.mutable_user()->set_email(email);
    request.mutable_user()->set_platform_operator(platform_operator);
    request.set_request_id("u" + std::to_string(++made_));
    pb::CreateUserResponse response;
    EXPECT_EQ(As(Operator(), *users_, &pb::UserService::Stub::CreateUser, request, response), "");
    const std::string token = response.sign_in_path().substr(response.sign_in_path().find('=') + 1);
    Browser browser{.email = email,
                    .cookie = "",
                    .csrf = "",
                    .actor = "user:" + Last(response.user().name()),
                    .signed_in_us = 0};
    SignIn(browser, "link", R"({"token":")" + token + R"(","new_password":")" + kPassword + "\"}");
    return browser;
  }
  // Called by the boss.
  HttpResponse Admin(const std::string& verb, const std::string& target, const std::string& body) {
    return Act(boss_, verb, target, body);
  }
  // Called with a sign-in that is always fresh.
  HttpResponse Act(Browser& browser, const std::string& verb, const std::string& target,
                   const std::string& body) {
    if (NowUs() - browser.signed_in_us > 200'000'000) {
      SignIn(browser, "signIn",
             R"({"email":")" + browser.email + R"(","password":")" + kPassword + "\"}");
    }
    return Send(browser, verb, target, body);
  }
  HttpResponse Post(const std::string& path, const std::string& body) {
    return Admin("POST", "/admin/v1/" + path, body);
  }
  // Called by another caller: the login token of the installation.
  HttpResponse Other(const std::string& verb, const std::string& target,
                     const std::string& body = "") {
    std::string token = ReadFile(cluster_->dir() + "/login_token");
    while (!token.empty() && token.back() == '\n') token.pop_back();
    return Http(cluster_->dashboard_port(), verb, target,
                {{"authorization", "Bearer " + token}, {"content-type", "application/json"}}, body);
  }
  static std::string Reason(const HttpResponse& response) {
    return response.json()["details"][0]["reason"].str();
  }
  static std::string Last(const std::string& name) { return name.substr(name.rfind('/') + 1); }
  std::string NewId() { return "r" + std::to_string(++made_); }
  std::string Must(const HttpResponse& answer, std::string_view member = "name") {
    EXPECT_EQ(answer.status, 200) << answer.body;
    const Json json = answer.json();
    const size_t dot = member.find('.');
    return dot == std::string_view::npos
               ? Last(json[member].str())
               : Last(json[member.substr(0, dot)][member.substr(dot + 1)].str());
  }

  // Creates a resource of this kind; returns the last part of its name, unless stated otherwise.
  virtual std::string Make(const std::string& what) {
    const std::string id = NewId();
    const std::string ask = "?request_id=" + id;
    if (what == "workspace") return Must(Post("workspaces" + ask, "{}"));
    if (what == "closing") {
      const std::string workspace = Make("workspace");
      Must(Post("workspaces/" + workspace + ":close", "{}"));
      return workspace;
    }
    if (what == "frozen") {
      const std::string workspace = Make("workspace");
      Must(Post("workspaces/" + workspace + ":freeze", R"({"reason":"a"})"));
      return workspace;
    }
    if (what == "key") return Must(Post("workspaces/team/keys" + ask, "{}"), "key.name");
    if (what == "secret") return Post("workspaces/team/keys" + ask, "{}").json()["secret"].str();
    if (what == "disabled key") {
      const std::string key = Make("key");
      Must(Post("workspaces/team/keys/" + key + ":disable", "{}"));
      return key;
    }
    if (what == "digest") return Base64Encode(Sha256(id));
    if (what == "user") {
      return Must(Post("users" + ask, R"({"email":")" + id + R"(@example.com"})"), "user.name");
    }
    if (what == "user with totp") {
      const Browser browser = NewBrowser(id + "@example.com", false);
      const HttpResponse begun = Send(browser, "POST", "/session/v1/totp/start", "{}");
      const std::string seed = Base32Decode(begun.json()["secret"].str());
      Must(Send(browser, "POST", "/session/v1/totp/confirm",
                R"({"code":")" + TotpCode(seed, NowUs() / 30'000'000) + "\"}"),
           "");
      return browser.actor.substr(browser.actor.find(':') + 1);
    }
    if (what == "session") {  // a session of the boss in another browser
      Browser elsewhere{
          .email = boss_.email, .cookie = "", .csrf = "", .actor = "", .signed_in_us = 0};
      SignIn(elsewhere, "signIn",
             R"({"email":")" + boss_.email + R"(","password":")" + kPassword + "\"}");
      return Last(Send(elsewhere, "GET", "/admin/v1/users/me/sessions")
                      .json()["sessions"][0]["name"]
                      .str());
    }
    if (what == "new id") return id;
    if (what == "invitation token") {  // to another operator's workspace, for the boss
      const std::string workspace = Must(Act(second_, "POST", "/admin/v1/workspaces" + ask, "{}"));
      const HttpResponse invited =
          Act(second_, "POST",
              "/admin/v1/workspaces/" + workspace + "/invitations?request_id=" + NewId(),
              R"({"email":")" + boss_.email + R"(","role":"viewer"})");
      const std::string path = invited.json()["acceptPath"].str();
      return path.substr(path.find('=') + 1);
    }
    if (what == "invitation") {
      return Must(Post("workspaces/team/invitations" + ask,
                       R"({"email":")" + id + R"(@example.com","role":"viewer"})"),
                  "invitation.name");
    }
    if (what == "member") {
      Browser browser = NewBrowser(id + "@example.com", false);
      const HttpResponse invited = Post("workspaces/team/invitations" + ask,
                                        R"({"email":")" + id + R"(@example.com","role":"viewer"})");
      const std::string path = invited.json()["acceptPath"].str();
      return Must(Send(browser, "POST", "/admin/v1/invitations:accept",
                       R"({"token":")" + path.substr(path.find('=') + 1) + "\"}"));
    }
    if (what == "token") {
      return Must(Post("users/me/tokens" + ask,
                       Filled(R"({"displayName":"a","scopes":["viewer"],"expireTime":"{soon}"})")),
                  "token.name");
    }
    if (what == "support session") {
      return Must(Post("workspaces/team/supportSessions" + ask, R"({"reason":"a"})"),
                  "supportSession.name");
    }
    if (what == "plan") {
      Must(Admin("PATCH", "/admin/v1/plans/plan-" + id,
                 R"({"keyLimits":{"requestsPerMinute":"5"}})"));
      return "plan-" + id;
    }
    if (what == "grant") {
      return Must(Post("workspaces/team/creditGrants" + ask, R"({"amountUsd":"1"})"));
    }
    if (what == "pending") {  // requested by another operator, so that the boss may approve it
      return Must(Act(second_, "POST", "/admin/v1/workspaces/team/adjustments" + ask,
                      R"({"kind":"ADJUSTMENT_KIND_CREDIT","amountUsd":"150","reason":"a"})"));
    }
    if (what == "payment") {
      return Must(Post("workspaces/team/payments" + ask, R"({"amountUsd":"10.00"})"));
    }
    if (what == "paid") {
      const std::string payment = Make("payment");
      Must(Post("workspaces/team/payments/" + payment + ":confirm",
                R"({"requestId":")" + NewId() + "\"}"));
      return payment;
    }
    if (what == "webhook") {
      return Must(Post("workspaces/team/webhooks" + ask,
                       R"({"url":"https://hooks.example.com/)" + id + "\"}"));
    }
    if (what == "verification") {
      // Only one verification runs at a time.
      EXPECT_TRUE(WaitUntil([&] { return Post("ledgerVerifications" + ask, "{}").status == 200; },
                            20'000, 50));
      const std::string name = Must(Post("ledgerVerifications" + ask, "{}"));
      const auto state = [&] {
        return Admin("GET", "/admin/v1/ledgerVerifications/" + name, "").json()["state"].str();
      };
      EXPECT_TRUE(
          WaitUntil([&] { return state() != "LEDGER_VERIFICATION_STATE_RUNNING"; }, 20'000, 10));
      return name;
    }
    if (what == "request") return MakeRequest();
    if (what == "late dead letter") {  // the ledger learned of its request afterwards
      const Id late = Id::New();
      MakeSettle(late);
      Authorize(late);
      return "team." + late.ToHex() + ".1";
    }
    if (what == "dead letter") return "team." + MakeSettle(Id::New()) + ".1";
    if (what == "month" || what == "soon") {
      const std::time_t now = std::time(nullptr) + (what == "soon" ? 86'400 : 0);
      char text[32];
      std::tm utc;
      std::strftime(text, sizeof text, what == "soon" ? "%Y-%m-%dT%H:%M:%SZ" : "%Y-%m",
                    ::gmtime_r(&now, &utc));
      return text;
    }
    ADD_FAILURE() << "nothing makes a " << what;
    return "";
  }
  // Opens and settles the hold of a request, as gateway and router do.
  std::string MakeRequest(const std::string& key_id = "0123456789ab",
                          const std::string& workspace = "team") {
    const Id id = Id::New();
    Authorize(id, key_id, workspace);
    MakeSettle(id, workspace);
    return id.ToHex();
  }
  void Authorize(const Id& id, const std::string& key_id = "0123456789ab",
                 const std::string& workspace = "team") {
    billing::v1::AuthorizeRequest request;
    auto* item = request.add_items();
    item->set_request_id(id.ToBytes());
    item->set_workspace_id(workspace);
    item->set_key_id(key_id);
    item->set_model("sim/model");
    item->mutable_price()->set_input_pico_usd(1000);
    item->mutable_price()->set_output_pico_usd(1000);
    item->set_prompt_tokens_bound(10);
    item->set_output_tokens_bound(10);
    billing::v1::AuthorizeResponse response;
    grpc::ClientContext context;
    EXPECT_TRUE(billing::v1::BillingService::NewStub(Ledger())
                    ->Authorize(&context, request, &response)
                    .ok());
    EXPECT_TRUE(response.results(0).granted());
  }
  std::string MakeSettle(const Id& id, const std::string& workspace = "team") {
    billing::v1::MeterRequest request;
    auto* op = request.add_ops();
    op->set_request_id(id.ToBytes());
    op->set_workspace_id(workspace);
    op->mutable_settle()->mutable_usage()->set_prompt_tokens(5);
    op->mutable_settle()->mutable_usage()->set_completion_tokens(5);
    op->mutable_settle()->set_outcome(billing::v1::OUTCOME_COMPLETED);
    billing::v1::MeterResponse response;
    grpc::ClientContext context;
    EXPECT_TRUE(
        billing::v1::MeteringService::NewStub(Ledger())->Meter(&context, request, &response).ok());
    return id.ToHex();
  }
  std::shared_ptr<grpc::Channel> Ledger() {
    return grpc::CreateChannel(cluster_->grpc_address("billing"),
                               grpc::InsecureChannelCredentials());
  }

  // Replaces {thing} by a new resource, only where a letter follows the brace: JSON has quotes
  // there.
  std::string Filled(std::string_view pattern) {
    std::string text;
    for (size_t at = 0; at < pattern.size(); ++at) {
      const bool named = pattern[at] == '{' && at + 1 < pattern.size() && pattern[at + 1] >= 'a' &&
                         pattern[at + 1] <= 'z';
      if (!named) {
        text += pattern[at];
        continue;
      }
      const size_t end = pattern.find('}', at);
      text += Make(std::string(pattern.substr(at + 1, end - at - 1)));
      at = end;
    }
    return text;
  }

  Browser boss_, second_;
  int made_ = 0;
};

}  // namespace tollgate::test
