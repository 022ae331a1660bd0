// Derives the update mask of a PATCH from the fields in its body.
#pragma once

#include <google/protobuf/descriptor.h>

#include <string>
#include <vector>

#include "services/dashboard/transcode/json_reader.h"

namespace tollgate::transcode {

// Paths of all fields in an object: proto names, sorted, recursing into messages. Fails for an
// unknown name.
Read<std::vector<std::string>> FieldPaths(json::Value value,
                                          const google::protobuf::Descriptor* type);

}  // namespace tollgate::transcode
