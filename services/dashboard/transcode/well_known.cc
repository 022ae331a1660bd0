#include "services/dashboard/transcode/well_known.h"

#include <google/protobuf/message.h>

#include <string_view>
#include <unordered_map>

namespace tollgate::transcode {

namespace pb = google::protobuf;

namespace {

constexpr std::string_view kPackage = "google.protobuf.";

}  // namespace

WellKnown WellKnownOf(const pb::Descriptor* type) {
  static const std::unordered_map<std::string, WellKnown> types = {
      {"google.protobuf.Timestamp", WellKnown::kTimestamp},
      {"google.protobuf.Duration", WellKnown::kDuration},
      {"google.protobuf.FieldMask", WellKnown::kFieldMask},
      {"google.protobuf.Any", WellKnown::kAny},
  };
  if (!type->full_name().starts_with(kPackage)) return WellKnown::kNone;
  const auto found = types.find(type->full_name());
  return found == types.end() ? WellKnown::kUnsupported : found->second;
}

bool IsKnownKind(const pb::FieldDescriptor* field) {
  switch (field->cpp_type()) {
    case pb::FieldDescriptor::CPPTYPE_FLOAT:
    case pb::FieldDescriptor::CPPTYPE_DOUBLE:
      return false;
    case pb::FieldDescriptor::CPPTYPE_ENUM:
      return !field->enum_type()->full_name().starts_with(kPackage);
    case pb::FieldDescriptor::CPPTYPE_MESSAGE: {
      const pb::Descriptor* type = field->message_type();
      if (field->is_map()) return type->map_key()->type() == pb::FieldDescriptor::TYPE_STRING;
      const WellKnown known = WellKnownOf(type);
      return known != WellKnown::kAny && known != WellKnown::kUnsupported;
    }
    default:
      return true;
  }
}

SecondsNanos GetTime(const pb::Message& message) {
  const pb::Reflection* access = message.GetReflection();
  const pb::Descriptor* type = message.GetDescriptor();
  return {access->GetInt64(message, type->FindFieldByNumber(1)),
          access->GetInt32(message, type->FindFieldByNumber(2))};
}

void SetTime(pb::Message& message, SecondsNanos value) {
  const pb::Reflection* access = message.GetReflection();
  const pb::Descriptor* type = message.GetDescriptor();
  access->SetInt64(&message, type->FindFieldByNumber(1), value.seconds);
  access->SetInt32(&message, type->FindFieldByNumber(2), value.nanos);
}

const pb::Message* FindType(const std::string& url) {
  const pb::Descriptor* type = pb::DescriptorPool::generated_pool()->FindMessageTypeByName(
      url.substr(url.rfind('/') + 1));  // npos + 1 is 0
  return type == nullptr ? nullptr : pb::MessageFactory::generated_factory()->GetPrototype(type);
}

}  // namespace tollgate::transcode
