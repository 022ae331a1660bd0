// Sign-in of people at the dashboard, over HTTP, and the identity that admin services get from it.
#include <algorithm>
#include <fstream>

#include "tests/integration/people_world.h"
#include "tests/support/http.h"

namespace tollgate::test {
namespace {

constexpr char kPassword[] = "correct horse battery";

class PeopleSessionTest : public PeopleWorld {
 protected:
  // A browser on a page of the dashboard.
  struct Browser {
    int port = 0;
    std::string cookie;  // name=value
    std::string csrf;

    HttpResponse Post(const std::string& path, const std::string& body, bool same_site = true) {
      HeaderList headers = {{"content-type", "application/json"},
                            {"sec-fetch-site", same_site ? "same-origin" : "cross-site"}};
      if (!cookie.empty()) headers.emplace_back("cookie", cookie);
      if (!csrf.empty()) headers.emplace_back("x-csrf-token", csrf);
      return Keep(Http(port, "POST", "/session/v1/" + path, headers, body));
    }
    // Presses the button of a link's page.
    HttpResponse Press(const std::string& link) {
      return Press(link, {{"origin", "http://127.0.0.1"}});
    }
    HttpResponse Press(const std::string& link, HeaderList headers) {
      const size_t query = link.find('?');
      headers.emplace_back("content-type", "application/x-www-form-urlencoded");
      if (!cookie.empty()) headers.emplace_back("cookie", cookie);
      return Keep(Http(port, "POST", link.substr(0, query), headers, link.substr(query + 1)));
    }
    HttpResponse Get(const std::string& path) {
      HeaderList headers;
      if (!cookie.empty()) headers.emplace_back("cookie", cookie);
      return Keep(Http(port, "GET", path, headers));
    }
    HttpResponse Keep(HttpResponse response) {
      for (const auto& [name, value] : response.headers) {
        if (name == "set-cookie" && value.starts_with("tollgate=")) {
          cookie = value.substr(0, value.find(';'));
        }
      }
      return response;
    }
    // Returns the signed-in person; reads the CSRF token.
    Json Show() {
      const Json json = Get("/session/v1/session").json();
      csrf = json["csrf_token"].str();
      return json;
    }
  };
  Browser NewBrowser() { return {.port = cluster_->dashboard_port()}; }
  // A person with a password, signed in.
  Browser SignedIn(const std::string& email) {
    Browser browser = NewBrowser();
    const Account account = NewAccount(email);
    const std::string token = account.link.substr(account.link.find('=') + 1);
    EXPECT_EQ(
        browser.Post("link", R"({"token":")" + token + R"(","new_password":")" + kPassword + "\"}")
            .status,
        200);
    browser.Show();
    return browser;
  }
  static std::string Reason(const HttpResponse& response) {
    return response.json()["details"][0]["reason"].str();
  }
  static std::string SignInBody(const std::string& email, const std::string& password) {
    return R"({"email":")" + email + R"(","password":")" + password + "\"}";
  }
};
INSTANTIATE_TEST_SUITE_P(Stores, PeopleSessionTest, ::testing::Values("sqlite", "postgres"),
                         [](const auto& info) { return info.param; });

// Opening a link shows a page with a button, however often; pressing it signs in, once.
TEST_P(PeopleSessionTest, ALinkSignsInOnce) {
  const Account account = NewAccount("anna@example.com");
  Browser browser = NewBrowser();
  for (int i = 0; i < 3; ++i) {
    const HttpResponse page = browser.Get(account.link);
    EXPECT_EQ(page.status, 200);
    EXPECT_FALSE(page.has_header("set-cookie"));
    EXPECT_NE(page.body.find("<button>Sign in</button>"), std::string::npos) << page.body;
    EXPECT_NE(page.header("content-security-policy").find("form-action 'self'"), std::string::npos);
  }
  EXPECT_EQ(browser.Show()["state"].str(), "SIGNED_OUT");
  const HttpResponse first = browser.Press(account.link);
  EXPECT_EQ(first.status, 303);
  EXPECT_EQ(first.header("location"), "/");
  const std::string& set = first.header("set-cookie");
  EXPECT_NE(set.find("; HttpOnly"), std::string::npos) << set;
  EXPECT_NE(set.find("; SameSite=Lax"), std::string::npos) << set;
  EXPECT_NE(set.find("; Path=/"), std::string::npos) << set;
  EXPECT_EQ(browser.Show()["state"].str(), "SIGNED_IN");
  Browser other = NewBrowser();
  const HttpResponse second = other.Press(account.link);
  EXPECT_EQ(second.status, 401);
  EXPECT_NE(second.body.find("the link was used before or has expired"), std::string::npos)
      << second.body;
  EXPECT_FALSE(second.has_header("set-cookie"));
  EXPECT_EQ(other.Show()["state"].str(), "SIGNED_OUT");
}

