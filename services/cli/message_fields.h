// Reads and sets fields of messages by their path, with protobuf's reflection.
#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <string>
#include <vector>

#include "services/cli/command.h"

namespace tollgate::cli {

// "key.limits" or "name.id": the fields, and the part of a string field that follows them. No
// fields: the type has no such path.
struct FieldPath {
  std::vector<const google::protobuf::FieldDescriptor*> fields;
  std::string part;

  static FieldPath Of(const google::protobuf::Descriptor& type, const std::string& path);
};

// Sets a field from text; a repeated field gets all texts, a map "name=value". Makes the messages
// on the way; of a repeated one it uses the first. Returns false if a text has no value of this
// type.
bool SetField(google::protobuf::Message& message, const std::string& path,
              const std::vector<std::string>& texts);
// Sets a Timestamp or a Duration.
void SetTime(google::protobuf::Message& message, const std::string& path, int64_t us);
// The message at this path; a repeated one's first element.
const google::protobuf::Message& MessageAt(const google::protobuf::Message& message,
                                           const std::string& path);
bool BoolAt(const google::protobuf::Message& message, const std::string& path);
std::string TextAt(const google::protobuf::Message& message, const std::string& path);
// What a table shows of the message.
Cell CellAt(const google::protobuf::Message& message, const Shown& shown);

}  // namespace tollgate::cli
