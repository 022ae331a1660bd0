#include "services/dashboard/http/web_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "common/observability/metrics.h"

namespace tollgate::dashboard {
namespace {

using ::testing::HasSubstr;

class WebFilesTest : public ::testing::Test {
 protected:
  WebFilesTest() {
    folder_ = std::filesystem::path(::testing::TempDir()) / ("web-" + std::to_string(::getpid()));
    Write("index.html", "<html>");
    Write("index.html.br", "br of html");
    Write("assets/main-1a2b.js", "script");
    Write("assets/main-1a2b.js.br", "br");
    Write("assets/main-1a2b.js.gz", "gz");
    Write("scheme.js", "scheme");
    Write("manifest.json", "{}");
  }
  ~WebFilesTest() override { std::filesystem::remove_all(folder_); }

  void Write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name) << text;
  }
  http::HttpResponse Send(const std::string& path, http::Headers headers = {},
                          const std::string& method = "GET") const {
    auto web = WebFiles::Load(folder_.string());
    EXPECT_TRUE(web.ok());
    return (*web)->Handle({.method = method, .path = path, .headers = std::move(headers)});
  }
  static std::string Header(const http::HttpResponse& response, std::string_view name) {
    for (const auto& [key, value] : response.headers) {
      if (key == name) return value;
    }
    return "";
  }

  std::filesystem::path folder_;
};

TEST_F(WebFilesTest, HashedNamesAreKeptForEverAndTheFirstPageIsAskedForAgain) {
  const auto script = Send("/assets/main-1a2b.js");
  EXPECT_EQ(script.status, 200);
  EXPECT_EQ(script.body, "script");
  EXPECT_EQ(Header(script, "content-type"), "text/javascript; charset=utf-8");
  EXPECT_EQ(Header(script, "cache-control"), "public, max-age=31536000, immutable");
  const auto page = Send("/");
  EXPECT_EQ(page.body, "<html>");
  EXPECT_EQ(Header(page, "content-type"), "text/html; charset=utf-8");
  EXPECT_EQ(Header(page, "cache-control"), "no-cache");
  EXPECT_EQ(Header(Send("/scheme.js"), "cache-control"), "no-cache") << "has no hash in its name";
}

TEST_F(WebFilesTest, AnUnchangedFileIsNotSentAgain) {
  const std::string etag = Header(Send("/"), "etag");
  ASSERT_FALSE(etag.empty());
  for (const std::string& known : {etag, "\"other\", W/" + etag, std::string("*")}) {
    const auto again = Send("/", {{"if-none-match", known}});
    EXPECT_EQ(again.status, 304) << known;
    EXPECT_EQ(again.body, "");
    EXPECT_EQ(Header(again, "etag"), etag);
  }
  EXPECT_EQ(Send("/", {{"if-none-match", "\"other\""}}).status, 200);
  EXPECT_EQ(Send("/", {{"if-none-match", etag}, {"accept-encoding", "br"}}).status, 200)
      << "each coding has its own tag";
}

TEST_F(WebFilesTest, TheBestCodingThatTheBrowserTakesIsSent) {
  const std::string path = "/assets/main-1a2b.js";
  const std::pair<const char*, const char*> cases[] = {
      {"gzip, deflate, br", "br"},      {"gzip", "gz"},     {"br;q=0, gzip", "gz"}, {"", "script"},
      {"br;q=0.0, gzip;q=0", "script"}, {"br;q=0.5", "br"}, {"identity", "script"}};
  for (const auto& [accepted, body] : cases) {
    const auto sent = Send(path, {{"accept-encoding", accepted}});
    EXPECT_EQ(sent.body, body) << accepted;
    EXPECT_EQ(Header(sent, "vary"), "accept-encoding");
  }
  EXPECT_EQ(Header(Send(path, {{"accept-encoding", "br"}}), "content-encoding"), "br");
  EXPECT_EQ(Send("/", {{"accept-encoding", "gzip"}}).body, "<html>") << "there is no gzip of it";
}

TEST_F(WebFilesTest, PagesGetTheApplicationAndUnknownFilesDoNot) {
  for (const char* path : {"/", "/sign-in", "/w/acme", "/w/acme/models/meta/llama-3.3-70b",
                           "/operator/workspaces", "/administer"}) {
    EXPECT_EQ(Send(path).body, "<html>") << path;
  }
  // A missing script, as after an update, must get 404 and not a page. An interface must never get
  // a page.
  for (const char* path :
       {"/assets/main-old.js", "/assets/main", "/favicon.ico", "/admin", "/admin/v1/x",
        "/session/v1/x", "/playground/v1/x", "/manifest.json", "/csp-report", "/../index.html"}) {
    EXPECT_EQ(Send(path).status, 404) << path;
  }
}

TEST_F(WebFilesTest, OnlyReadingIsAnswered) {
  EXPECT_EQ(Send("/", {}, "HEAD").status, 200);
  const auto posted = Send("/", {}, "POST");
  EXPECT_EQ(posted.status, 405);
  EXPECT_EQ(Header(posted, "allow"), "GET, HEAD");
}

TEST_F(WebFilesTest, EveryAnswerHasTheSecurityHeaders) {
  for (const char* path : {"/", "/assets/main-1a2b.js", "/assets/gone.js"}) {
    const auto sent = Send(path);
    const std::string policy = Header(sent, "content-security-policy");
    for (const char* part :
         {"default-src 'none'", "script-src 'self'", "style-src 'self'", "frame-ancestors 'none'",
          "base-uri 'none'", "require-trusted-types-for 'script'", "report-uri /csp-report"}) {
      EXPECT_THAT(policy, HasSubstr(part)) << path;
    }
    EXPECT_EQ(policy.find("unsafe"), std::string::npos);
    EXPECT_EQ(Header(sent, "referrer-policy"), "no-referrer");
    EXPECT_EQ(Header(sent, "cross-origin-opener-policy"), "same-origin");
    EXPECT_THAT(Header(sent, "permissions-policy"), HasSubstr("camera=()"));
  }
}

TEST_F(WebFilesTest, AFolderWithoutTheApplicationIsRefusedAtStart) {
  EXPECT_FALSE(WebFiles::Load((folder_ / "none").string()).ok());
  std::filesystem::remove(folder_ / "index.html");
  EXPECT_FALSE(WebFiles::Load(folder_.string()).ok());
}

TEST(CspReport, IsCounted) {
  auto& counter = metrics::Counter("tollgate_dashboard_csp_reports_total", "");
  EXPECT_EQ(CountCspReport().status, 204);
  const double before = counter.Value();
  CountCspReport();
  EXPECT_EQ(counter.Value(), before + 1);
}

}  // namespace
}  // namespace tollgate::dashboard
