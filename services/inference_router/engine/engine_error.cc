#include "services/inference_router/engine/engine_error.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "services/inference_router/engine/context_length.h"

namespace tollgate::inference_router {
namespace {

constexpr int64_t kMaxRetryAfterMs = 60'000;
// llama.cpp answers with this 500 when an earlier tool call in the request has arguments that are
// not valid JSON, for example after an answer was cut off. No other engine can do better.
constexpr std::string_view kBadArguments = "Failed to parse tool call arguments as JSON";

EngineFailure Make(ErrorId id, std::string message, std::string internal) {
  EngineFailure failure;
  failure.error.id = id;
  failure.error.message = std::move(message);
  failure.error.internal = std::move(internal);
  return failure;
}

json::Limits EngineLimits() {
  json::Limits limits;
  limits.allow_lone_surrogates = true;
  limits.allow_nul = true;
  return limits;
}

// An identifier such as "BadRequestError" is safe to log; free text is not.
std::string SafeSlug(const json::Value& value) {
  if (!value.is_string()) return "";
  std::string text = value.string();
  if (text.size() > 48) return "";
  const bool safe = std::all_of(text.begin(), text.end(), [](unsigned char c) {
    return std::isalnum(c) || c == '_' || c == '.' || c == '-';
  });
  return safe ? text : "";
}

// The object with message and type: the inner `error` object if there is one.
json::Value Inner(const json::Value& object) {
  json::Value error = object.Find("error");
  return error.is_object() ? error : object;
}

// docs/design/wire.md 10.1: error.message, message, error, detail, in that order.
std::string TextOf(const json::Value& object) {
  if (object.is_string()) return object.string();
  if (!object.is_object()) return "";
  json::Value error = object.Find("error");
  if (error.is_object() && error.Find("message").is_string()) return error.Find("message").string();
  if (object.Find("message").is_string()) return object.Find("message").string();
  if (error.is_string()) return error.string();
  json::Value detail = object.Find("detail");
  if (detail.is_string()) return detail.string();
  std::string joined;
  if (detail.is_array()) {
    for (json::Value item : detail) {
      if (!item.is_object() || !item.Find("msg").is_string()) continue;
      if (!joined.empty()) joined += "; ";
      joined += item.Find("msg").string();
    }
  }
  return joined;
}

std::optional<ContextLength> StructuredContextLength(const json::Value& object, int status) {
  if (!object.is_object()) return std::nullopt;
  const json::Value inner = Inner(object);
  ContextLength found;
  if (inner.Find("code").is_string() &&
      inner.Find("code").StringEquals("context_length_exceeded")) {
    found.matched_by = "code";
  } else if (inner.Find("type").is_string() &&
             inner.Find("type").StringEquals("exceed_context_size_error")) {
    found.matched_by = "type";
    found.prompt = inner.Find("n_prompt_tokens").Integer();
    found.limit = inner.Find("n_ctx").Integer();
  } else if (status == 400 && inner.Find("param").is_string() &&
             (inner.Find("param").StringEquals("input_tokens") ||
              inner.Find("param").StringEquals("input_text"))) {
    found.matched_by = "param";
  } else {
    return std::nullopt;
  }
  return found;
}

std::optional<ContextLength> FindContextLength(const json::Value& object, std::string_view text,
                                               int status) {
  std::optional<ContextLength> structured = StructuredContextLength(object, status);
  if (structured && structured->limit) return structured;
  std::optional<ContextLength> matched = MatchContextLength(text, status);
  if (matched && !matched->limit && object.is_object()) {
    matched->prompt = Inner(object).Find("n_prompt_tokens").Integer();
    matched->limit = Inner(object).Find("n_ctx").Integer();
  }
  return matched ? matched : structured;
}

int64_t RetryAfterMs(std::string_view header, int64_t fallback_ms) {
  int64_t seconds = 0;
  auto [end, code] = std::from_chars(header.data(), header.data() + header.size(), seconds);
  if (header.empty() || code != std::errc() || seconds < 0) return fallback_ms;
  return std::clamp<int64_t>(seconds, 1, kMaxRetryAfterMs / 1000) * 1000;
}

// status 0: unknown.
EngineFailure ByStatus(int status, std::string_view retry_after, std::string internal) {
  EngineFailure failure;
  switch (status) {
    case 401:
    case 403:
    case 404:  // the catalog's credential or model name is wrong for this engine: decision 22
      failure = Make(ErrorId::kUpstreamUnreachable, "The model is temporarily unreachable.",
                     std::move(internal));
      failure.error.retry_after_ms = 1000;
      failure.try_elsewhere = true;
      failure.not_found = status == 404;
      return failure;
    case 429:
      failure = Make(ErrorId::kRateLimited, "The model is temporarily at capacity. Please retry.",
                     std::move(internal));
      failure.error.reason = Reason::kEngineRefused;
      failure.error.retry_after_ms = RetryAfterMs(retry_after, 1000);
      failure.pause_ms = RetryAfterMs(retry_after, 0);
      failure.try_elsewhere = true;
      return failure;
    case 503:
      failure = Make(ErrorId::kServiceUnavailable, "The model is temporarily over capacity.",
                     std::move(internal));
      failure.error.reason = Reason::kEngineRefused;
      failure.error.retry_after_ms = RetryAfterMs(retry_after, 1000);
      failure.pause_ms = RetryAfterMs(retry_after, 0);
      failure.try_elsewhere = true;
      return failure;
    default:
      break;
  }
  if (status >= 400 && status < 500) {
    return Make(
        ErrorId::kBadRequest,
        "The model's engine refused the request: a parameter or message is not supported by "
        "this model.",
        std::move(internal));
  }
  // 502 and 504 come from a proxy in front of the engine, all other 5xx from the engine itself.
  const bool internal_error = status >= 500 && status != 502 && status != 504;
  failure = Make(internal_error ? ErrorId::kServerError : ErrorId::kUpstreamError,
                 "The model failed to answer. Please retry.", std::move(internal));
  failure.try_elsewhere = true;
  return failure;
}

// The status inside an error object, else the given one.
int StatusInside(const json::Value& object, int status) {
  if (!object.is_object()) return status;
  const json::Value inner = Inner(object);
  std::optional<int64_t> code;
  if (inner.Find("code").is_number()) code = inner.Find("code").Integer();
  if (code && *code >= 400 && *code <= 599) return static_cast<int>(*code);
  json::Value type = object.Find("error_type");  // TGI
  if (type.is_string() && type.StringEquals("overloaded")) return 429;
  if (type.is_string() && type.StringEquals("validation")) return 422;
  type = inner.Find("type");
  if (!type.is_string()) return status;
  for (const char* refused : {"BadRequestError", "invalid_request_error", "Bad Request"}) {
    if (type.StringEquals(refused)) return 400;
  }
  if (type.StringEquals("unavailable_error")) return 503;
  return status;
}

EngineFailure Classify(const json::Value& object, std::string_view text, int status,
                       int effective_status, std::string_view retry_after, int64_t window) {
  std::string internal =
      status ? "engine status " + std::to_string(status) : "engine error in stream";
  if (object.is_object()) {
    std::string slug = SafeSlug(Inner(object).Find("type"));
    if (!slug.empty()) internal += ", type " + slug;
  }
  if (auto found = FindContextLength(object, text, effective_status)) {
    const TokenAccounting tokens = AccountTokens(*found, window);
    internal += ", context length by " + std::string(found->matched_by);
    EngineFailure failure =
        Make(ErrorId::kContextLengthExceeded,
             ContextLengthMessage(tokens, found->total.value_or(0)), std::move(internal));
    failure.error.tokens = tokens;
    return failure;
  }
  return ByStatus(effective_status, retry_after, std::move(internal));
}

}  // namespace

EngineFailure ClassifyResponse(int status, std::string_view body, std::string_view retry_after,
                               int64_t window) {
  auto parsed = json::Document::ParseView(body, EngineLimits());
  if (!parsed.ok()) return Classify({}, body, status, status, retry_after, window);
  const json::Value root = parsed->root();
  // The HTTP status decides, but some engines hide the real status in the body of a 500, 400 or
  // 424.
  int effective = status;
  if (status >= 500 && (status < 502 || status > 504)) {
    const int inside = StatusInside(root, status);
    if (inside == 400 || inside == 422 || inside == 429) effective = inside;
    if (TextOf(root).starts_with(kBadArguments)) effective = 400;
  } else if (status == 424 || status == 400) {
    const int inside = StatusInside(root, status);
    if (inside == 429 || inside >= 500) effective = inside;
    if (status == 424 && effective == 424) effective = 500;  // TGI: generation failed
  }
  return Classify(root, TextOf(root), status, effective, retry_after, window);
}

EngineFailure ClassifyInStream(const json::Value& object, int64_t window) {
  return Classify(object, TextOf(object), 0, StatusInside(object, 0), "", window);
}

bool IsErrorObject(const json::Value& object) {
  if (!object.is_object()) return false;
  const json::Value error = object.Find("error");
  if (error.is_object() || error.is_string()) return true;
  const json::Value kind = object.Find("object");
  return kind.is_string() && kind.StringEquals("error");
}

EngineFailure Unreachable(std::string_view internal) {
  EngineFailure failure = Make(ErrorId::kUpstreamUnreachable,
                               "The model's engine could not be reached.", std::string(internal));
  failure.error.retry_after_ms = 1000;
  failure.try_elsewhere = true;
  return failure;
}

EngineFailure BrokenResponse(std::string_view internal) {
  EngineFailure failure =
      Make(ErrorId::kUpstreamError, "The model's engine ended its response early.",
           std::string(internal));
  failure.try_elsewhere = true;
  return failure;
}

// Not retried on another engine, because the client has already waited for the whole timeout.
EngineFailure TimedOut(AnswerLimit limit) {
  EngineFailure failure =
      Make(ErrorId::kUpstreamError, "The model's engine did not answer in time.",
           "above the bound " + std::string(NameOf(limit)));
  failure.limit = limit;
  return failure;
}

EngineFailure OverLimit(AnswerLimit limit) {
  EngineFailure failure =
      Make(ErrorId::kUpstreamError, "The model's engine sent an answer above the limits.",
           "above the bound " + std::string(NameOf(limit)));
  failure.try_elsewhere = true;
  failure.limit = limit;
  return failure;
}

std::string_view NameOf(AnswerLimit limit) {
  switch (limit) {
    case AnswerLimit::kAnswerBytes:
      return "answer_bytes";
    case AnswerLimit::kToolCalls:
      return "tool_calls";
    case AnswerLimit::kToolArguments:
      return "tool_arguments";
    case AnswerLimit::kSilentEvents:
      return "silent_events";
    case AnswerLimit::kFirstOutput:
      return "first_output";
    case AnswerLimit::kSilence:
      return "silence";
    case AnswerLimit::kAnswerTime:
      return "answer_time";
    case AnswerLimit::kMaxTokens:
      return "max_tokens";
    case AnswerLimit::kNone:
      break;
  }
  return "none";
}

}  // namespace tollgate::inference_router