// Another site cannot sign a visitor in as a person of its choice.
TEST_P(PeopleSessionTest, ALinkIsPressedOnOurOwnPageOnly) {
  const Account account = NewAccount("anna@example.com");
  Browser browser = NewBrowser();
  for (const HeaderList& headers :
       {HeaderList{}, HeaderList{{"origin", "https://evil.test"}}, HeaderList{{"origin", "null"}},
        HeaderList{{"origin", "http://127.0.0.1"}, {"sec-fetch-site", "cross-site"}}}) {
    const HttpResponse refused = browser.Press(account.link, headers);
    EXPECT_EQ(refused.status, 403);
    EXPECT_FALSE(refused.has_header("set-cookie"));
  }
  EXPECT_EQ(browser.Press(account.link).status, 303) << "none of these has used it up";
}

TEST_P(PeopleSessionTest, APasswordSignsInAndSigningOutEndsIt) {
  Browser anna = SignedIn("anna@example.com");
  const std::string old = anna.cookie;
  EXPECT_EQ(anna.Post("signIn", SignInBody("Anna@Example.com", kPassword)).status, 200);
  EXPECT_NE(anna.cookie, old) << "a new id at each sign-in";
  Browser thief = {.port = anna.port, .cookie = old, .csrf = ""};
  EXPECT_EQ(thief.Show()["state"].str(), "SIGNED_OUT");
  anna.Show();
  EXPECT_EQ(anna.Post("signOut", "{}").status, 200);
  EXPECT_EQ(anna.cookie, "tollgate=");
  Browser wrong = NewBrowser();
  const HttpResponse refused = wrong.Post("signIn", SignInBody("anna@example.com", "wrong one!!"));
  const HttpResponse unknown = wrong.Post("signIn", SignInBody("bert@example.com", "wrong one!!"));
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(refused.body, unknown.body) << "does not tell who exists";
}

TEST_P(PeopleSessionTest, OtherSitesAndRequestsWithoutTheTokenChangeNothing) {
  Browser anna = SignedIn("anna@example.com");
  const std::string csrf = anna.csrf;
  EXPECT_EQ(Reason(anna.Post("signOut", "{}", false)), "CROSS_SITE_REQUEST");
  EXPECT_EQ(Reason(anna.Post("signIn", SignInBody("anna@example.com", kPassword), false)),
            "CROSS_SITE_REQUEST");
  anna.csrf = "";
  EXPECT_EQ(Reason(anna.Post("signOut", "{}")), "CSRF_TOKEN_REQUIRED");
  anna.csrf = std::string(64, '0');
  EXPECT_EQ(Reason(anna.Post("signOut", "{}")), "CSRF_TOKEN_REQUIRED");
  // A form of another site cannot send JSON.
  const HttpResponse form =
      Http(anna.port, "POST", "/session/v1/signIn",
           {{"content-type", "text/plain"}, {"sec-fetch-site", "same-origin"}},
           SignInBody("anna@example.com", kPassword));
  EXPECT_EQ(Reason(form), "INVALID_BODY");
  EXPECT_EQ(anna.Show()["state"].str(), "SIGNED_IN");
  EXPECT_EQ(anna.csrf, csrf) << "the token is that of the session";
  EXPECT_EQ(anna.Post("signOut", "{}").status, 200);
}

