#include "tests/contract/error_cases.h"

#include <utility>

#include "tests/support/json.h"

namespace tollgate::test {
namespace {

using Cases = std::vector<ErrorCase>;

std::string Marked(const std::string& text) { return std::string(kEngineMark) + " " + text; }

// docs/contract.md "Authentication", decisions 11 to 13 and 16.
void Credentials(const EndpointForm& form, Cases& cases) {
  const bool messages = form.family == Family::kMessages;
  const std::pair<const char*, HeaderList> rows[] = {
      {"NoKey", {}},
      {"EmptyBearer", {{"Authorization", "Bearer"}}},
      {"BasicScheme", {{"Authorization", "Basic c2stdG9sbGdhdGU6"}}},
      {"ForeignPrefix", {{"Authorization", "Bearer sk-other-000000000000000000000000"}}},
      {"WrongChecksum", {{"Authorization", "Bearer sk-tollgate-000000000000000000000000"}}},
      {"EmptyApiKey", {{"x-api-key", ""}}},
      {"MalformedApiKey", {{"x-api-key", "sk-tollgate-000000000000000000000000"}}},
  };
  for (const auto& [name, headers] : rows) {
    cases.push_back(
        {.name = name, .row = "invalid_api_key", .caller = Caller::kNobody, .headers = headers});
  }
  cases.push_back({.name = "RevokedKey", .row = "invalid_api_key", .caller = Caller::kRevoked});
  cases.push_back({.name = "ExpiredKey", .row = "invalid_api_key", .caller = Caller::kExpired});
  cases.push_back(
      {.name = "KeyBeforeBody", .row = "invalid_api_key", .caller = Caller::kNobody, .body = "{"});
  cases.push_back(
      {.name = "PrivateModelOfOthers", .row = "invalid_api_key", .ask = {.model = "sim/private"}});
  cases.push_back(
      {.name = "DisabledKey", .row = "virtual_key_blocked", .caller = Caller::kDisabled});
  cases.push_back({.name = "DisabledKeyBeforeBody",
                   .row = "virtual_key_blocked",
                   .caller = Caller::kDisabled,
                   .body = "["});
  cases.push_back({.name = "ModelOutsideTheKeysList",
                   .row = "model_blocked",
                   .caller = Caller::kNarrow,
                   .ask = {.model = "sim/model"}});
  if (messages) return;
  // Elsewhere x-api-key is ignored (decision 12): "$key" is the caller's.
  cases.push_back({.name = "ApiKeyHeaderIsIgnored",
                   .row = "invalid_api_key",
                   .caller = Caller::kNobody,
                   .headers = {{"x-api-key", "$good"}}});
}

// See decisions 16, 20 and 21.
void Models(const EndpointForm& form, Cases& cases) {
  const std::pair<const char*, const char*> unknown[] = {
      {"UnknownModel", "nobody/nothing"},
      {"ModelInOtherCase", "SIM/model"},
      {"LegacyBrandPrefix", "tollgate/model"},
      {"ModelWithSpace", " sim/model"},
  };
  for (const auto& [name, model] : unknown) {
    cases.push_back({.name = name, .row = "model_not_found", .ask = {.model = model}});
  }
  cases.push_back({.name = "ModelTakenOutOfService",
                   .row = "model_not_serving",
                   .ask = {.model = "sim/suspended"},
                   .retry_after = "?"});
  for (const char* method : {"GET", "PUT", "DELETE", "PATCH", "OPTIONS"}) {
    cases.push_back({.name = std::string("Method") + method, .row = "not_found", .method = method});
  }
  cases.push_back({.name = "TrailingSlash", .row = "not_found", .path_end = "/"});
  cases.push_back({.name = "PathBelow", .row = "not_found", .path_end = "/more"});
}

struct BadBody {
  const char* name;
  std::string body;
  std::string param;
};

// docs/contract.md "Cases of 400 bad_request" and "Endpoints", rules 3 and 4; decisions 17 to 19.
std::vector<BadBody> BadBodies(const EndpointForm& form) {
  const std::string model = R"({"model":)" + JsonQuoted(form.model);
  const std::string fine = form.Body({});
  const std::string inside = fine.substr(0, fine.size() - 1);
  const std::string input = ",\"" + form.input + "\":";
  const std::string limit = form.family == Family::kMessages && !form.limit.empty()
                                ? R"(,"max_tokens":64)"
                                : std::string();
  std::vector<BadBody> bodies = {
      {"CutJson", "{", ""},
      {"EmptyBody", "", ""},
      {"BodyIsAList", "[]", ""},
      {"BodyIsNull", "null", ""},
      {"BytesBehindTheObject", fine + "x", ""},
      {"TwoObjects", fine + fine, ""},
      {"NotUtf8", inside + ",\"user\":\"\xff\"}", ""},
      {"DuplicateKey", inside + R"(,"model":"sim/model"})", ""},
      {"NotANumber", inside + R"(,"temperature":NaN})", ""},
      {"TooDeep", inside + ",\"x\":" + std::string(500, '[') + std::string(500, ']') + "}", ""},
      {"NoModel", "{\"a\":1" + input + "\"x\"" + limit + "}", "model"},
      {"ModelIsNull", R"({"model":null)" + input + "\"x\"" + limit + "}", "model"},
      {"ModelIsANumber", R"({"model":5)" + input + "\"x\"" + limit + "}", "model"},
      {"NoInput", model + limit + "}", form.input},
      {"InputIsNull", model + input + "null" + limit + "}", form.input},
      {"InputIsANumber", model + input + "5" + limit + "}", form.input},
      {"InputIsEmpty", model + input + "[]" + limit + "}", form.input},
  };
  if (form.streams) bodies.push_back({"StreamIsText", inside + R"(,"stream":"yes"})", "stream"});
  if (form.generates && form.streams) {
    bodies.push_back({"TemperatureTooHigh", inside + R"(,"temperature":3})", "temperature"});
    bodies.push_back({"TemperatureIsText", inside + R"(,"temperature":"1"})", "temperature"});
    bodies.push_back({"TopPNegative", inside + R"(,"top_p":-0.5})", "top_p"});
  }
  if (!form.limit.empty()) {
    for (const auto& [name, value] :
         {std::pair("LimitNegative", "-1"), std::pair("LimitFraction", "1.5"),
          std::pair("LimitIsText", "\"7\""), std::pair("LimitHuge", "1e400")}) {
      bodies.push_back({name, form.Body({.limit = value}), form.limit});
    }
  }
  if (form.family == Family::kMessages && !form.limit.empty()) {
    bodies.push_back(
        {"NoLimit", model + input + R"([{"role":"user","content":"x"}]})", "max_tokens"});
  }
  if (!form.image.empty()) {
    bodies.push_back({"ImageForATextModel", model + input + form.image + limit + "}", form.input});
  }
  return bodies;
}

void BadRequests(const EndpointForm& form, Cases& cases) {
  for (BadBody& bad : BadBodies(form)) {
    cases.push_back({.name = bad.name,
                     .row = "bad_request",
                     .body = std::move(bad.body),
                     .param = std::move(bad.param)});
    // An empty body where one is expected: the runner must not use the form's own.
    if (cases.back().body.empty()) cases.back().body = " ";
  }
  cases.push_back({.name = "OtherContentType",
                   .row = "bad_request",
                   .headers = {{"Content-Type", "text/plain"}}});
  // The body is not compressed, or its coding is unknown.
  for (const auto& [name, coding] :
       {std::pair("BodyIsNotGzip", "gzip"), std::pair("UnknownCoding", "deflate"),
        std::pair("TwoCodings", "gzip, br")}) {
    cases.push_back({.name = name,
                     .row = "bad_request",
                     .headers = {{"Content-Encoding", coding}},
                     .openai_text = "Content-Encoding",
                     .messages_text = "Content-Encoding"});
  }
  if (form.model != "sim/model") {
    cases.push_back({.name = "ModelOfAnotherKind",
                     .row = "bad_request",
                     .ask = {.model = "sim/model"},
                     .param = "model",
                     .openai_text = form.name == "completions" ? "/v1/chat/completions" : ""});
  } else {
    cases.push_back({.name = "ModelOfAnotherKind",
                     .row = "bad_request",
                     .ask = {.model = "sim/embed"},
                     .param = "model"});
  }
  if (!form.limit.empty()) {
    cases.push_back({.name = "LimitAboveTheWindow",
                     .row = "context_length_exceeded",
                     .ask = {.limit = "99999999"},
                     .param = form.limit,
                     .openai_text = "maximum context length is 131072 tokens"});
  }
  cases.push_back({.name = "PromptAboveTheWindow",
                   .row = form.generates ? "context_length_exceeded" : "",
                   .ask = {.words = 600'000},
                   .param = form.input,
                   .openai_text = "maximum context length is 131072 tokens"});
  if (!form.generates) cases.pop_back();  // counting accepts any size
}

// Decision 3 and docs/contract.md "Limits".
void MoneyAndLimits(const EndpointForm& form, Cases& cases) {
  const auto add = [&](const char* name, const char* row, Caller caller) {
    const std::string wait = std::string(row) == "insufficient_credits" ? "" : "*";
    cases.push_back({.name = name, .row = row, .caller = caller, .retry_after = wait});
  };
  add("RequestsAMinute", "rate_limited", Caller::kOneAMinute);
  add("RequestsAtATime", "rate_limited", Caller::kOneAtATime);
  if (!form.generates) return;
  add("TokensAMinute", "token_limited", Caller::kFewTokens);
  add("CreditIsHeld", "rate_limited", Caller::kAllHeld);
  add("NoCredit", "insufficient_credits", Caller::kBroke);
  add("CapReached", "insufficient_credits", Caller::kCapped);
  add("KeyQuotaReached", "insufficient_credits", Caller::kOverQuota);
}

// Decisions 43 and 59. The targets keep no answers.
void IdempotencyKeys(const EndpointForm& form, Cases& cases) {
  if (!form.generates) return;
  cases.push_back({.name = "IdempotencyKeyIsRunning",
                   .row = "idempotency_in_progress",
                   .caller = Caller::kKeyRunning,
                   .headers = {{"Idempotency-Key", "running"}},
                   .body = form.Body({.script = R"({"delay_ms":15000})"}),
                   .retry_after = "1"});
  cases.push_back({.name = "IdempotencyKeyIsUsed",
                   .row = "idempotency_answer_gone",
                   .caller = Caller::kKeyUsed,
                   .headers = {{"Idempotency-Key", "used"}},
                   .body = form.Body({})});
  cases.push_back({.name = "IdempotencyKeyWithAnotherBody",
                   .row = "bad_request",
                   .caller = Caller::kKeyUsed,
                   .headers = {{"Idempotency-Key", "body"}},
                   .body = form.Body({.words = 3})});
  cases.push_back({.name = "IdempotencyKeyTooLong",
                   .row = "bad_request",
                   .headers = {{"Idempotency-Key", std::string(256, 'k')}}});
}

// Engine failures: docs/design/wire.md 10.1, decision 22.
void Engines(const EndpointForm& form, Cases& cases) {
  if (!form.generates) return;
  struct Row {
    const char* name;
    const char* row;
    std::string script;  // $ is an error body with the mark
    const char* retry_after = "";
  };
  const Row rows[] = {
      {"Engine500", "server_error", R"({"status":500,$})", "?"},
      // llama.cpp of 2025 put the real status into the body.
      {"Engine500Means400", "bad_request",
       R"({"status":500,"error_body":{"error":{"message":"Zq7EngineWords","code":400}}})"},
      {"Engine502Means400", "upstream_error",
       R"({"status":502,"error_body":{"error":{"message":"Zq7EngineWords","code":400}}})", "?"},
      {"Engine502", "upstream_error", R"({"status":502,$})", "?"},
      {"Engine504", "upstream_error", R"({"status":504,$})", "?"},
      {"Engine501", "server_error", R"({"status":501,$})", "?"},
      {"Engine503", "service_unavailable", R"({"status":503,$})", "?"},
      // Short, since the engine is not asked again until then and later cases wait for it.
      {"Engine503Wait", "service_unavailable", R"({"status":503,$,"headers":{"Retry-After":"2"}})",
       "2"},
      {"Engine429", "rate_limited", R"({"status":429,$})", "*"},
      {"Engine429Wait", "rate_limited", R"({"status":429,$,"headers":{"Retry-After":"2"}})", "2"},
      {"Engine400", "bad_request", R"({"status":400,$})"},
      {"Engine422", "bad_request", R"({"status":422,"error_body":{"detail":"Zq7EngineWords"}})"},
      {"Engine401", "upstream_unreachable",
       R"({"status":401,"error_body":{"error":"Zq7EngineWords"}})", "?"},
      {"Engine403", "upstream_unreachable", R"({"status":403,$})", "?"},
      {"Engine404", "upstream_unreachable", R"({"status":404,$})", "?"},
      {"EngineHtml502", "upstream_error",
       R"({"status":502,"error_body":"<html>Zq7EngineWords</html>","headers":{"Content-Type":"text/html"}})",
       "?"},
      {"EngineText503", "service_unavailable",
       R"({"status":503,"error_body":"Zq7EngineWords upstream connect error"})", "?"},
      {"EngineMisleads", "server_error",
       R"({"status":500,"error_body":{"error":{"message":"Zq7EngineWords","type":"authentication_error","code":"invalid_api_key","param":"Zq7EngineWords"}}})",
       "?"},
      {"EngineCutsBeforeItsAnswer", "upstream_unreachable", R"({"cut_before_headers":true})", "?"},
  };
  for (const Row& row : rows) {
    std::string script = row.script;
    if (const size_t at = script.find('$'); at != std::string::npos) {
      script.replace(at, 1,
                     R"("error_body":{"error":{"message":")" + Marked("at fault") +
                         R"(","type":"Zq7EngineWords"}})");
    }
    cases.push_back({.name = row.name,
                     .row = row.row,
                     .ask = {.script = std::move(script)},
                     .retry_after = row.retry_after});
  }
  // Known to be unreachable once its health was checked.
  cases.push_back({.name = "EngineIsAway",
                   .row = "model_not_serving",
                   .ask = {.model = form.unreachable_model},
                   .retry_after = "?"});
}

