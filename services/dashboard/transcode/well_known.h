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
  kTimestamp,
  kDuration,
  kFieldMask,
  kAny,          // written only, in the details of errors
  kUnsupported,  // other types of google.protobuf, such as Struct and the wrappers
};

WellKnown WellKnownOf(const google::protobuf::Descriptor* type);
// Whether the codec reads and writes the field. False for floats, maps whose keys are not strings,
// and types of google.protobuf other than Timestamp, Duration and FieldMask.
bool IsKnownKind(const google::protobuf::FieldDescriptor* field);

// For google.protobuf.Timestamp and Duration.
SecondsNanos GetTime(const google::protobuf::Message& message);
void SetTime(google::protobuf::Message& message, SecondsNanos value);

// The type that an Any's URL names; null if unknown.
const google::protobuf::Message* FindType(const std::string& url);

}  // namespace tollgate::transcode