TEST_P(PeopleSessionTest, BadRequestsGetAClearError) {
  Browser browser = NewBrowser();
  for (const char* body : {"", "{", "[]", "null", "{\"email\":5}", "{\"email\":\"\xff\"}"}) {
    const HttpResponse response = browser.Post("signIn", body);
    EXPECT_TRUE(response.status == 400 || response.status == 401) << body << response.status;
    EXPECT_NE(Reason(response), "") << body;
  }
  EXPECT_EQ(browser.Post("nothing", "{}").status, 404);
  EXPECT_EQ(browser.Get("/session/v1/nothing").status, 404);
  EXPECT_EQ(browser.Get("/session/v1/").status, 404);
  EXPECT_EQ(Http(browser.port, "DELETE", "/session/v1/session").status, 404);
  EXPECT_EQ(browser.Post("link", "token=x").status, 400) << "a form with the wrong type";
  EXPECT_EQ(browser.Get("/session/v1/oidc/start").header("location"), "/#/sign-in/OIDC_OFF");
  EXPECT_EQ(browser.Post("password", "{}").status, 401) << "nobody is signed in";
}

TEST_P(PeopleSessionTest, WrongPasswordsAreSlowedDown) {
  SignedIn("anna@example.com");
  Browser browser = NewBrowser();
  HttpResponse last;
  for (int i = 0; i < 11; ++i) {
    last = browser.Post("signIn", SignInBody("anna@example.com", "wrong one!!"));
  }
  EXPECT_EQ(last.status, 429);
  EXPECT_EQ(Reason(last), "THROTTLED");
  const int wait = std::atoi(last.header("retry-after").c_str());
  EXPECT_TRUE(wait > 0 && wait <= 60) << wait;
}

// A person invites another one, who makes an account, is promoted, and leaves.
TEST_P(PeopleSessionTest, AnInvitationLeadsToAnAccountARoleAndOut) {
  pb::CreateInvitationRequest invite;
  invite.set_parent("workspaces/acme");
  invite.mutable_invitation()->set_email("Bert@Example.com");
  invite.mutable_invitation()->set_role("developer");
  invite.set_request_id("i1");
  pb::CreateInvitationResponse invited;
  EXPECT_EQ(As(Person(Role::ROLE_DEVELOPER), *invitations_,
               &pb::InvitationService::Stub::CreateInvitation, invite, invited),
            "PERMISSION_DENIED");
  ASSERT_EQ(As(Person(Role::ROLE_ADMIN), *invitations_,
               &pb::InvitationService::Stub::CreateInvitation, invite, invited),
            "");
  EXPECT_EQ(invited.invitation().email(), "bert@example.com");
  pb::CreateInvitationRequest owner = invite;
  owner.mutable_invitation()->set_role("owner");
  owner.set_request_id("i2");
  pb::CreateInvitationResponse none;
  EXPECT_EQ(As(Person(Role::ROLE_ADMIN), *invitations_,
               &pb::InvitationService::Stub::CreateInvitation, owner, none),
            "PERMISSION_DENIED")
      << "an admin cannot create owners";
  Identity by_token = Person(Role::ROLE_OWNER);
  by_token.set_by_token(true);
  by_token.add_scopes("admin");
  owner.mutable_invitation()->set_role("admin");
  EXPECT_EQ(
      As(by_token, *invitations_, &pb::InvitationService::Stub::CreateInvitation, owner, none),
      "PERMISSION_DENIED")
      << "nor can a token with that scope";

  const std::string path = invited.accept_path();
  const std::string token = path.substr(path.rfind('=') + 1);
  Browser bert = NewBrowser();
  EXPECT_EQ(
      bert.Post("invitation", R"({"token":")" + token + R"(","display_name":"Bert","password":")" +
                                  kPassword + "\"}")
          .status,
      200);
  Json shown = bert.Show();
  EXPECT_EQ(shown["user"]["memberships"][0]["workspace"].str(), "workspaces/acme");
  EXPECT_EQ(shown["user"]["memberships"][0]["role"].str(), "developer");
  const std::string user = shown["user"]["name"].str().substr(6);

  pb::UpdateMemberRequest promote;
  promote.mutable_member()->set_name("workspaces/acme/members/" + user);
  promote.mutable_member()->set_role("owner");
  pb::Member member;
  Identity stale = Person(Role::ROLE_OWNER);
  stale.set_signed_in_us(NowUs() - 301'000'000);
  EXPECT_EQ(As(stale, *members_, &pb::MemberService::Stub::UpdateMember, promote, member),
            "STEP_UP_REQUIRED");
  EXPECT_EQ(As(Person(Role::ROLE_OWNER), *members_, &pb::MemberService::Stub::UpdateMember, promote,
               member),
            "");
  EXPECT_EQ(member.role(), "owner");
  EXPECT_EQ(bert.Show()["state"].str(), "SIGNED_OUT") << "a new role requires a new session";
  EXPECT_EQ(bert.Post("signIn", SignInBody("bert@example.com", kPassword)).status, 200);

  pb::DeleteMemberRequest leave;
  leave.set_name("workspaces/acme/members/me");
  pb::DeleteMemberResponse gone;
  EXPECT_EQ(As(Person(Role::ROLE_OWNER, user), *members_, &pb::MemberService::Stub::DeleteMember,
               leave, gone),
            "LAST_OWNER");
}

