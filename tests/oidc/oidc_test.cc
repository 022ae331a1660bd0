// Decision 63: sign-in with a real OpenID Connect provider.
#include <gtest/gtest.h>

#include <cstdlib>
#include <ctime>
#include <fstream>
#include <map>
#include <sstream>

#include "tests/support/cluster.h"
#include "tests/support/http.h"
#include "tests/support/process.h"

namespace tollgate::test {
namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

class OidcTest : public ::testing::Test {
 protected:
  void SetUp() override {
    const char* script = std::getenv("TOLLGATE_OIDC_PROVIDER");
    const char* packages = std::getenv("TOLLGATE_OIDC_PACKAGES");
    if (script == nullptr || packages == nullptr) GTEST_SKIP() << "run this with tests/oidc/run";
    WriteFile(dir_.path() + "/client-secret", "secret of the client: with / and +\n");
    // The dashboard's port is unknown before it starts; the redirect address is its public one, and
    // the test follows it itself.
    const std::string log = dir_.path() + "/provider.log";
    provider_ = std::make_unique<Process>(
        "oidc-provider",
        std::vector<std::string>{"/usr/bin/env", "node", script, packages,
                                 "http://dashboard.test/session/v1/oidc/callback"},
        log);
    ASSERT_TRUE(provider_->Start());
    ASSERT_TRUE(
        WaitUntil([&] { return ReadFile(log).find("{\"port\":") != std::string::npos; }, 30'000))
        << ReadFile(log);
    const std::string text = ReadFile(log);
    provider_port_ = std::atoi(text.c_str() + text.find("{\"port\":") + 8);
    ASSERT_GT(provider_port_, 0) << text;
    ClusterOptions options;
    options.catalog = DefaultCatalog({"http://127.0.0.1:1"});  // no engine is asked
    options.auth_settings = {
        "people: {oidc: {issuer: \"http://127.0.0.1:" + std::to_string(provider_port_) +
        "\", client_id: tollgate, client_secret_file: " + dir_.path() +
        "/client-secret, allowed_domains: [example.com]}}"};
    options.dashboard_settings = {"public_url: http://dashboard.test"};
    cluster_ = std::make_unique<Cluster>(options);
    ASSERT_EQ(cluster_->Start(), "");
  }
  void TearDown() override {
    if (cluster_) {
      EXPECT_EQ(cluster_->StopOrderly(), "");
    }
    if (provider_) provider_->Terminate();
  }

  void SetAccount(const std::string& json) {
    EXPECT_EQ(Http(provider_port_, "POST", "/test/account", {}, json).status, 200);
  }

  // Cookies of one host by name.
  struct Jar {
    std::map<std::string, std::string> cookies;
    HttpResponse Get(int port, const std::string& target) {
      std::string line;
      for (const auto& [name, value] : cookies) {
        line += (line.empty() ? "" : "; ") + name + "=" + value;
      }
      HeaderList headers;
      if (!line.empty()) headers.emplace_back("cookie", line);
      HttpResponse response = Http(port, "GET", target, headers);
      for (const auto& [name, value] : response.headers) {
        if (name != "set-cookie") continue;
        const size_t equals = value.find('=');
        cookies[value.substr(0, equals)] = value.substr(equals + 1, value.find(';') - equals - 1);
      }
      return response;
    }
  };
  static std::string PathOf(const std::string& url) {
    const size_t host = url.find("://");
    return host == std::string::npos ? url : url.substr(url.find('/', host + 3));
  }

  // Starts at the dashboard and follows the provider until it redirects the browser back; returns
  // the path of the callback with its query.
  std::string AtTheProvider(Jar& dashboard, const std::string& return_path = "",
                            bool step_up = false) {
    const HttpResponse start = dashboard.Get(
        cluster_->dashboard_port(),
        "/session/v1/oidc/start?return_path=" + return_path + (step_up ? "&step_up=1" : ""));
    EXPECT_EQ(start.status, 303) << start.body;
    std::string next = start.header("location");
    EXPECT_NE(next.find("code_challenge_method=S256"), std::string::npos) << next;
    Jar provider;
    for (int hop = 0; hop < 10; ++hop) {
      if (next.starts_with("http://dashboard.test/")) return PathOf(next);
      const HttpResponse response = provider.Get(provider_port_, PathOf(next));
      if (response.header("location").empty()) {
        ADD_FAILURE() << response.status << " " << response.body << provider_->LogTail();
        return "";
      }
      next = response.header("location");
    }
    ADD_FAILURE() << "too many redirects: " << next;
    return "";
  }
  HttpResponse Finish(Jar& dashboard, const std::string& callback) {
    return dashboard.Get(cluster_->dashboard_port(), callback);
  }
  Json Show(Jar& dashboard) {
    return dashboard.Get(cluster_->dashboard_port(), "/session/v1/session").json();
  }

  TempDir dir_;
  std::unique_ptr<Process> provider_;
  std::unique_ptr<Cluster> cluster_;
  int provider_port_ = 0;
};

constexpr char kAnna[] =
    R"({"sub":"anna-1","email":"anna@example.com","email_verified":true,"name":"Anna Berg"})";

TEST_F(OidcTest, APersonWhomTheProviderKnowsIsSignedIn) {
  SetAccount(kAnna);
  Jar browser;
  const HttpResponse done = Finish(browser, AtTheProvider(browser, "%2Fkeys%3Fnew"));
  EXPECT_EQ(done.status, 303);
  EXPECT_EQ(done.header("location"), "/keys?new");
  Json shown = Show(browser);
  EXPECT_EQ(shown["state"].str(), "SIGNED_IN");
  EXPECT_EQ(shown["user"]["display_name"].str(), "Anna Berg");
  const std::string user = shown["user"]["name"].str();
  // The subject identifies the person, whatever the address is now.
  SetAccount(R"({"sub":"anna-1","email":"other@elsewhere.org","email_verified":false,"name":"A"})");
  Jar again;
  Finish(again, AtTheProvider(again));
  EXPECT_EQ(Show(again)["user"]["name"].str(), user);
}

TEST_F(OidcTest, OthersAreNot) {
  for (const char* account :
       {R"({"sub":"x","email":"x@stranger.org","email_verified":true,"name":"X"})",
        R"({"sub":"y","email":"y@example.com","email_verified":false,"name":"Y"})", "null"}) {
    SetAccount(account);
    Jar browser;
    const HttpResponse done = Finish(browser, AtTheProvider(browser));
    EXPECT_EQ(done.header("location"), "/#/sign-in/SIGN_IN_FAILED") << account;
    EXPECT_EQ(Show(browser)["state"].str(), "SIGNED_OUT") << account;
  }
}

// A code, a state or a browser of another sign-in is refused.
TEST_F(OidcTest, TheAnswerBelongsToTheBrowserThatBegan) {
  SetAccount(kAnna);
  Jar browser, victim;
  const std::string callback = AtTheProvider(browser);
  EXPECT_EQ(Finish(victim, callback).header("location"), "/#/sign-in/SIGN_IN_FAILED")
      << "a browser that did not begin the sign-in";
  Jar other;
  const std::string others = AtTheProvider(other);
  EXPECT_EQ(Finish(other, callback).header("location"), "/#/sign-in/SIGN_IN_FAILED")
      << "another state";
  std::string forged = callback;
  const size_t iss = forged.find("iss=");
  ASSERT_NE(iss, std::string::npos) << "the provider sends the issuer (RFC 9207): " << callback;
  forged.replace(
      iss,
      forged.find('&', iss) == std::string::npos ? std::string::npos : forged.find('&', iss) - iss,
      "iss=http%3A%2F%2Fevil.test");
  Jar third = browser;
  EXPECT_EQ(Finish(third, forged).header("location"), "/#/sign-in/SIGN_IN_FAILED")
      << "another issuer";
  Jar fourth = browser;
  EXPECT_EQ(Finish(browser, callback).header("location"), "/");
  EXPECT_EQ(Finish(fourth, callback).header("location"), "/#/sign-in/SIGN_IN_FAILED")
      << "a code works once";
}

// A sign-in is fresh when the provider says that it has just authenticated the person; a step-up
// requests that.
TEST_F(OidcTest, AStepUpIsAFreshSignInAtTheProvider) {
  SetAccount(kAnna);
  Jar browser;
  ASSERT_EQ(Finish(browser, AtTheProvider(browser)).header("location"), "/");
  EXPECT_EQ(Show(browser)["signed_in_us"].integer(-1), 0)
      << "the provider does not say when it authenticated";
  const std::string old = browser.cookies["tollgate"];
  const int64_t before_us = std::time(nullptr) * int64_t{1'000'000};
  ASSERT_EQ(Finish(browser, AtTheProvider(browser, "%2Fkeys", true)).header("location"), "/keys");
  EXPECT_GE(Show(browser)["signed_in_us"].integer(), before_us - 1'000'000);
  EXPECT_NE(browser.cookies["tollgate"], old) << "a new session";

  SetAccount(R"({"sub":"bert-1","email":"bert@example.com","email_verified":true,"name":"Bert"})");
  const std::string of_bert = AtTheProvider(browser, "", true);
  EXPECT_EQ(Finish(browser, of_bert).header("location"), "/#/sign-in/SIGN_IN_FAILED")
      << "another person";
  EXPECT_EQ(Show(browser)["user"]["display_name"].str(), "Anna Berg") << "the session goes on";
}

TEST_F(OidcTest, AProviderThatDoesNotAskAgainMakesNoStepUp) {
  SetAccount(kAnna);
  Jar browser;
  ASSERT_EQ(Finish(browser, AtTheProvider(browser)).header("location"), "/");
  EXPECT_EQ(Http(provider_port_, "POST", "/test/never-ask-again").status, 200);
  EXPECT_EQ(Finish(browser, AtTheProvider(browser, "", true)).header("location"),
            "/#/sign-in/OIDC_NOT_FRESH");
  EXPECT_EQ(Show(browser)["signed_in_us"].integer(-1), 0);
  EXPECT_EQ(Show(browser)["state"].str(), "SIGNED_IN") << "the session goes on";
}

// An open redirect is not possible.
TEST_F(OidcTest, OnlyPagesOfTheDashboardAreReturnedTo) {
  SetAccount(kAnna);
  for (const char* path : {"https:%2F%2Fevil.test", "%2F%2Fevil.test", "%2F%5Cevil.test", "keys"}) {
    Jar browser;
    EXPECT_EQ(Finish(browser, AtTheProvider(browser, path)).header("location"), "/") << path;
  }
}

TEST_F(OidcTest, AProviderThatIsGoneIsToldAndNobodyIsSignedIn) {
  SetAccount(kAnna);
  Jar browser;
  const std::string callback = AtTheProvider(browser);
  provider_->Kill();
  EXPECT_EQ(Finish(browser, callback).header("location"), "/#/sign-in/OIDC_UNAVAILABLE");
  EXPECT_EQ(Show(browser)["state"].str(), "SIGNED_OUT");
}

}  // namespace
}  // namespace tollgate::test
