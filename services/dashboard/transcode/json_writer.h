// Writes messages as proto3 JSON, by reflection, as protojson with EmitUnpopulated does. Compact.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <string>

#include "common/base/result.h"

namespace tollgate::transcode {

// The error names what JSON cannot represent, for example a year after 9999.
BasicResult<std::string, std::string> WriteMessage(const google::protobuf::Message& message);
// A singular message ({} if unset), or a list of messages.
BasicResult<std::string, std::string> WriteField(const google::protobuf::Message& message,
                                                 const google::protobuf::FieldDescriptor* field);

// JSON text with <, >, &, U+2028 and U+2029 as \u escapes.
std::string EscapeForHtml(std::string_view json);

}  // namespace tollgate::transcode