TEST_P(PeopleSessionTest, SessionsAndTokensAreOnesOwn) {
  Browser anna = SignedIn("anna@example.com");
  const std::string user = anna.Show()["user"]["name"].str().substr(6);
  Identity me = Person(Role::ROLE_OWNER, user);
  pb::ListSessionsRequest list;
  list.set_parent("users/me");
  pb::ListSessionsResponse sessions;
  ASSERT_EQ(As(me, *users_, &pb::UserService::Stub::ListSessions, list, sessions), "");
  ASSERT_EQ(sessions.sessions_size(), 1);
  list.set_parent("users/" + user);
  pb::ListSessionsResponse foreign;
  EXPECT_EQ(
      As(Person(Role::ROLE_OWNER), *users_, &pb::UserService::Stub::ListSessions, list, foreign),
      "PERMISSION_DENIED");
  pb::DeleteSessionRequest end;
  end.set_name(sessions.sessions(0).name());
  pb::DeleteSessionResponse ended;
  EXPECT_EQ(
      As(Person(Role::ROLE_OWNER), *users_, &pb::UserService::Stub::DeleteSession, end, ended),
      "PERMISSION_DENIED");
  EXPECT_EQ(As(me, *users_, &pb::UserService::Stub::DeleteSession, end, ended), "");
  EXPECT_EQ(anna.Show()["state"].str(), "SIGNED_OUT");

  pb::CreateTokenRequest create;
  create.set_parent("users/me");
  create.set_request_id("t1");
  create.mutable_token()->set_display_name("ci");
  create.mutable_token()->add_scopes("developer");
  create.mutable_token()->mutable_expire_time()->set_seconds(NowUs() / 1'000'000 + 3600);
  pb::CreateTokenResponse token;
  ASSERT_EQ(As(me, *users_, &pb::UserService::Stub::CreateToken, create, token), "");
  EXPECT_TRUE(token.secret().starts_with("tgp_"));
  EXPECT_FALSE(token.secret_shown());
  pb::CreateTokenResponse again;
  ASSERT_EQ(As(me, *users_, &pb::UserService::Stub::CreateToken, create, again), "");
  EXPECT_EQ(again.secret(), "");
  EXPECT_TRUE(again.secret_shown());
  EXPECT_EQ(again.token().name(), token.token().name());
  create.set_request_id("t2");
  create.mutable_token()->mutable_expire_time()->set_seconds(NowUs() / 1'000'000 + 367 * 86400);
  EXPECT_EQ(As(me, *users_, &pb::UserService::Stub::CreateToken, create, again), "INVALID_FIELD")
      << "more than a year";
  create.mutable_token()->mutable_expire_time()->set_seconds(NowUs() / 1'000'000 + 3600);
  create.mutable_token()->set_scopes(0, "operator");
  EXPECT_EQ(As(me, *users_, &pb::UserService::Stub::CreateToken, create, again), "INVALID_FIELD")
      << "a right that the person does not have";
  Identity by_token = me;
  by_token.set_by_token(true);
  by_token.add_scopes("owner");
  create.mutable_token()->set_scopes(0, "viewer");
  EXPECT_EQ(As(by_token, *users_, &pb::UserService::Stub::CreateToken, create, again),
            "PERMISSION_DENIED")
      << "a token cannot create tokens";
}

