// Uses an HTTP server in place of the gateway. tests/integration has tests with a real one.
#include "services/dashboard/http/playground.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <future>

#include "common/http/server.h"
#include "common/http/testing/raw_client.h"
#include "common/runtime/notify.h"
#include "common/runtime/testing/run_coro.h"

namespace tollgate::dashboard {
namespace {

using ::testing::HasSubstr;

constexpr char kChat[] = "/playground/v1/chat/completions";
const http::Headers kPage = {{"sec-fetch-site", "same-origin"}, {"authorization", "Bearer sk-key"}};

class PlaygroundTest : public ::testing::Test {
 protected:
  PlaygroundTest() {
    pool_.Start();
    gateway_ = std::make_unique<http::Server>(
        pool_, http::ServerOptions{},
        [this](http::Exchange& exchange) -> Task<void> { return Upstream(exchange); });
    EXPECT_TRUE(gateway_->Listen("127.0.0.1:0").ok());
    Open("http://" + gateway_->address() + "/base");
  }
  ~PlaygroundTest() override {
    server_->Stop();
    playground_->Stop();
    gateway_->Stop();
    pool_.Stop();
  }
  void Open(const std::string& gateway_url) {
    if (server_) {
      server_->Stop();
      playground_->Stop();
    }
    auto made = Playground::Make(pool_, {.gateway_url = gateway_url, .max_requests = 2});
    ASSERT_TRUE(made.ok());
    playground_ = std::move(*made);
    server_ = std::make_unique<http::Server>(
        pool_, http::ServerOptions{},
        [this](http::Exchange& exchange) { return playground_->Serve(exchange); });
    ASSERT_TRUE(server_->Listen("127.0.0.1:0").ok());
  }
  // "/base/v1/held" streams a piece and waits until the client disconnects.
  Task<void> Upstream(http::Exchange& exchange) {
    seen_ = exchange.request();
    const std::string& path = exchange.request().path;
    if (path == "/base/v1/held") {
      (void)co_await exchange.BeginStream(200, {{"content-type", "text/event-stream"}});
      (void)co_await exchange.Write("data: first\n\n");
      Event left(exchange.loop());
      exchange.OnDisconnect([&left] { left.Set(); });
      co_await left.Wait();
      left_.set_value();
      co_return;
    }
    if (path == "/base/v1/broken") {
      (void)co_await exchange.BeginStream(200, {});
      (void)co_await exchange.Write("data: first\n\n");
      exchange.Abort();
      co_return;
    }
    http::HttpResponse response{.status = 418, .body = "the body"};
    response.headers = {{"content-type", "text/x-test"},
                        {"set-cookie", "a=b"},
                        {"strict-transport-security", "max-age=1"},
                        {"access-control-allow-origin", "*"},
                        {"x-ratelimit-remaining-requests", "7"}};
    (void)co_await exchange.Send(std::move(response));
  }
  http::ClientResult<http::WholeResponse> Fetch(const std::string& method,
                                                const std::string& target, http::Headers headers,
                                                const std::string& body = "") {
    http::ClientResult<http::WholeResponse> answer = Fail{http::ClientError{}};
    tollgate::testing::RunOn(pool_.loop(0), [&](Loop& loop) -> Task<int> {
      http::Client client(loop, {});
      http::ClientRequest request;
      request.method = method;
      request.origin = http::ParseBaseUrl("http://" + server_->address())->origin;
      request.target = target;
      request.headers = headers;
      request.body = body;
      answer = co_await client.Fetch(std::move(request));
      co_return 0;
    });
    return answer;
  }
  int StatusOf(const std::string& method, const std::string& target, http::Headers headers) {
    const auto answer = Fetch(method, target, std::move(headers));
    return answer.ok() ? answer->head.status : 0;
  }
  static std::string GetHeld() {
    return "GET /playground/v1/held HTTP/1.1\r\nHost: t\r\nSec-Fetch-Site: same-origin\r\n\r\n";
  }