// In a stream, before the first token: a JSON error with its status (decision 25).
void EngineStreams(const EndpointForm& form, Cases& cases) {
  if (!form.generates || !form.streams) return;
  struct Row {
    const char* name;
    const char* script;
    const char* row = "upstream_error";
  };
  const Row rows[] = {
      {"StreamGarbage", R"({"raw_chunks":["Zq7EngineWords <<< not an event >>>\n\n"]})"},
      {"StreamBrokenJson", R"({"raw_chunks":["data: {\"Zq7EngineWords\":\n\n"]})"},
      {"StreamHtml", R"({"raw_chunks":["<html>Zq7EngineWords</html>"]})"},
      {"StreamEmpty", R"({"raw_chunks":["data: [DONE]\n\n"]})"},
      {"StreamErrorFirst",
       R"({"raw_chunks":["data: {\"error\":{\"message\":\"Zq7EngineWords\",\"code\":500}}\n\n","data: [DONE]\n\n"]})",
       "server_error"},
      {"StreamErrorWithoutStatusFirst",
       R"({"raw_chunks":["data: {\"error\":{\"message\":\"Zq7EngineWords\"}}\n\n","data: [DONE]\n\n"]})"},
      {"StreamFlatErrorFirst",
       R"({"raw_chunks":["data: {\"object\":\"error\",\"message\":\"Zq7EngineWords\",\"code\":500}\n\n"]})",
       "server_error"},
      {"StreamCutFirst", R"({"tokens":9,"cut_after_tokens":0})"},
  };
  for (const auto& [name, script, row] : rows) {
    cases.push_back({.name = name, .row = row, .ask = {.script = script}, .retry_after = "?"});
  }
}

