#include "tests/contract/contract_cases.h"

namespace tollgate::test {
namespace {

constexpr char kInvalid[] = "invalid_request_error";
constexpr char kAuthentication[] = "authentication_error";
constexpr char kPermission[] = "permission_error";
constexpr char kNotFound[] = "not_found_error";
constexpr char kRate[] = "rate_limit_error";

std::string Chat(const std::string& more = "", const std::string& model = "$M") {
  return R"({"model":")" + model + R"(","messages":[{"role":"user","content":"hello there"}]$S)" +
         more + "}";
}
std::string Sim(const std::string& script) { return Chat(R"(,"x_sim":)" + script); }

// docs/contract.md "Authentication", decisions 11 and 16.
std::vector<Case> Credentials() {
  auto refused = [](const char* what, HeaderList headers) {
    return Case{.name = std::string("Authentication__") + what,
                .headers = std::move(headers),
                .body = Chat(),
                .status = 401,
                .code = "invalid_api_key",
                .type = kAuthentication};
  };
  return {
      refused("NoHeader", {}),
      refused("EmptyBearer", {{"Authorization", "Bearer"}}),
      refused("BasicScheme", {{"Authorization", "Basic abc"}}),
      refused("ForeignPrefix", {{"Authorization", "Bearer sk-other-1234"}}),
      refused("WrongChecksum", {{"Authorization", "Bearer sk-tollgate-0000000000000000"}}),
      refused("XApiKeyIsIgnoredHere", {{"x-api-key", "sk-tollgate-0000000000000000"}}),
      {.name = "Authentication__RevokedKey",
       .key = "revoked",
       .body = Chat(),
       .status = 401,
       .code = "invalid_api_key",
       .type = kAuthentication},
      {.name = "Authentication__PrivateModelOfAnotherWorkspace",
       .key = "good",
       .body = Chat("", "sim/private"),
       .simulated = true,
       .status = 401,
       .code = "invalid_api_key",
       .type = kAuthentication},
      {.name = "Authentication__BeforeJson",
       .body = "{",
       .status = 401,
       .code = "invalid_api_key",
       .type = kAuthentication},
      {.name = "Errors__DisabledKey",
       .key = "disabled",
       .body = Chat(),
       .status = 403,
       .code = "virtual_key_blocked",
       .type = kPermission},
      {.name = "Errors__DisabledKeyBeforeJson",
       .key = "disabled",
       .body = "{",
       .status = 403,
       .code = "virtual_key_blocked",
       .type = kPermission},
      {.name = "Errors__ModelOutsideTheKeysList",
       .key = "narrow",
       .body = Chat(),
       .status = 403,
       .code = "model_blocked",
       .type = kPermission},
  };
}

// docs/contract.md "Cases of 400 bad_request" and "Endpoints", rules 3 and 4; decisions 17 and 18.
std::vector<Case> BadRequests() {
  struct Row {
    const char* what;
    std::string body;
    const char* param;
  };
  const std::string kModel = R"({"model":"$M")";
  const Row rows[] = {
      {"CutJson", "{", ""},
      {"EmptyBody", "", ""},
      {"Array", "[]", ""},
      {"BytesAfterTheObject", Chat() + "x", ""},
      {"NotUtf8",
       R"({"model":"$M","messages":[{"role":"user","content":")"
       "\xff\"}]}",
       ""},
      {"DuplicateKey", R"({"model":"$M","model":"$M","messages":[{"role":"user","content":"x"}]})",
       ""},
      {"NoModel", R"({"messages":[{"role":"user","content":"x"}]})", "model"},
      {"ModelIsANumber", R"({"model":5,"messages":[{"role":"user","content":"x"}]})", "model"},
      {"NoMessages", kModel + "}", "messages"},
      {"EmptyMessages", kModel + R"(,"messages":[]})", "messages"},
      {"MessagesIsText", kModel + R"(,"messages":"x"})", "messages"},
      {"ImageForATextModel",
       kModel +
           R"(,"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}}]}]})",
       "messages"},
      {"NegativeMaxTokens", Chat(R"(,"max_tokens":-1)"), "max_tokens"},
      {"FractionalMaxTokens", Chat(R"(,"max_tokens":1.5)"), "max_tokens"},
      {"MaxTokensIsText", Chat(R"(,"max_tokens":"7")"), "max_tokens"},
      {"NegativeMaxCompletionTokens", Chat(R"(,"max_completion_tokens":-3)"),
       "max_completion_tokens"},
      {"TemperatureOutOfRange", Chat(R"(,"temperature":3)"), "temperature"},
      {"NoChoices", Chat(R"(,"n":0)"), "n"},
      {"StreamIsText", kModel + R"(,"messages":[{"role":"user","content":"x"}],"stream":"yes"})",
       "stream"},
  };
  std::vector<Case> cases;
  for (const Row& row : rows) {
    cases.push_back({.name = std::string("BadRequest__") + row.what,
                     .key = "good",
                     .body = row.body,
                     .status = 400,
                     .code = "bad_request",
                     .type = kInvalid,
                     .param = row.param});
  }
  cases.push_back({.name = "BadRequest__OtherContentType",
                   .key = "good",
                   .headers = {{"Content-Type", "text/plain"}},
                   .body = Chat(),
                   .status = 400,
                   .code = "bad_request",
                   .type = kInvalid});
  cases.push_back({.name = "BadRequest__CompressedBody",
                   .key = "good",
                   .headers = {{"Content-Encoding", "gzip"}},
                   .body = Chat(),
                   .status = 400,
                   .code = "bad_request",
                   .type = kInvalid});
  for (const char* fine : {"5.0", "1e1", "null", "0"}) {
    std::string what = fine;
    for (char& c : what) c = c == '.' ? '_' : c;
    cases.push_back({.name = "Endpoints__MaxTokens_" + what,
                     .key = "good",
                     .body = R"({"model":"$M","messages":[{"role":"user","content":"x"}],)"
                             R"("max_tokens":)" +
                             std::string(fine) + "}",
                     .members = {{"object", "\"chat.completion\""}}});
  }
  return cases;
}

