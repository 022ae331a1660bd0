#include "gateway/edge/edge.h"

#include <gtest/gtest.h>

#include <sstream>
#include <vector>

#include "common/http/testing/raw_client.h"
#include "common/observability/metrics.h"
#include "gateway/edge/request_failure.h"

namespace tollgate::gateway {
namespace {

using http::testing::Count;
using http::testing::RawClient;

Task<void> AnswerName(Exchange& exchange, const Endpoint& endpoint) {
  co_await exchange.Send({200, {}, "endpoint " + endpoint.name});
}

class EdgeTest : public ::testing::Test {
 protected:
  void Start(EdgeOptions options = {}) {
    EndpointTable table;
    table.Add({"GET", "/v1/models", "models", Family::kOpenAi, CredentialRule::kOptionalBearer,
               AnswerName});
    table.Add({"POST", "/v1/chat/completions", "chat_completions", Family::kOpenAi,
               CredentialRule::kBearer, AnswerName});
    table.Add({"POST", "/v1/messages", "messages", Family::kMessages,
               CredentialRule::kBearerOrApiKey, AnswerName});
    edge_ = std::make_unique<Edge>(
        pool_, std::move(options), std::move(table),
        [](Family family, const Error& error, const HttpRequest&) {
          std::string name = family == Family::kMessages ? "messages" : "openai";
          return HttpResponse{
              error.row().http_status, {}, name + " " + std::string(error.row().code)};
        });
    pool_.Start();
    ASSERT_TRUE(edge_->Listen("127.0.0.1:0").ok());
  }
  // Sends one request and returns the raw bytes of the response.
  std::string Ask(const std::string& line, const std::string& fields = "",
                  const std::string& body = "") {
    RawClient client(edge_->port());
    std::string length =
        body.empty() ? "" : "Content-Length: " + std::to_string(body.size()) + "\r\n";
    client.Write(line + " HTTP/1.1\r\nHost: t\r\nConnection: close\r\n" + length + fields + "\r\n" +
                 body);
    return client.ReadToEnd();
  }
  ~EdgeTest() override { edge_.reset(); }