// "context_length_exceeded": for any status of the engine, with the text that agents search for
// (decision 32).
void ContextLengths(const EndpointForm& form, Cases& cases) {
  if (!form.generates) return;
  const std::string vllm =
      R"("error_body":{"error":{"message":"Zq7EngineWords This model's maximum context length is 4096 tokens. However, your request has 5000 input tokens.","code":400}})";
  const std::string sglang =
      R"("error_body":{"object":"error","message":"Zq7EngineWords The input (5000 tokens) is longer than the model's context length (4096 tokens)."})";
  const std::string llamacpp =
      R"("error_body":{"error":{"code":500,"message":"Zq7EngineWords","type":"exceed_context_size_error","n_prompt_tokens":5000,"n_ctx":4096}})";
  const std::string tgi =
      R"("error_body":{"error":"Zq7EngineWords `inputs` must have less than 4096 tokens. Given: 5000","error_type":"validation"})";
  const std::pair<const char*, std::string> rows[] = {
      {"Context400", R"({"status":400,)" + vllm + "}"},
      {"Context413", R"({"status":413,)" + vllm + "}"},
      {"Context500", R"({"status":500,)" + sglang + "}"},
      {"Context503", R"({"status":503,)" + vllm + "}"},
      {"ContextByNumbers", R"({"status":400,)" + llamacpp + "}"},
      {"Context422", R"({"status":422,)" + tgi + "}"},
  };
  const auto add = [&](const char* name, std::string script) {
    cases.push_back({.name = name,
                     .row = "context_length_exceeded",
                     .ask = {.script = std::move(script)},
                     .param = form.input,
                     .openai_text = "maximum context length is 4096 tokens",
                     .messages_text = "prompt is too long: 5000 tokens > 4096 maximum"});
  };
  for (const auto& [name, script] : rows) add(name, script);
  if (!form.streams) return;
  add("ContextInStream",
      R"({"raw_chunks":["data: {\"error\":{\"message\":\"Zq7EngineWords This model's maximum context length is 4096 tokens. However, your request has 5000 input tokens.\",\"code\":400}}\n\n","data: [DONE]\n\n"]})");
}

}  // namespace

std::vector<ErrorCase> ErrorCases(const EndpointForm& form) {
  Cases cases;
  Credentials(form, cases);
  Models(form, cases);
  BadRequests(form, cases);
  MoneyAndLimits(form, cases);
  IdempotencyKeys(form, cases);
  Engines(form, cases);
  EngineStreams(form, cases);
  ContextLengths(form, cases);
  return cases;
}

std::string WhyNoCase(const EndpointForm& form, const std::string& row) {
  if (row == "request_too_large") return "has a test of its own, with its bytes";
  if (form.generates) return "";
  for (const char* costs :
       {"insufficient_credits", "token_limited", "server_error", "upstream_error",
        "upstream_unreachable", "service_unavailable", "context_length_exceeded",
        "idempotency_in_progress", "idempotency_answer_gone"}) {
    if (row == costs)
      return "counting costs no credit and no tokens, and estimates where no engine answers";
  }
  return "";
}

}  // namespace tollgate::test