// An operator of the platform invites the first owner of a new workspace.
TEST_P(PeopleSessionTest, AnOperatorInvitesTheFirstOwner) {
  pb::CreateInvitationRequest invite;
  invite.set_parent("workspaces/acme");
  invite.mutable_invitation()->set_email("anna@example.com");
  invite.mutable_invitation()->set_role("owner");
  invite.set_request_id("i1");
  pb::CreateInvitationResponse invited;
  Identity token = Operator();
  token.set_by_token(true);
  token.add_scopes("viewer");
  EXPECT_EQ(
      As(token, *invitations_, &pb::InvitationService::Stub::CreateInvitation, invite, invited),
      "PERMISSION_DENIED")
      << "a token is an operator's only with the scope for it";
  Identity stale = Operator();
  stale.set_signed_in_us(NowUs() - 301'000'000);
  EXPECT_EQ(
      As(stale, *invitations_, &pb::InvitationService::Stub::CreateInvitation, invite, invited),
      "STEP_UP_REQUIRED");
  EXPECT_EQ(As(Operator(), *invitations_, &pb::InvitationService::Stub::CreateInvitation, invite,
               invited),
            "");
  EXPECT_NE(invited.accept_path(), "");
}

class SelfServiceTest : public PeopleSessionTest {
 protected:
  SelfServiceTest() { auth_settings_ = {"people: {self_service_workspaces: true}"}; }
};
INSTANTIATE_TEST_SUITE_P(Stores, SelfServiceTest, ::testing::Values("sqlite", "postgres"),
                         [](const auto& info) { return info.param; });

