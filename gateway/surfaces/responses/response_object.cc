#include "gateway/surfaces/responses/response_object.h"

#include <algorithm>

#include "gateway/envelopes/stream_error.h"

namespace tollgate::gateway {

namespace {

// All five counters, with both details (wire.md 5.2).
std::string UsageJson(const tollgate::common::v1::Usage& usage) {
  return "{\"input_tokens\":" + std::to_string(usage.prompt_tokens()) +
         ",\"input_tokens_details\":{\"cached_tokens\":" + std::to_string(usage.cached_tokens()) +
         ",\"cache_write_tokens\":" + std::to_string(usage.cache_write_tokens()) +
         "},\"output_tokens\":" + std::to_string(usage.completion_tokens()) +
         ",\"output_tokens_details\":{\"reasoning_tokens\":" +
         std::to_string(usage.reasoning_tokens()) +
         "},\"total_tokens\":" + std::to_string(usage.prompt_tokens() + usage.completion_tokens()) +
         "}";
}

}  // namespace

ResponseObject::ResponseObject(const CanonicalRequest& request, const AnswerStamp& stamp)
    : state_(request.state), stamp_(stamp), model_(json::Quoted(request.model)) {}

void ResponseObject::Append(std::string& out, const Changing& changing) const {
  const std::string& echo = static_cast<const ResponsesState&>(*state_).echo_json;
  out.reserve(out.size() + 512 + changing.output.size() + echo.size());
  out += "{\"id\":\"resp_";
  out += stamp_.id;
  out += "\",\"object\":\"response\",\"created_at\":";
  out += std::to_string(stamp_.created_s);
  out += ",\"completed_at\":";
  out += changing.completed_at;
  out += ",\"status\":\"";
  out += changing.status;
  out += "\",\"error\":";
  out += changing.error;
  out += ",\"incomplete_details\":";
  out += changing.incomplete_details;
  out += ",\"model\":";
  out += model_;
  out += ",\"output\":";
  out += changing.output;
  out += ",\"usage\":";
  out += changing.usage;
  out += ",";
  out += echo;
  out += "}";
}

void ResponseObject::AppendEnded(std::string& out, const OutputItems::Outcome& outcome,
                                 std::string_view output,
                                 const tollgate::common::v1::Usage& usage) const {
  const std::string counted = UsageJson(usage);
  if (outcome.completed) {
    const std::string now = std::to_string(std::max(stamp_.NowS(), stamp_.created_s));
    Append(out, {.status = "completed", .completed_at = now, .output = output, .usage = counted});
    return;
  }
  const std::string details = "{\"reason\":\"" + std::string(outcome.incomplete_reason) + "\"}";
  Append(
      out,
      {.status = "incomplete", .incomplete_details = details, .output = output, .usage = counted});
}

void ResponseObject::AppendFailed(std::string& out, const Error& error,
                                  std::string_view output) const {
  const std::string told = ResponseError(error);
  Append(out, {.status = "failed", .error = told, .output = output});
}

}  // namespace tollgate::gateway