  LoopPool pool_{1};
  http::HttpRequest seen_;
  std::promise<void> left_;
  std::unique_ptr<http::Server> gateway_;
  std::unique_ptr<Playground> playground_;
  std::unique_ptr<http::Server> server_;
};

TEST_F(PlaygroundTest, ARequestIsPassedWithItsKeyAndWithoutCookies) {
  http::Headers headers = kPage;
  headers.emplace_back("cookie", "tollgate=secret-session");
  headers.emplace_back("x-csrf-token", "t");
  headers.emplace_back("referer", "http://dash/");
  headers.emplace_back("anthropic-version", "2023-06-01");
  headers.emplace_back("x-forwarded-for", "203.0.113.9");
  headers.emplace_back("connection", "x-hop");
  headers.emplace_back("x-hop", "1");
  const auto answer = Fetch("POST", std::string(kChat) + "?a=b%20c", headers, "{\"x\":1}");
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(seen_.method, "POST");
  EXPECT_EQ(seen_.path, "/base/v1/chat/completions");
  EXPECT_EQ(seen_.query, "a=b%20c");
  EXPECT_EQ(seen_.body, "{\"x\":1}");
  EXPECT_EQ(seen_.header("authorization"), "Bearer sk-key");
  EXPECT_EQ(seen_.header("anthropic-version"), "2023-06-01");
  EXPECT_EQ(seen_.header("x-forwarded-for"), "127.0.0.1")
      << "the browser's, as the dashboard saw it";
  for (const char* name : {"cookie", "x-csrf-token", "referer", "sec-fetch-site", "x-hop"}) {
    EXPECT_EQ(seen_.header(name), "") << name;
  }
  EXPECT_EQ(answer->head.status, 418);
  EXPECT_EQ(answer->body, "the body");
  EXPECT_EQ(answer->head.header("content-type"), "text/x-test");
  EXPECT_EQ(answer->head.header("x-ratelimit-remaining-requests"), "7");
  EXPECT_EQ(answer->head.header("set-cookie"), "");
  EXPECT_EQ(answer->head.header("access-control-allow-origin"), "");
  EXPECT_EQ(answer->head.header("strict-transport-security"), "") << "the dashboard adds its own";
  EXPECT_EQ(answer->head.header("x-request-id"), seen_.x_request_id)
      << "the id by which the receipt is found";
}

TEST_F(PlaygroundTest, OnlyPagesOfTheDashboardMayUseIt) {
  seen_ = {};
  EXPECT_EQ(StatusOf("POST", kChat, {{"authorization", "Bearer sk-key"}}), 403);
  EXPECT_EQ(StatusOf("POST", kChat, {{"sec-fetch-site", "cross-site"}}), 403);
  EXPECT_EQ(StatusOf("POST", kChat, {{"origin", "https://evil.example"}}), 403);
  EXPECT_EQ(StatusOf("GET", "/playground/v1/models", {{"sec-fetch-site", "same-site"}}), 403);
  EXPECT_EQ(seen_.path, "") << "nothing reached the gateway";
  EXPECT_EQ(StatusOf("POST", kChat, {{"origin", "http://" + server_->address()}}), 418);
}

TEST_F(PlaygroundTest, OtherPathsAndMethodsAreNotFound) {
  EXPECT_EQ(StatusOf("GET", "/playground/", kPage), 404);
  EXPECT_EQ(StatusOf("GET", "/playground/api/v1/usage", kPage), 404);
  EXPECT_EQ(StatusOf("GET", "/playground/v1", kPage), 404);
  EXPECT_EQ(StatusOf("DELETE", kChat, kPage), 404);
  Open("");
  EXPECT_EQ(StatusOf("POST", kChat, kPage), 404) << "no gateway is configured";
}

TEST_F(PlaygroundTest, PiecesArePassedAsTheyComeAndALeavingBrowserEndsTheCall) {
  {
    http::testing::RawClient browser(server_->port());
    browser.Write(GetHeld());
    EXPECT_THAT(browser.ReadUntil("data: first"), HasSubstr("data: first"))
        << "the gateway has not ended its answer";
    browser.CloseWithReset();
  }
  EXPECT_EQ(left_.get_future().wait_for(std::chrono::seconds(60)), std::future_status::ready);
}

TEST_F(PlaygroundTest, MoreThanItsBoundAreRefusedUntilOneEnds) {
  http::testing::RawClient first(server_->port()), second(server_->port());
  for (auto* browser : {&first, &second}) {
    browser->Write(GetHeld());
    browser->ReadUntil("data: first");
  }
  const auto refused = Fetch("POST", kChat, kPage);
  ASSERT_TRUE(refused.ok());
  EXPECT_EQ(refused->head.status, 503);
  EXPECT_FALSE(refused->head.header("retry-after").empty());
  first.CloseWithReset();
  left_.get_future().wait();
  left_ = {};
  EXPECT_EQ(StatusOf("POST", kChat, kPage), 418);
}

TEST_F(PlaygroundTest, ABrokenAnswerDoesNotSeemWhole) {
  const auto answer = Fetch("GET", "/playground/v1/broken", kPage);
  EXPECT_FALSE(answer.ok());
}

TEST_F(PlaygroundTest, AGatewayThatIsGoneIsA503) {
  gateway_->Stop();
  const auto answer = Fetch("POST", kChat, kPage);
  ASSERT_TRUE(answer.ok());
  EXPECT_EQ(answer->head.status, 503);
  EXPECT_THAT(answer->body, HasSubstr("service_unavailable"));
}

TEST(PlaygroundUrlTest, ANonsensicalUrlIsAnErrorAtTheStart) {
  LoopPool pool(1);
  pool.Start();
  EXPECT_FALSE(Playground::Make(pool, {.gateway_url = "gateway:8080"}).ok());
  pool.Stop();
}

}  // namespace
}  // namespace tollgate::dashboard
