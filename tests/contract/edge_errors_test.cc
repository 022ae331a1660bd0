// Errors of the endpoints without a model, and errors before an endpoint is chosen, in the envelope
// of the path's API family.
#include <gtest/gtest.h>

#include "tests/contract/endpoint_forms.h"
#include "tests/contract/published_errors.h"
#include "tests/contract/target.h"

namespace tollgate::test {
namespace {

class EdgeErrorTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    ASSERT_EQ(target().failure, "");
    if (target().cluster == nullptr) GTEST_SKIP() << "needs a cluster of its own";
  }
  Target& target() const { return TargetOf(GetParam()); }
  std::string Key(const std::string& name) const {
    return "Bearer " + target().facts["keys"][name].str();
  }

  // id: the caller's X-Request-Id; "": not sent.
  static void Expect(const HttpResponse& answer, const std::string& row_name, Family family,
                     const std::string& param = "", const std::string& id = "") {
    const PublishedError& row = PublishedErrors().at(row_name);
    EXPECT_EQ(answer.status, row.status) << answer.body << answer.error;
    EXPECT_EQ(answer.header("content-type"), "application/json");
    EXPECT_FALSE(answer.header("x-request-id").empty());
    EXPECT_EQ(answer.header("request-id"), answer.header("x-request-id"));
    if (!id.empty()) EXPECT_EQ(answer.header("x-request-id"), id);
    EXPECT_FALSE(answer.has_header("retry-after"));
    EXPECT_EQ(answer.header("x-should-retry"), row.retryable ? "true" : "false");  // decision 40
    const Json body = answer.json();
    const Json& error = body["error"];
    EXPECT_EQ(error["code"].str(), row.code) << answer.body;
    EXPECT_FALSE(error["message"].str().empty());
    if (family == Family::kMessages) {
      EXPECT_EQ(body.size(), id.empty() ? 2u : 3u) << answer.body;
      EXPECT_EQ(body["type"].str(), "error");
      EXPECT_EQ(body["request_id"].str(), id);
      EXPECT_EQ(error.size(), 3u);
      EXPECT_EQ(error["type"].str(), row.messages_type);
    } else {
      EXPECT_EQ(body.size(), 1u) << answer.body;
      EXPECT_EQ(error.size(), param.empty() ? 3u : 4u) << answer.body;
      EXPECT_EQ(error["type"].str(), row.openai_type);
      EXPECT_EQ(error["param"].str(), param);
    }
  }
};
INSTANTIATE_TEST_SUITE_P(Errors, EdgeErrorTest, ::testing::Values("allinone", "tcp"),
                         [](const auto& info) { return info.param; });

TEST_P(EdgeErrorTest, BodiesAboveTheLimitAreRefused) {  // decision 19
  for (const EndpointForm& form : EndpointForms()) {
    for (const char* id : {"", "too.large"}) {
      SCOPED_TRACE(form.path + " " + id);
      HttpConnection connection(target().port);
      connection.Send("POST " + form.path + " HTTP/1.1\r\nHost: x\r\nAuthorization: " +
                      Key("good") + "\r\nContent-Length: 16777217\r\n" +
                      (*id ? "X-Request-Id: " + std::string(id) + "\r\n" : "") + "\r\n");
      Expect(connection.ReadResponse(), "request_too_large", form.family, "", id);
      EXPECT_TRUE(connection.ReadUntilClosed());
    }
  }
}

TEST_P(EdgeErrorTest, AmbiguousFramingIsRefused) {
  for (const EndpointForm& form : EndpointForms()) {
    SCOPED_TRACE(form.path);
    HttpConnection connection(target().port);
    connection.Send("POST " + form.path +
                    " HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nTransfer-Encoding: "
                    "chunked\r\n\r\n0\r\n\r\n");
    Expect(connection.ReadResponse(), "bad_request", form.family);
    EXPECT_TRUE(connection.ReadUntilClosed());
  }
}

TEST_P(EdgeErrorTest, UnknownPathsAreNotFound) {
  const std::pair<const char*, Family> paths[] = {
      {"/", Family::kOpenAi},
      {"/v1", Family::kOpenAi},
      {"/v1/", Family::kOpenAi},
      {"/v1/models/sim/model", Family::kOpenAi},
      {"/openai/v1/chat/completions", Family::kOpenAi},
      {"/openai/v1/nothing", Family::kOpenAi},
      {"/api/v1/nothing", Family::kOpenAi},
      {"/v1/responses/resp_1", Family::kOpenAi},
      {"/v1/messages/batches", Family::kMessages},
      {"/v1/messages/count_tokens/", Family::kMessages},
  };
  for (const auto& [path, family] : paths) {
    for (const char* method : {"GET", "POST", "DELETE"}) {
      SCOPED_TRACE(std::string(method) + " " + path);
      Expect(Http(target().port, method, path, {{"Authorization", Key("good")}}), "not_found",
             family);
      // No key is needed.
      Expect(Http(target().port, method, path, {{"X-Request-Id", "no.such"}}), "not_found", family,
             "", "no.such");
    }
  }
}