// The other rows of the catalog.
std::vector<Case> Refusals() {
  return {
      {.name = "Errors__MaxTokensAboveTheWindow",
       .key = "good",
       .body = Chat(R"(,"max_tokens":99999999)"),
       .status = 400,
       .code = "context_length_exceeded",
       .type = kInvalid,
       .param = "max_tokens"},
      {.name = "Errors__NoCredit",
       .key = "broke",
       .body = Chat(),
       .status = 402,
       .code = "insufficient_credits",
       .type = kPermission},
      {.name = "Errors__CapReached",
       .key = "capped",
       .body = Chat(),
       .status = 402,
       .code = "insufficient_credits",
       .type = kPermission},
      {.name = "Errors__UnknownModel",
       .key = "good",
       .body = Chat("", "nobody/nothing"),
       .status = 404,
       .code = "model_unavailable",
       .type = kNotFound},
      {.name = "Errors__ModelIdInOtherCase",
       .key = "good",
       .body = Chat("", "SIM/model"),
       .status = 404,
       .code = "model_unavailable",
       .type = kNotFound},
      {.name = "Errors__LegacyBrandPrefix",
       .key = "good",
       .body = Chat("", "tollgate/model"),
       .status = 404,
       .code = "model_unavailable",
       .type = kNotFound},
      {.name = "Errors__ModelNotServing",
       .key = "good",
       .body = Chat("", "sim/suspended"),
       .simulated = true,
       .status = 503,
       .code = "model_unavailable",
       .type = kNotFound,
       .retry_after = "?"},
      {.name = "Limits__RequestsAMinute",
       .key = "one_a_minute",
       .body = Chat(),
       .before = Chat(),
       .status = 429,
       .code = "rate_limited",
       .type = kRate,
       .retry_after = "*",
       .expected_headers = {{"x-ratelimit-limit-requests", "1"},
                            {"x-ratelimit-remaining-requests", "0"},
                            {"x-ratelimit-reset-requests", "duration"}}},
      {.name = "Limits__TokensAMinute",
       .key = "few_tokens",
       .body = Chat(R"(,"max_tokens":400)"),
       .before = Chat(R"(,"max_tokens":400,"x_sim":{"tokens":400})"),
       .simulated = true,
       .status = 429,
       .code = "token_limited",
       .type = kRate,
       .retry_after = "*",
       .expected_headers = {{"x-ratelimit-limit-tokens", "500"},
                            {"x-ratelimit-reset-tokens", "duration"}}},
      {.name = "Errors__UnknownPath",
       .method = "GET",
       .target = "/v1/nothing",
       .status = 404,
       .code = "not_found",
       .type = kNotFound},
      {.name = "Errors__UnknownPathUnderTheAlias",
       .method = "GET",
       .target = "/openai/v1/nothing",
       .status = 404,
       .code = "not_found",
       .type = kNotFound},
      {.name = "Errors__ModelById",
       .key = "good",
       .method = "GET",
       .target = "/v1/models/$M",
       .status = 404,
       .code = "not_found",
       .type = kNotFound},
      {.name = "Errors__OtherMethodOnChat",
       .key = "good",
       .method = "GET",
       .status = 404,
       .code = "not_found",
       .type = kNotFound},
      {.name = "Errors__OtherMethodOnModels",
       .key = "good",
       .target = "/v1/models",
       .body = "{}",
       .status = 404,
       .code = "not_found",
       .type = kNotFound},
  };
}

