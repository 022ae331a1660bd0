// Reads proto3 JSON into messages, by reflection, as protojson with DiscardUnknown does.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <string>
#include <string_view>

#include "common/base/result.h"
#include "common/json/json.h"

namespace tollgate::transcode {

// The error describes the problem in the caller's JSON.
template <typename T>
using Read = BasicResult<T, std::string>;

// Depth of nested messages. Unknown fields may be as deep as the parser allows.
inline constexpr int kMaxMessageDepth = 1'000;

// Parses the first value of a body and ignores what follows. The text must outlive the document.
Read<json::Document> ParseBody(std::string_view text);
// Whether the text is only white space.
bool IsBlank(std::string_view text);

// The message must be empty.
Read<void> ReadMessage(json::Value value, google::protobuf::Message& message);
// Reads a value into one field of the message, without an object around it.
Read<void> ReadField(json::Value value, google::protobuf::Message& message,
                     const google::protobuf::FieldDescriptor* field);

// Finds a field by proto name, then by JSON name. Null if unknown.
const google::protobuf::FieldDescriptor* FindField(const google::protobuf::Descriptor* type,
                                                   std::string_view name);

}  // namespace tollgate::transcode
