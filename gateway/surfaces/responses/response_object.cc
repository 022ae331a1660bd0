#include "gateway/surfaces/responses/response_object.h"

#include <algorithm>

#include "gateway/envelopes/response_error.h"

namespace tollgate::gateway {

namespace {

// All counters with both details (docs/design/wire.md 5.2).
std::string UsageJson(const tollgate::common::v1::Usage& usage, std::string_view cost) {
  return "{\"input_tokens\":" + std::to_string(usage.prompt_tokens()) +
         ",\"input_tokens_details\":{\"cached_tokens\":" + std::to_string(usage.cached_tokens()) +
         ",\"cache_write_tokens\":" + std::to_string(usage.cache_write_tokens()) +
         "},\"output_tokens\":" + std::to_string(usage.completion_tokens()) +
         ",\"output_tokens_details\":{\"reasoning_tokens\":" +
         std::to_string(usage.reasoning_tokens()) +
         "},\"total_tokens\":" + std::to_string(usage.prompt_tokens() + usage.completion_tokens()) +
         std::string(cost) + "}";
}

}  // namespace

ResponseObject::ResponseObject(const CanonicalRequest& request, const ResponseStamp& stamp)
    : state_(request.state), stamp_(stamp), model_(json::Quoted(request.model)), cost_(request) {}

void ResponseObject::Append(std::string& out, const Progress& progress) const {
  const std::string& echo = static_cast<const ResponsesState&>(*state_).echo_json;
  out.reserve(out.size() + 512 + progress.output.size() + echo.size());
  out += "{\"id\":\"resp_";
  out += stamp_.id;
  out += "\",\"object\":\"response\",\"created_at\":";
  out += std::to_string(stamp_.created_s);
  out += ",\"completed_at\":";
  out += progress.completed_at;
  out += ",\"status\":\"";
  out += progress.status;
  out += "\",\"error\":";
  out += progress.error;
  out += ",\"incomplete_details\":";
  out += progress.incomplete_details;
  out += ",\"model\":";
  out += model_;
  out += ",\"output\":";
  out += progress.output;
  out += ",\"usage\":";
  out += progress.usage;
  out += ",";
  out += echo;
  out += "}";
}

void ResponseObject::AppendEnded(std::string& out, const OutputItems::Outcome& outcome,
                                 std::string_view output, const inference::v1::End& end) const {
  const std::string usage_json = UsageJson(end.usage(), cost_.Members(end));
  if (outcome.completed) {
    const std::string now = std::to_string(std::max(stamp_.NowS(), stamp_.created_s));
    Append(out,
           {.status = "completed", .completed_at = now, .output = output, .usage = usage_json});
    return;
  }
  const std::string details = "{\"reason\":\"" + std::string(outcome.incomplete_reason) + "\"}";
  Append(out, {.status = "incomplete",
               .incomplete_details = details,
               .output = output,
               .usage = usage_json});
}

void ResponseObject::AppendFailed(std::string& out, const Error& error,
                                  std::string_view output) const {
  const std::string error_json = ResponseError(error);
  Append(out, {.status = "failed", .error = error_json, .output = output});
}

}  // namespace tollgate::gateway