// Engine failures and the responses to them: docs/design/wire.md 10.1, decision 22.
std::vector<Case> Engines() {
  struct Row {
    const char* what;
    const char* script;
    int status;
    const char* code;
    const char* type;
    const char* retry_after;
    const char* param = "";
  };
  const Row rows[] = {
      {"Engine500", R"({"status":500})", 500, "server_error", "server_error", "?"},
      {"Engine502", R"({"status":502})", 502, "server_error", "server_error", "?"},
      {"Engine504", R"({"status":504})", 502, "server_error", "server_error", "?"},
      // Short: the engine is not asked again until then, and later cases wait for it.
      {"Engine503", R"({"status":503,"headers":{"Retry-After":"2"}})", 503, "service_unavailable",
       "service_unavailable", "2"},
      {"Engine429", R"({"status":429,"headers":{"Retry-After":"2"}})", 429, "rate_limited", kRate,
       "2"},
      {"Engine422", R"({"status":422})", 400, "bad_request", kInvalid, ""},
      {"Engine401", R"({"status":401})", 502, "service_unavailable", "service_unavailable", "?"},
      {"EngineCutBeforeItsAnswer", R"({"cut_before_headers":true})", 502, "service_unavailable",
       "service_unavailable", "?"},
      {"EngineSaysContextLength",
       R"({"status":400,"error_body":{"error":{"message":"This model's maximum context length is 4096 tokens. However, your request has 5000 input tokens.","code":400}}})",
       400, "context_length_exceeded", kInvalid, "", "messages"},
      {"EngineSaysContextLengthUnder500",
       R"({"status":500,"error_body":{"object":"error","message":"The input (5000 tokens) is longer than the model's context length (4096 tokens).","code":500}})",
       400, "context_length_exceeded", kInvalid, "", "messages"},
  };
  std::vector<Case> cases;
  for (const Row& row : rows) {
    cases.push_back({.name = std::string("Errors__") + row.what,
                     .key = "good",
                     .body = Sim(row.script),
                     .simulated = true,
                     .status = row.status,
                     .code = row.code,
                     .type = row.type,
                     .param = row.param,
                     .retry_after = row.retry_after});
  }
  return cases;
}