TEST_P(SelfServiceTest, WhoMakesAWorkspaceOwnsIt) {
  Browser anna = SignedIn("anna@example.com");
  Browser bert = SignedIn("bert@example.com");
  const auto call = [](const Browser& browser, const std::string& method, const std::string& path,
                       const std::string& body = "") {
    return Http(browser.port, method, "/admin/v1/" + path,
                {{"cookie", browser.cookie},
                 {"sec-fetch-site", "same-origin"},
                 {"x-csrf-token", browser.csrf},
                 {"content-type", "application/json"}},
                body);
  };
  const std::string create = "workspaces?workspaceId=annas&requestId=w1";
  const HttpResponse made = call(anna, "POST", create, R"({"displayName":"Anna's"})");
  ASSERT_EQ(made.status, 200) << made.body;
  EXPECT_EQ(made.json()["name"].str(), "workspaces/annas");
  EXPECT_EQ(call(anna, "POST", create, R"({"displayName":"Anna's"})").status, 200)
      << "the same request";
  EXPECT_EQ(anna.Show()["user"]["memberships"][0]["role"].str(), "owner");
  const HttpResponse balance = call(anna, "GET", "workspaces/annas/balance");
  EXPECT_EQ(balance.status, 200) << balance.body;
  const HttpResponse key =
      call(anna, "POST", "workspaces/annas/keys?requestId=k1", R"({"displayName":"first"})");
  EXPECT_EQ(key.status, 200) << key.body;
  EXPECT_EQ(call(bert, "GET", "workspaces/annas/balance").status, 403);
  EXPECT_EQ(call(bert, "POST", create, "{}").status, 409) << "taken";
  EXPECT_EQ(call(bert, "GET", "workspaces").json()["workspaces"].size(), 0U);
}

TEST_P(PeopleSessionTest, ADisabledPersonIsOutAtOnce) {
  Browser anna = SignedIn("anna@example.com");
  const std::string name = anna.Show()["user"]["name"].str();
  pb::UpdateUserRequest disable;
  disable.mutable_user()->set_name(name);
  disable.mutable_user()->set_state(pb::USER_STATE_DISABLED);
  pb::User user;
  EXPECT_EQ(
      As(Person(Role::ROLE_OWNER), *users_, &pb::UserService::Stub::UpdateUser, disable, user),
      "PERMISSION_DENIED");
  EXPECT_EQ(As(Operator(), *users_, &pb::UserService::Stub::UpdateUser, disable, user), "");
  EXPECT_EQ(anna.Show()["state"].str(), "SIGNED_OUT");
  EXPECT_EQ(anna.Post("signIn", SignInBody("anna@example.com", kPassword)).status, 401);
}

// The JSON admin API takes the cookie, with the CSRF token for changes, and access tokens.
TEST_P(PeopleSessionTest, CookiesAndTokensAreCredentialsOfTheAdminApi) {
  Browser anna = SignedIn("anna@example.com");
  const auto admin = [&](const std::string& method, const std::string& path, HeaderList headers,
                         const std::string& body = "") {
    return Http(anna.port, method, "/admin/v1/" + path, headers, body);
  };
  const std::string user = anna.Show()["user"]["name"].str();
  EXPECT_EQ(admin("GET", "users/me", {}).status, 401);
  EXPECT_EQ(admin("GET", "users/me", {{"cookie", "tollgate=wrong"}}).status, 401);
  const HttpResponse me = admin("GET", "users/me", {{"cookie", anna.cookie}});
  EXPECT_EQ(me.status, 200) << me.body;
  EXPECT_EQ(me.json()["name"].str(), user);
  EXPECT_EQ(me.json()["email"].str(), "anna@example.com");
  EXPECT_EQ(admin("GET", "workspaces/acme/balance", {{"cookie", anna.cookie}}).status, 403);

  const std::string rename = R"({"display_name":"Anna"})";
  EXPECT_EQ(admin("PATCH", "users/me", {{"cookie", anna.cookie}}, rename).status, 403);
  EXPECT_EQ(admin("PATCH", "users/me", {{"cookie", anna.cookie}, {"sec-fetch-site", "same-origin"}},
                  rename)
                .status,
            403)
      << "without the CSRF token";
  const HeaderList page = {
      {"cookie", anna.cookie}, {"sec-fetch-site", "same-origin"}, {"x-csrf-token", anna.csrf}};
  const HttpResponse renamed = admin("PATCH", "users/me", page, rename);
  EXPECT_EQ(renamed.status, 200) << renamed.body;
  EXPECT_EQ(renamed.json()["displayName"].str(), "Anna");

  // The front ignores identities that a client claims.
  EXPECT_EQ(admin("GET", "users",
                  {{"cookie", anna.cookie},
                   {"Grpc-Metadata-Tollgate-Identity-Bin", "AAAA"},
                   {"Grpc-Metadata-Tollgate-Operator", "root"}})
                .status,
            403);

  const Identity identity = Person(Role::ROLE_OWNER, user.substr(6));
  pb::CreateTokenRequest create;
  create.set_parent("users/me");
  create.set_request_id("t1");
  create.mutable_token()->set_display_name("ci");
  create.mutable_token()->add_scopes("viewer");
  create.mutable_token()->mutable_expire_time()->set_seconds(NowUs() / 1'000'000 + 3600);
  pb::CreateTokenResponse token;
  ASSERT_EQ(As(identity, *users_, &pb::UserService::Stub::CreateToken, create, token), "");
  const HeaderList bearer = {{"authorization", "Bearer " + token.secret()}};
  EXPECT_EQ(admin("GET", "users/me", bearer).json()["name"].str(), user);
  EXPECT_EQ(admin("PATCH", "users/me", bearer, rename).status, 403) << "a token is not its person";
  EXPECT_EQ(admin("GET", "users/me", {{"authorization", "Bearer tgp_wrong"}}).status, 401);
  EXPECT_EQ(
      admin("GET", "users/me", {{"authorization", "Bearer tgp_wrong"}, {"cookie", anna.cookie}})
          .status,
      401)
      << "a valid cookie does not replace a wrong token";
}

// Without a mail server, only an operator can reset a forgotten password.
TEST_P(PeopleSessionTest, WithoutMailAForgottenPasswordIsRefusedClearly) {
  Browser browser = NewBrowser();
  for (const char* email : {"anna@example.com", "nobody@example.com"}) {
    const HttpResponse asked =
        browser.Post("forgotPassword", R"({"email":")" + std::string(email) + "\"}");
    EXPECT_EQ(asked.status, 400);
    EXPECT_EQ(Reason(asked), "MAIL_OFF");
    EXPECT_NE(asked.json()["message"].str().find("ask an operator"), std::string::npos);
  }
  EXPECT_EQ(Reason(browser.Post("resetPassword",
                                R"({"token":"x","new_password":"correct horse battery"})")),
            "LINK_INVALID");
}

TEST_P(PeopleSessionTest, AnOperatorResetsASecondStepAndNobodyElse) {
  Browser anna = SignedIn("anna@example.com");
  const std::string name = anna.Show()["user"]["name"].str();
  pb::ResetTotpRequest reset;
  reset.set_name(name);
  pb::User user;
  EXPECT_EQ(As(Person(Role::ROLE_OWNER), *users_, &pb::UserService::Stub::ResetTotp, reset, user),
            "PERMISSION_DENIED");
  Identity stale = Operator();
  stale.set_signed_in_us(NowUs() - 301'000'000);
  EXPECT_EQ(As(stale, *users_, &pb::UserService::Stub::ResetTotp, reset, user), "STEP_UP_REQUIRED");
  EXPECT_EQ(As(Operator(), *users_, &pb::UserService::Stub::ResetTotp, reset, user), "TOTP_OFF");
  Identity herself = Operator();
  herself.set_user_id(name.substr(6));
  EXPECT_EQ(As(herself, *users_, &pb::UserService::Stub::ResetTotp, reset, user), "SAME_PERSON");
}

// An operator of the platform reads a workspace as its owner and cannot change it; its members see
// each session and may end it.
TEST_P(PeopleSessionTest, ASupportSessionReadsAndIsSeen) {
  const auto support = pb::SupportSessionService::NewStub(channel_);
  pb::CreateSupportSessionRequest create;
  create.set_parent("workspaces/acme");
  create.set_request_id("s1");
  create.mutable_support_session()->set_reason("ticket 12");
  pb::CreateSupportSessionResponse made;
  using Stub = pb::SupportSessionService::Stub;
  EXPECT_EQ(As(Person(Role::ROLE_OWNER), *support, &Stub::CreateSupportSession, create, made),
            "PERMISSION_DENIED");
  Identity stale = Operator();
  stale.set_signed_in_us(NowUs() - 301'000'000);
  EXPECT_EQ(As(stale, *support, &Stub::CreateSupportSession, create, made), "STEP_UP_REQUIRED");
  // The operator is a person with an account; see StillOperator.
  Identity known = Operator();
  pb::CreateUserRequest account;
  account.mutable_user()->set_email("op@example.com");
  account.mutable_user()->set_platform_operator(true);
  account.set_request_id("op");
  pb::CreateUserResponse account_made;
  ASSERT_EQ(As(Operator(), *users_, &pb::UserService::Stub::CreateUser, account, account_made), "");
  known.set_user_id(account_made.user().name().substr(6));
  ASSERT_EQ(As(known, *support, &Stub::CreateSupportSession, create, made), "");
  ASSERT_TRUE(made.secret().starts_with("tgs_"));
  const std::string name = made.support_session().name();
  const std::string id = name.substr(name.rfind('/') + 1);

  const int port = cluster_->dashboard_port();
  const auto call = [&](const std::string& method, const std::string& path,
                        const std::string& body = "") {
    return Http(
        port, method, "/admin/v1/" + path,
        {{"authorization", "Bearer " + made.secret()}, {"content-type", "application/json"}}, body);
  };
  for (const char* path : {"workspaces/acme", "workspaces/acme/keys", "workspaces/acme/balance",
                           "workspaces/acme/auditEntries", "workspaces/acme/members"}) {
    const HttpResponse read = call("GET", path);
    EXPECT_EQ(read.status, 200) << path << " " << read.body;
  }
  const std::pair<const char*, const char*> writes[] = {
      {"POST", "workspaces/acme/keys?requestId=k1"},
      {"PATCH", "workspaces/acme"},
      {"POST", "workspaces/acme:close"},
      {"POST", "workspaces/acme/invitations?requestId=i1"},
      {"PATCH", "workspaces/acme/cap"},
      {"POST", "workspaces/acme/supportSessions?requestId=s2"},
      {"DELETE", "workspaces/acme/members/x"},
      {"POST", "users/me/tokens?requestId=t1"},
      {"POST", "keys:reportLeak"}};
  for (const auto& [method, path] : writes) {
    const HttpResponse refused = call(method, path, "{}");
    EXPECT_EQ(refused.status, 403) << method << " " << path << " " << refused.body;
  }
  EXPECT_EQ(call("GET", "users").status, 403) << "not an operator's rights";
  EXPECT_EQ(call("GET", "users/me").status, 404) << "a support session has no account";
  EXPECT_EQ(call("GET", "workspaces/other/keys").status, 403) << "no other workspace";

  const HttpResponse log = call("GET", "workspaces/acme/auditEntries?pageSize=200");
  int uses = 0;
  std::string of_keys;
  const Json entries = log.json();
  for (const Json& entry : entries["auditEntries"].elements()) {
    // Refusals of the same actor are written later, in batches.
    if (entry["actor"].str() != "support:" + id || entry["action"].str() == "call.refuse") continue;
    ++uses;
    if (entry.Dump().find("GET /admin/v1/workspaces/acme/keys") != std::string::npos) {
      of_keys = entry.Dump();
    }
  }
  EXPECT_EQ(uses, 5 + 9 + 3 + 1) << log.body;
  EXPECT_NE(of_keys, "") << log.body;
  EXPECT_NE(log.body.find("ticket 12"), std::string::npos) << "the reason";

  pb::ListSupportSessionsRequest list;
  list.set_parent("workspaces/acme");
  pb::ListSupportSessionsResponse listed;
  EXPECT_EQ(As(Person(Role::ROLE_DEVELOPER), *support, &Stub::ListSupportSessions, list, listed),
            "PERMISSION_DENIED");
  ASSERT_EQ(As(Person(Role::ROLE_ADMIN), *support, &Stub::ListSupportSessions, list, listed), "");
  ASSERT_EQ(listed.support_sessions_size(), 1);
  EXPECT_EQ(listed.support_sessions(0).use_count(), uses);
  pb::EndSupportSessionRequest end;
  end.set_name(name);
  pb::SupportSession ended;
  EXPECT_EQ(As(Person(Role::ROLE_OWNER), *support, &Stub::EndSupportSession, end, ended), "");
  EXPECT_EQ(call("GET", "workspaces/acme").status, 401) << "ended at once";
}

// The key that seals second factors is derived from the pepper unless it has its own file.
TEST(PeopleStartTest, APepperIsNotRotatedWithoutASealKey) {
  ClusterOptions options;
  options.catalog = DefaultCatalog({"http://127.0.0.1:1"});  // no engine is asked
  options.auth_settings = {"retired_peppers: [{pepper: " + std::string(32, 'r') + "}]"};
  const std::string refused = Cluster(options).Start();
  EXPECT_NE(refused.find("requires auth.people.seal_key_file"), std::string::npos) << refused;
  TempDir folder;
  std::ofstream(folder.path() + "/seal_key") << std::string(64, 'a') << "\n";
  options.auth_settings.push_back("people: {seal_key_file: " + folder.path() + "/seal_key}");
  Cluster cluster(options);
  EXPECT_EQ(cluster.Start(), "");
  EXPECT_EQ(cluster.StopOrderly(), "");
}

// Secrets that were typed or issued are not in any log.
TEST_P(PeopleSessionTest, SecretsAreInNoLog) {
  Browser anna = SignedIn("anna@example.com");
  anna.Post("signIn", SignInBody("anna@example.com", "canary-wrong-password"));
  const std::string logs = cluster_->Logs();
  EXPECT_FALSE(logs.empty());
  for (const std::string& secret : {std::string(kPassword), std::string("canary-wrong-password"),
                                    anna.cookie.substr(anna.cookie.find('=') + 1), anna.csrf}) {
    ASSERT_GT(secret.size(), 8U);
    EXPECT_EQ(logs.find(secret), std::string::npos);
  }
}

}  // namespace
}  // namespace tollgate::test