  LoopPool pool_{1};
  std::unique_ptr<Edge> edge_;
};

TEST_F(EdgeTest, MatchesMethodAndPathExactlyAndIgnoresTheQuery) {
  Start();
  EXPECT_TRUE(Ask("GET /v1/models").ends_with("endpoint models"));
  EXPECT_TRUE(Ask("GET /v1/models?a=b").ends_with("endpoint models"));
  EXPECT_TRUE(Ask("POST /v1/messages?beta=true", "", "{}").ends_with("endpoint messages"));
  EXPECT_TRUE(Ask("POST /v1/chat/completions", "", "{}").ends_with("endpoint chat_completions"));
}

TEST_F(EdgeTest, UnknownPathsAreNotFoundInTheirFamilysEnvelope) {
  Start();
  for (const char* line :
       {"GET /", "GET //v1//models", "GET /v1/%6dodels", "GET /v1/../v1/models",
        "GET /v1/models%00", "GET /v1/models/x", "GET /v1/models/", "GET /V1/models",
        "GET /v1/chat/completions", "POST /v1/models", "OPTIONS /v1/models", "TRACE /v1/models",
        "post /v1/chat/completions", "DELETE /v1/models", "GET /openai/v1/nothing"}) {
    std::string answer = Ask(line);
    EXPECT_TRUE(answer.starts_with("HTTP/1.1 404 ")) << line;
    EXPECT_TRUE(answer.ends_with("openai not_found")) << line << answer;
  }
  EXPECT_TRUE(Ask("HEAD /v1/messages").starts_with("HTTP/1.1 404 "));
  for (const char* line : {"GET /v1/messages", "POST /v1/messages/", "POST /v1/messages/batches"}) {
    EXPECT_TRUE(Ask(line).ends_with("messages not_found")) << line;
  }
}

// RFC 9110 9.3.2: HEAD returns the header fields of GET, Content-Length included, and no body.
TEST_F(EdgeTest, HeadIsGetWithoutTheBody) {
  Start();
  const std::string head = Ask("HEAD /v1/models?x=y");
  EXPECT_TRUE(head.starts_with("HTTP/1.1 200 ")) << head;
  EXPECT_NE(head.find("content-length: 15\r\n"), std::string::npos) << head;
  EXPECT_TRUE(head.ends_with("\r\n\r\n")) << head;
  // The next request on the same connection must be read from its first byte.
  RawClient client(edge_->port());
  client.Write("HEAD /v1/models HTTP/1.1\r\nHost: t\r\n\r\n");
  EXPECT_TRUE(client.ReadUntil("\r\n\r\n").starts_with("HTTP/1.1 200 "));
  client.Write("GET /v1/models HTTP/1.1\r\nHost: t\r\nConnection: close\r\n\r\n");
  EXPECT_TRUE(client.ReadToEnd().starts_with("HTTP/1.1 200 "));
}

TEST_F(EdgeTest, UnknownPathsAreNotAskedForABody) {
  Start();
  const std::string expect = "Expect: 100-continue\r\nContent-Length: 5\r\n";
  EXPECT_TRUE(Ask("POST /v1/nothing", expect).starts_with("HTTP/1.1 404 "));
  EXPECT_TRUE(Ask("PUT /v1/messages", expect).ends_with("messages not_found"));
  RawClient client(edge_->port());
  client.Write("POST /v1/messages HTTP/1.1\r\nHost: t\r\n" + expect + "\r\n");
  EXPECT_EQ(client.ReadUntil("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
}

// Decisions 16 and 46.
TEST_F(EdgeTest, ThePathIsJudgedBeforeTheBodyAndBeforeTheCredential) {
  EdgeOptions options;
  std::string judged;
  options.judge_head = [&judged](const Endpoint& endpoint, const HttpRequest& request, Loop&) {
    judged += endpoint.name + " ";
    http::HeadVerdict verdict;
    if (request.header("authorization").empty()) verdict.refusal = HttpResponse{401, {}, "no key"};
    return verdict;
  };
  Start(std::move(options));
  for (const std::string body :
       {"Content-Length: 16000000\r\n", "Transfer-Encoding: chunked\r\n"}) {
    EXPECT_TRUE(Ask("POST /v1/nothing", body).ends_with("openai not_found"));
    EXPECT_TRUE(Ask("POST /v1/messages/batches", body).ends_with("messages not_found"));
    EXPECT_TRUE(Ask("HEAD /v1/messages", body).starts_with("HTTP/1.1 404 "));
    EXPECT_EQ(judged, "");
    EXPECT_TRUE(Ask("POST /v1/messages", body).ends_with("no key"));
    EXPECT_EQ(judged, "messages ");
    judged.clear();
  }
  const std::string key = "Authorization: Bearer x\r\n";
  EXPECT_TRUE(Ask("POST /v1/messages", key + "Content-Length: 16777217\r\n")
                  .ends_with("messages bad_request"));
}

TEST_F(EdgeTest, TheLogLineAndTheMetricSayWhyARequestWasRefused) {
  const auto denials = [](const std::string& reason) {
    return metrics::Counter("tollgate_gateway_denials_total", "", {{"reason", reason}}).Value();
  };
  EdgeOptions options;
  options.server.max_body_bytes = 10;
  options.judge_head = [](const Endpoint&, HttpRequest& request, Loop&) {
    NoteCaller(request, "key-1", "acme");
    if (request.header("authorization").empty()) return http::HeadVerdict{};
    NoteFailure(request, {.id = ErrorId::kRateLimited, .reason = Reason::kHeld});
    return http::HeadVerdict{HttpResponse{429, {}, ""}, std::nullopt};
  };
  Start(std::move(options));
  const double before = denials("held");
  ::testing::internal::CaptureStderr();
  Ask("POST /v1/messages", "Authorization: Bearer x\r\nContent-Length: 9\r\n");
  Ask("POST /v1/messages", "", "12345678901");
  Ask("GET /nowhere");
  Ask("GET /v1/models");
  edge_.reset();
  std::istringstream log(::testing::internal::GetCapturedStderr());
  std::vector<std::string> lines;
  for (std::string line; std::getline(log, line);) {
    if (line.find("\"message\":\"request\"") != std::string::npos) lines.push_back(line);
  }
  ASSERT_EQ(lines.size(), 4u);
  const auto has = [](const std::string& line, const std::string& text) {
    return line.find(text) != std::string::npos;
  };
  EXPECT_TRUE(has(lines[0], R"("code":"rate_limited","reason":"held")")) << lines[0];
  EXPECT_TRUE(has(lines[0], R"("key_id":"key-1","workspace":"acme")")) << lines[0];
  EXPECT_TRUE(has(lines[1], R"("code":"bad_request","reason":"body_too_large")")) << lines[1];
  EXPECT_TRUE(has(lines[2], R"("code":"not_found","reason":"no_endpoint")")) << lines[2];
  for (const char* field : {"\"code\"", "\"reason\"", "\"key_id\"", "\"workspace\""}) {
    EXPECT_FALSE(has(lines[3], field)) << lines[3];
  }
  EXPECT_EQ(denials("held"), before + 1);
}

// So that alerts see the first increase.
TEST_F(EdgeTest, EveryReasonHasASeriesFromTheStart) {
  Start();
  const std::string text = metrics::Render();
  for (int i = 1; i < kReasonCount; ++i) {
    const std::string name(NameOf(static_cast<Reason>(i)));
    EXPECT_NE(text.find("tollgate_gateway_denials_total{reason=\"" + name + "\"}"),
              std::string::npos)
        << name;
  }
}

TEST_F(EdgeTest, FramingErrorsUseTheFamilyOfThePath) {
  Start();
  EXPECT_TRUE(Ask("POST /v1/messages", "Transfer-Encoding: identity\r\n")
                  .ends_with("messages bad_request"));
  EXPECT_TRUE(Ask("POST /v1/chat/completions", "Bad\r\n").ends_with("openai bad_request"));
  EXPECT_TRUE(Ask("nonsense").ends_with("openai bad_request"));
}

TEST_F(EdgeTest, NoResponseLetsABrowserGuessItsType) {
  Start();
  for (const char* line : {"GET /v1/models", "GET /nowhere", "nonsense"}) {
    const std::string answer = Ask(line);
    EXPECT_NE(answer.find("x-content-type-options: nosniff\r\n"), std::string::npos) << answer;
    EXPECT_EQ(answer.find("strict-transport-security"), std::string::npos) << "over plain http";
  }
}

TEST_F(EdgeTest, EveryResponseHasBothIds) {
  Start();
  for (const char* line : {"GET /v1/models", "GET /nowhere", "nonsense"}) {
    std::string answer = Ask(line, "X-Request-Id: abc-1\r\n");
    EXPECT_EQ(Count(answer, "x-request-id: "), 1) << answer;
    EXPECT_EQ(Count(answer, "\r\nrequest-id: "), 1) << answer;
  }
  EXPECT_NE(Ask("GET /nowhere", "X-Request-Id: abc-1\r\n").find("x-request-id: abc-1\r\n"),
            std::string::npos);
}

TEST_F(EdgeTest, CorsIsOffByDefault) {
  Start();
  std::string answer = Ask("GET /v1/models", "Origin: https://a.example\r\n");
  EXPECT_EQ(answer.find("access-control"), std::string::npos);
  EXPECT_TRUE(Ask("OPTIONS /v1/models",
                  "Origin: https://a.example\r\nAccess-Control-Request-Method: GET\r\n")
                  .starts_with("HTTP/1.1 404 "));
}

TEST_F(EdgeTest, CorsAllowsListedOriginsOnly) {
  EdgeOptions options;
  options.cors_origins = {"https://a.example"};
  Start(std::move(options));
  std::string preflight =
      "Access-Control-Request-Method: POST\r\nAccess-Control-Request-Headers: authorization\r\n";
  std::string asked =
      Ask("OPTIONS /v1/chat/completions", "Origin: https://a.example\r\n" + preflight);
  EXPECT_TRUE(asked.starts_with("HTTP/1.1 204 ")) << asked;
  EXPECT_NE(asked.find("access-control-allow-origin: https://a.example\r\n"), std::string::npos);
  EXPECT_NE(asked.find("access-control-allow-headers: authorization\r\n"), std::string::npos);
  std::string refused =
      Ask("OPTIONS /v1/chat/completions", "Origin: https://b.example\r\n" + preflight);
  EXPECT_TRUE(refused.starts_with("HTTP/1.1 404 "));
  EXPECT_EQ(refused.find("access-control-allow-origin"), std::string::npos);
  for (const char* line : {"GET /v1/models", "GET /nowhere"}) {
    EXPECT_NE(
        Ask(line, "Origin: https://a.example\r\n").find("allow-origin: https://a.example\r\n"),
        std::string::npos);
    EXPECT_EQ(Ask(line, "Origin: https://b.example\r\n").find("allow-origin"), std::string::npos);
  }
}

TEST_F(EdgeTest, CountsRequestsByEndpointAndStatus) {
  auto count = [](const char* endpoint, const char* status) {
    return metrics::Counter("tollgate_http_requests_total", "Requests answered",
                            {{"endpoint", endpoint}, {"status", status}})
        .Value();
  };
  Start();
  double models = count("models", "200");
  double unmatched = count("unmatched", "404");
  double refused = count("unmatched", "400");
  Ask("GET /v1/models");
  Ask("GET /sk-secret-in-a-path");
  Ask("nonsense");
  edge_->Stop();  // the counter may be incremented after the response was sent
  EXPECT_EQ(count("models", "200"), models + 1);
  EXPECT_EQ(count("unmatched", "404"), unmatched + 1);
  EXPECT_EQ(count("unmatched", "400"), refused + 1);
  EXPECT_EQ(
      metrics::Gauge("tollgate_http_requests_in_flight", "Requests being handled now").Value(), 0);
  EXPECT_EQ(metrics::Render().find("sk-secret"), std::string::npos);
}

}  // namespace
}  // namespace tollgate::gateway
