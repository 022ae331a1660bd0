#include "services/inference_router/engine/engine_error.h"

#include <gtest/gtest.h>

namespace tollgate::inference_router {
namespace {

Error Answer(int status, const std::string& body, const std::string& retry_after = "") {
  EngineFailure failure = ClassifyResponse(status, body, retry_after, 8192);
  EXPECT_EQ(failure.error.ToString().find("SECRET"), std::string::npos)
      << "engine text must not reach the client or the log: " << failure.error.ToString();
  return failure.error;
}

TEST(EngineError, MapsEachStatusToItsRow) {
  const std::pair<int, ErrorId> rows[] = {
      {400, ErrorId::kBadRequest},          {422, ErrorId::kBadRequest},
      {401, ErrorId::kUpstreamUnreachable}, {403, ErrorId::kUpstreamUnreachable},
      {404, ErrorId::kUpstreamUnreachable}, {429, ErrorId::kRateLimited},
      {500, ErrorId::kServerError},         {501, ErrorId::kServerError},
      {505, ErrorId::kServerError},         {599, ErrorId::kServerError},
      {502, ErrorId::kUpstreamError},       {503, ErrorId::kServiceUnavailable},
      {504, ErrorId::kUpstreamError},       {418, ErrorId::kBadRequest}};
  for (const auto& [status, id] : rows) {
    for (const char* body :
         {"", "<html>SECRET</html>", R"({"error":{"message":"SECRET","type":"SECRET text"}})",
          R"({"object":"error","message":"SECRET"})", R"({"error":"SECRET"})",
          R"({"detail":"SECRET"})", R"({"detail":[{"loc":["body"],"msg":"SECRET","type":"x"}]})",
          "[]", "null"}) {
      EXPECT_EQ(Answer(status, body).id, id) << status << ' ' << body;
      const bool full = status == 429 || status == 503;
      EXPECT_EQ(Answer(status, body).reason, full ? Reason::kEngineRefused : Reason::kNone);
    }
  }
}

TEST(EngineError, ArgumentsThatAreNoJsonAreTheRequestsFault) {
  const EngineFailure failure = ClassifyResponse(
      500,
      R"({"error":{"code":500,"message":"Failed to parse tool call arguments as JSON: [json.exception.parse_error.101] parse error at line 1, column 12: SECRET","type":"server_error"}})",
      "", 8192);
  EXPECT_EQ(failure.error.id, ErrorId::kBadRequest);
  EXPECT_FALSE(failure.try_elsewhere);
  EXPECT_EQ(failure.error.ToString().find("SECRET"), std::string::npos);
}

TEST(EngineError, ForwardsRetryAfter) {
  EXPECT_EQ(Answer(429, "", "7").retry_after_ms, 7000);
  EXPECT_EQ(Answer(429, "", "0").retry_after_ms, 1000);
  EXPECT_EQ(Answer(429, "", "").retry_after_ms, 1000);
  EXPECT_EQ(Answer(429, "", "Wed, 21 Oct 2015 07:28:00 GMT").retry_after_ms, 1000);
  EXPECT_EQ(Answer(503, "", "99999").retry_after_ms, 60'000);
}

// ADR 0030: only an engine that sends a Retry-After gets a pause.
TEST(EngineError, OnlyAnEngineThatSaysWhenWantsAPause) {
  const auto pause_ms = [](int status, const char* retry_after) {
    return ClassifyResponse(status, "", retry_after, 8192).pause_ms;
  };
  EXPECT_EQ(pause_ms(429, "7"), 7'000);
  EXPECT_EQ(pause_ms(503, "3"), 3'000);
  EXPECT_EQ(pause_ms(503, "99999"), 60'000);
  for (const char* nothing : {"", "soon", "-1"}) EXPECT_EQ(pause_ms(429, nothing), 0) << nothing;
  EXPECT_EQ(pause_ms(500, "7"), 0);
  EXPECT_EQ(pause_ms(400, "7"), 0);
}

TEST(EngineError, ContextLengthTakesPrecedenceOverAnyStatus) {
  const std::string text = "Context size has been exceeded.";
  for (int status : {400, 422, 500, 503, 404}) {
    const Error error = Answer(status, R"({"error":{"message":")" + text + R"("}})");
    EXPECT_EQ(error.id, ErrorId::kContextLengthExceeded) << status;
    EXPECT_NE(error.message.find("maximum context length is 8192 tokens"), std::string::npos)
        << "the catalog's window is used if the engine states none";
  }
  for (const char* body :
       {R"({"object":"error","message":"context size has been exceeded"})",
        R"({"error":"context size has been exceeded","error_type":"validation"})",
        R"({"detail":"context size has been exceeded"})",
        R"({"detail":[{"msg":"context size has been exceeded"}]})",
        "context size has been exceeded"}) {
    EXPECT_EQ(Answer(500, body).id, ErrorId::kContextLengthExceeded) << body;
  }
}

TEST(EngineError, StructuredFieldsGiveNumbers) {
  Error error = Answer(
      400,
      R"({"error":{"code":400,"message":"too long","type":"exceed_context_size_error","n_prompt_tokens":5000,"n_ctx":4096}})");
  EXPECT_EQ(error.id, ErrorId::kContextLengthExceeded);
  EXPECT_NE(error.message.find("maximum context length is 4096 tokens"), std::string::npos);
  EXPECT_NE(error.message.find("5000"), std::string::npos);
  error = Answer(
      400,
      R"({"error":{"code":"context_length_exceeded","message":"This model's maximum context length is 4097 tokens. However, your messages resulted in 5000 tokens."}})");
  EXPECT_NE(error.message.find("4097"), std::string::npos);
  EXPECT_EQ(Answer(400, R"({"error":{"param":"input_tokens","message":"x"}})").id,
            ErrorId::kContextLengthExceeded);
  EXPECT_EQ(Answer(500, R"({"error":{"param":"input_tokens","message":"x"}})").id,
            ErrorId::kServerError);
}

TEST(EngineError, AnOverflowHasItsNumbersAlsoInAStream) {
  const std::string text =
      "This model's maximum context length is 4096 tokens. However, you requested 100 output "
      "tokens and your prompt contains at least 3997 input tokens, for a total of at least 4097 "
      "tokens.";
  const std::string body = R"({"error":{"message":")" + text + R"("}})";
  const auto document = json::Document::ParseView(body);
  ASSERT_TRUE(document.ok());
  for (const Error& error :
       {Answer(400, body), Answer(500, body), ClassifyInStream(document->root(), 8192).error}) {
    EXPECT_EQ(error.tokens.limit, 4096);
    EXPECT_EQ(error.tokens.prompt, 3997);
    EXPECT_EQ(error.tokens.output, 100);
    EXPECT_TRUE(error.tokens.prompt_is_lower_bound);
    EXPECT_EQ(error.param, "") << "the gateway sets the parameter";
  }
}

TEST(EngineError, TheStatusInTheBodyOfA500Or424IsUsed) {
  EXPECT_EQ(
      Answer(500,
             R"({"error":{"code":400,"message":"bad grammar","type":"invalid_request_error"}})")
          .id,
      ErrorId::kBadRequest);
  // 502 and 504 are not overridden.
  for (const int status : {502, 504}) {
    EXPECT_EQ(Answer(status, R"({"error":{"code":400,"type":"invalid_request_error"}})").id,
              ErrorId::kUpstreamError);
  }
  EXPECT_EQ(Answer(424, R"({"error":"x","error_type":"overloaded"})").id, ErrorId::kRateLimited);
  EXPECT_EQ(Answer(424, R"({"error":"x","error_type":"generation"})").id, ErrorId::kServerError);
}

TEST(EngineError, AnErrorInTheStreamIsMappedByItsStatusIfKnown) {
  const std::pair<const char*, ErrorId> rows[] = {
      {R"({"error":{"message":"x","code":500}})", ErrorId::kServerError},
      {R"({"object":"error","message":"x","code":500})", ErrorId::kServerError},
      {R"({"error":{"message":"x","code":501}})", ErrorId::kServerError},
      {R"({"error":{"message":"x","code":502}})", ErrorId::kUpstreamError},
      {R"({"error":{"message":"x","code":504}})", ErrorId::kUpstreamError},
      {R"({"error":{"message":"x","code":503}})", ErrorId::kServiceUnavailable},
      {R"({"error":{"message":"x","code":400}})", ErrorId::kBadRequest},
      {R"({"error":{"message":"x"}})", ErrorId::kUpstreamError},
      {R"({"error":"x","error_type":"generation"})", ErrorId::kUpstreamError}};
  for (const auto& [body, id] : rows) {
    const auto document = json::Document::ParseView(body);
    ASSERT_TRUE(document.ok()) << body;
    EXPECT_EQ(ClassifyInStream(document->root(), 8192).error.id, id) << body;
  }
}

TEST(EngineError, OnlyEngineFailuresAreTriedElsewhere) {
  for (int status : {429, 500, 502, 503, 504, 401, 404}) {
    EXPECT_TRUE(ClassifyResponse(status, "", "", 0).try_elsewhere) << status;
  }
  for (int status : {400, 422})
    EXPECT_FALSE(ClassifyResponse(status, "", "", 0).try_elsewhere) << status;
  EXPECT_FALSE(ClassifyResponse(500, "context size has been exceeded", "", 0).try_elsewhere);
  EXPECT_TRUE(Unreachable("x").try_elsewhere);
  EXPECT_FALSE(TimedOut(AnswerLimit::kSilence).try_elsewhere)
      << "the client has waited for the whole timeout";
}

}  // namespace
}  // namespace tollgate::inference_router
