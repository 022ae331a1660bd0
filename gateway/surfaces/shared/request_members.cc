#include "gateway/surfaces/shared/request_members.h"

#include "common/base/try.h"
#include "gateway/surfaces/shared/engine_fields.h"

namespace tollgate::gateway {

Result<void> ReadMembers(
    json::Value body, std::span<const FieldRule> rules, MemberWriter& writer,
    CanonicalRequest& request,
    const std::function<Result<void>(const FieldRule& rule, json::Value member)>& on_member) {
  TRY(ReadRouting(body, request));
  for (const json::Value member : body) {
    if (member.is_null()) continue;
    const FieldRule* rule = FindRule(rules, member);
    const bool shared = rule == nullptr;
    if (shared) rule = FindEngineField(member);
    if (rule != nullptr) {
      if (rule->action == FieldAction::kDrop) continue;
      TRY(CheckEngineField(*rule, member));
      if (on_member) {
        TRY(on_member(*rule, member));
      }
      if (shared) ReadEngineField(*rule, member, request);
      if (rule->action == FieldAction::kConsume) continue;
    }
    TRY(CheckTemplateArguments(member, request));
    if (IsPromptField(member)) {
      request.prompt.text_bytes += static_cast<int64_t>(member.raw().size());
    }
    if (rule != nullptr) {
      ForwardEngineField(*rule, member, writer);
    } else {
      writer.Forward(member);
    }
  }
  return {};
}

Result<bool> ReadIncludeUsage(json::Value body) {
  const json::Value include = body.Find("stream_options").Find("include_usage");
  if (include.is_null()) return false;
  if (!include.is_bool()) {
    return BadRequest("'stream_options.include_usage' must be true or false.", "stream_options");
  }
  return include.boolean() && body.Find("stream").boolean();
}

}  // namespace tollgate::gateway
