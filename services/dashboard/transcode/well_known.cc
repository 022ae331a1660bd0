#include "services/dashboard/transcode/well_known.h"

#include <google/protobuf/message.h>

#include <unordered_map>

namespace tollgate::transcode {

namespace pb = google::protobuf;

WellKnown WellKnownOf(const pb::Descriptor* type) {
  static const std::unordered_map<std::string, WellKnown> types = {
      {"google.protobuf.Any", WellKnown::kAny},
      {"google.protobuf.Timestamp", WellKnown::kTimestamp},
      {"google.protobuf.Duration", WellKnown::kDuration},
      {"google.protobuf.DoubleValue", WellKnown::kWrapper},
      {"google.protobuf.FloatValue", WellKnown::kWrapper},
      {"google.protobuf.Int64Value", WellKnown::kWrapper},
      {"google.protobuf.UInt64Value", WellKnown::kWrapper},
      {"google.protobuf.Int32Value", WellKnown::kWrapper},
      {"google.protobuf.UInt32Value", WellKnown::kWrapper},
      {"google.protobuf.BoolValue", WellKnown::kWrapper},
      {"google.protobuf.StringValue", WellKnown::kWrapper},
      {"google.protobuf.BytesValue", WellKnown::kWrapper},
      {"google.protobuf.Struct", WellKnown::kStruct},
      {"google.protobuf.ListValue", WellKnown::kListValue},
      {"google.protobuf.Value", WellKnown::kValue},
      {"google.protobuf.FieldMask", WellKnown::kFieldMask},
      {"google.protobuf.Empty", WellKnown::kEmpty},
  };
  if (!type->full_name().starts_with("google.protobuf.")) return WellKnown::kNone;
  const auto found = types.find(type->full_name());
  return found == types.end() ? WellKnown::kNone : found->second;
}

bool IsNullValue(const pb::FieldDescriptor* field) {
  return field->enum_type() != nullptr &&
         field->enum_type()->full_name() == "google.protobuf.NullValue";
}

bool TakesNull(const pb::FieldDescriptor* field) {
  if (field->message_type() != nullptr)
    return WellKnownOf(field->message_type()) == WellKnown::kValue;
  return IsNullValue(field);
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