TEST_P(EdgeErrorTest, UsageNeedsAKeyAndAValidRange) {
  const std::string path = "/api/v1/usage";
  const auto get = [&](const HeaderList& headers, const std::string& query = "") {
    return Http(target().port, "GET", path + query, headers);
  };
  const auto as = [&](const char* key) { return HeaderList{{"Authorization", Key(key)}}; };
  for (const HeaderList& headers :
       {HeaderList(), HeaderList{{"Authorization", "Bearer"}},
        HeaderList{{"Authorization", "Bearer sk-tollgate-000000000000000000000000"}},
        HeaderList{{"x-api-key", target().facts["keys"]["good"].str()}}, as("revoked")}) {
    Expect(get(headers), "invalid_api_key", Family::kOpenAi);
  }
  Expect(get(as("disabled"), "?range=x"), "virtual_key_blocked", Family::kOpenAi);
  Expect(get(as("good"), "?range=x"), "bad_request", Family::kOpenAi, "range");
  Expect(get(as("good"), "?start=x"), "bad_request", Family::kOpenAi, "start");
  Expect(get(as("good"), "?end=x"), "bad_request", Family::kOpenAi, "end");
  for (const char* free : {"broke", "capped", "narrow", "one_a_minute", "limited"}) {
    EXPECT_EQ(get(as(free)).status, 200) << free;
  }
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS"}) {
    Expect(Http(target().port, method, path, as("good")), "not_found", Family::kOpenAi);
  }
}

TEST_P(EdgeErrorTest, ModelsArePublicWithAnyKey) {
  for (const char* path : {"/v1/models", "/openai/v1/models"}) {
    for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS"}) {
      SCOPED_TRACE(std::string(method) + " " + path);
      Expect(Http(target().port, method, path), "not_found", Family::kOpenAi);
    }
    // Public: an invalid key is ignored (decision 13), and x-api-key is not read (decision 12).
    const std::string all = Http(target().port, "GET", path).body;
    EXPECT_NE(all.find("sim/model"), std::string::npos);
    for (const char* key : {"disabled", "revoked", "broke", "nobody"}) {
      EXPECT_EQ(Http(target().port, "GET", path, {{"Authorization", Key(key)}}).body, all) << key;
    }
    const HttpResponse messages =
        Http(target().port, "GET", std::string(path) + "?limit=1000&beta=true",
             {{"anthropic-version", "2023-06-01"},
              {"x-api-key", target().facts["keys"]["narrow"].str()}});
    EXPECT_EQ(messages.body, all);
    EXPECT_EQ(Http(target().port, "GET", path, {{"Authorization", Key("narrow")}})
                  .json()["total_count"]
                  .integer(),
              1);
  }
}

TEST_P(EdgeErrorTest, ModelsWithAMatchingETagAreNotModified) {
  const HttpResponse first = Http(target().port, "GET", "/v1/models");
  const std::string tag = first.header("etag");
  ASSERT_EQ(tag.front(), '"');
  for (const std::string& known : {tag, "W/" + tag, "\"other\", " + tag, std::string("*")}) {
    HttpConnection connection(target().port);
    const HttpResponse same = connection.Request("GET", "/v1/models", {{"If-None-Match", known}});
    EXPECT_EQ(same.status, 304) << known;
    EXPECT_EQ(same.body, "");
    EXPECT_EQ(same.header("etag"), tag);
    EXPECT_FALSE(same.has_header("content-type"));
    EXPECT_FALSE(same.header("x-request-id").empty());
    // The connection stays open.
    EXPECT_EQ(connection.Request("GET", "/v1/models").body, first.body);
  }
  EXPECT_EQ(Http(target().port, "GET", "/v1/models", {{"If-None-Match", "\"other\""}}).status, 200);
}

// The head of an answer to HEAD; checks that no body follows.
HttpResponse Head(Target& target, const std::string& path, HeaderList headers = {}) {
  HttpConnection connection(target.port);
  headers.emplace_back("Connection", "close");
  connection.SendRequest("HEAD", path, headers);
  HttpResponse head = connection.ReadHead();
  EXPECT_EQ(connection.ReadSome(), "");
  return head;
}

// RFC 9110 9.3.2.
TEST_P(EdgeErrorTest, HeadIsGetWithoutABody) {
  const HeaderList good = {{"Authorization", Key("good")}};
  for (const auto& [path, headers] : {std::pair<std::string, HeaderList>{"/v1/models", {}},
                                      {"/openai/v1/models", {}},
                                      {"/healthz", {}},
                                      {"/api/v1/usage?range=24h", good},
                                      {"/api/v1/usage", {}},
                                      {"/api/v1/usage?range=x", good}}) {
    SCOPED_TRACE(path);
    const HttpResponse get = Http(target().port, "GET", path, headers);
    const HttpResponse head = Head(target(), path, headers);
    EXPECT_EQ(head.status, get.status);
    for (const char* field : {"content-type", "etag", "cache-control", "x-should-retry"}) {
      EXPECT_EQ(head.header(field), get.header(field)) << field;
    }
    // The report contains a time, which always has the same number of characters.
    EXPECT_EQ(head.header("content-length"), get.header("content-length"));
    EXPECT_NE(get.body, "");
  }
  EXPECT_EQ(Head(target(), "/v1/chat/completions", good).status, 404);
  EXPECT_EQ(Head(target(), "/nothing").status, 404);
}

// For load balancers: cheap, open to anyone, and without internal details.
TEST_P(EdgeErrorTest, HealthIsPublicAndConstant) {
  const HttpResponse answer = Http(target().port, "GET", "/healthz");
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, R"({"status":"ok"})");
  EXPECT_EQ(answer.header("cache-control"), "no-store");
  EXPECT_EQ(Http(target().port, "GET", "/healthz?verbose=1", {{"Authorization", "Bearer x"}}).body,
            answer.body);
  for (const char* method : {"POST", "PUT", "DELETE", "OPTIONS"}) {
    SCOPED_TRACE(method);
    Expect(Http(target().port, method, "/healthz"), "not_found", Family::kOpenAi);
  }
}

}  // namespace
}  // namespace tollgate::test