// Framing is checked first (decision 16); the table of all forms is
// common/http/server_hostile_test.cc.
std::vector<Case> Framing() {
  const std::string post = "POST /v1/chat/completions HTTP/1.1\r\nHost: x\r\n";
  const std::string get = "GET /v1/models HTTP/1.1\r\nHost: x\r\n";
  const std::pair<const char*, std::string> rows[] = {
      {"LengthAndChunks",
       post + "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n"},
      {"TwoLengths", post + "Content-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef"},
      {"LengthWithSign", post + "Content-Length: +5\r\n\r\nabcde"},
      {"LengthAboveTheLimit", post + "Content-Length: 16777217\r\n\r\n"},
      {"LengthOfTwentyDigits", post + "Content-Length: 18446744073709551617\r\n\r\nx"},
      {"UnknownCoding", post + "Transfer-Encoding: xchunked\r\n\r\n"},
      {"ChunkSizeNoNumber", post + "Transfer-Encoding: chunked\r\n\r\nzz\r\n"},
      {"ChunkWithoutItsEnd", post + "Transfer-Encoding: chunked\r\n\r\n1\r\nxy\r\n0\r\n\r\n"},
      {"SpaceBeforeColon", "POST /v1/chat/completions HTTP/1.1\r\nHost : x\r\n\r\n"},
      {"FoldedField", get + " folded: y\r\n\r\n"},
      {"BareLineFeed", "GET /v1/models HTTP/1.1\r\nHost: x\nA: b\r\n\r\n"},
      {"ControlInField", get + "A: b\x01\r\n\r\n"},
      {"NoHost", "GET /v1/models HTTP/1.1\r\n\r\n"},
      {"TwoHosts", get + "Host: y\r\n\r\n"},
      {"LongHead", get + "A: " + std::string(64 * 1024, 'a') + "\r\n\r\n"},
      {"LongTarget", "GET /" + std::string(9 * 1024, 'a') + " HTTP/1.1\r\nHost: x\r\n\r\n"},
      {"AbsoluteTarget", "GET http://x/v1/models HTTP/1.1\r\nHost: x\r\n\r\n"},
      {"Connect", "CONNECT x:443 HTTP/1.1\r\nHost: x\r\n\r\n"},
      {"OtherVersion", "GET /v1/models HTTP/1.2\r\nHost: x\r\n\r\n"},
      {"NoHttp", "NONSENSE\r\n\r\n"},
  };
  std::vector<Case> cases;
  for (const auto& [what, bytes] : rows) {
    cases.push_back({.name = std::string("Framing__") + what,
                     .bytes = bytes,
                     .status = 400,
                     .code = "bad_request",
                     .type = kInvalid});
  }
  return cases;
}

std::vector<Case> Answers() {
  std::vector<Case> cases = {
      {.name = "ChatCompletion__Fields",
       .key = "good",
       .body = R"({"model":"$M","messages":[{"role":"user","content":"hello there"}]})",
       .members = {{"id", "*"},
                   {"object", "\"chat.completion\""},
                   {"created", "*"},
                   {"model", "\"$M\""},
                   {"choices.0.index", "0"},
                   {"choices.0.message.role", "\"assistant\""},
                   {"choices.0.message.content", "*"},
                   {"choices.0.finish_reason", "*"},
                   {"usage.prompt_tokens", "*"},
                   {"usage.completion_tokens", "*"},
                   {"usage.total_tokens", "*"}}},
  };
  for (const char* path : {"/v1/models", "/openai/v1/models"}) {
    const std::string alias = std::string(path).starts_with("/openai") ? "Alias" : "";
    const std::vector<std::pair<std::string, std::string>> members = {
        {"object", "\"list\""},         {"data.0.id", "*"},      {"data.0.object", "\"model\""},
        {"data.0.context_window", "*"}, {"data.0.pricing", "*"}, {"data.0.max_output_tokens", "*"},
        {"data.0.capabilities", "*"}};
    cases.push_back({.name = "Models" + alias + "__Public",
                     .method = "GET",
                     .target = path,
                     .members = members});
    cases.push_back({.name = "Models" + alias + "__BadKeyIsIgnored",
                     .method = "GET",
                     .target = path,
                     .headers = {{"Authorization", "Bearer nonsense"}},
                     .members = members});
  }
  cases.push_back({.name = "Models__KeyWithAListSeesItsModels",
                   .key = "narrow",
                   .method = "GET",
                   .target = "/v1/models",
                   .simulated = true,
                   .members = {{"data.0.id", "\"sim/text\""}, {"data.1", ""}}});
  return cases;
}

}  // namespace

const std::vector<Case>& Cases() {
  static const std::vector<Case> cases = [] {
    std::vector<Case> all;
    for (auto part : {Credentials(), BadRequests(), Refusals(), Engines(), Framing(), Answers()}) {
      all.insert(all.end(), part.begin(), part.end());
    }
    return all;
  }();
  return cases;
}

}  // namespace tollgate::test
