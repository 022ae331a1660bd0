#include "common/tracing/otlp.h"

#include <algorithm>
#include <map>

namespace tollgate::tracing {
namespace {

namespace pb = otlp::v1;

constexpr uint32_t kSampled = 1, kKnowsParent = 0x100, kParentIsRemote = 0x200;

std::string BytesOf(SpanId id) {
  std::string bytes;
  for (int shift = 56; shift >= 0; shift -= 8) bytes += static_cast<char>(id >> shift);
  return bytes;
}

void SetValue(const Value& from, pb::AnyValue& to) {
  if (const auto* text = std::get_if<std::string>(&from)) {
    to.set_string_value(*text);
  } else if (const auto* flag = std::get_if<bool>(&from)) {
    to.set_bool_value(*flag);
  } else if (const auto* number = std::get_if<int64_t>(&from)) {
    to.set_int_value(*number);
  } else {
    auto& list = *to.mutable_array_value();
    for (const std::string& one : std::get<std::vector<std::string>>(from)) {
      list.add_values()->set_string_value(one);
    }
  }
}

template <typename To>
void AddAttribute(std::string_view key, const Value& value, To& to) {
  pb::KeyValue& attribute = *to.add_attributes();
  attribute.set_key(std::string(key));
  SetValue(value, *attribute.mutable_value());
}

uint64_t ToNanoseconds(int64_t us) {
  return static_cast<uint64_t>(std::max<int64_t>(us, 0)) * 1000;
}

void Write(const Span& span, pb::Span& to) {
  to.set_trace_id(span.context.trace_id.data(), span.context.trace_id.size());
  to.set_span_id(BytesOf(span.context.span_id));
  if (span.parent != 0) to.set_parent_span_id(BytesOf(span.parent));
  to.set_name(span.name);
  to.set_kind(static_cast<pb::SpanKind>(span.kind));
  to.set_start_time_unix_nano(ToNanoseconds(span.start_us));
  to.set_end_time_unix_nano(ToNanoseconds(std::max(span.end_us, span.start_us)));
  for (const auto& [key, value] : span.attributes) AddAttribute(key, value, to);
  for (const SpanEvent& event : span.events) {
    pb::Event& one = *to.add_events();
    one.set_time_unix_nano(ToNanoseconds(event.at_us));
    one.set_name(std::string(event.name));
  }
  if (span.failed) to.mutable_status()->set_code(pb::STATUS_CODE_ERROR);
  const bool remote = span.kind == SpanKind::kServer && span.parent != 0;
  to.set_flags((span.context.sampled ? kSampled : 0) | kKnowsParent |
               (remote ? kParentIsRemote : 0));
}

}  // namespace

pb::ExportRequest ToOtlp(const ProcessName& process, const std::vector<Span>& spans) {
  pb::ExportRequest message;
  pb::ResourceSpans& all = *message.add_resource_spans();
  AddAttribute("service.name", "tollgate-" + process.service, *all.mutable_resource());
  AddAttribute("service.namespace", std::string("tollgate"), *all.mutable_resource());
  AddAttribute("service.version", std::string(TOLLGATE_VERSION), *all.mutable_resource());
  AddAttribute("service.instance.id", process.instance, *all.mutable_resource());
  std::map<std::string_view, pb::ScopeSpans*> scopes;
  for (const Span& span : spans) {
    pb::ScopeSpans*& scope = scopes[span.scope];
    if (scope == nullptr) {
      scope = all.add_scope_spans();
      scope->mutable_scope()->set_name(std::string(span.scope));
      scope->mutable_scope()->set_version(TOLLGATE_VERSION);
    }
    Write(span, *scope->add_spans());
  }
  return message;
}

}  // namespace tollgate::tracing
