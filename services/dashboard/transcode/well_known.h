// Message types with a special form in JSON.
#pragma once

#include <google/protobuf/descriptor.h>

#include <string>

#include "services/dashboard/transcode/time_text.h"

namespace google::protobuf {
class Message;
}

namespace tollgate::transcode {

enum class WellKnown {
  kNone,
  kAny,
  kTimestamp,
  kDuration,
  kWrapper,
  kStruct,
  kListValue,
  kValue,
  kFieldMask,
  kEmpty,
};

WellKnown WellKnownOf(const google::protobuf::Descriptor* type);
// Whether a JSON null is a value of the field instead of its absence.
bool TakesNull(const google::protobuf::FieldDescriptor* field);
bool IsNullValue(const google::protobuf::FieldDescriptor* field);

// For google.protobuf.Timestamp and Duration.
SecondsNanos GetTime(const google::protobuf::Message& message);
void SetTime(google::protobuf::Message& message, SecondsNanos value);

// The type that an Any's URL names; null if unknown.
const google::protobuf::Message* FindType(const std::string& url);

}  // namespace tollgate::transcode
