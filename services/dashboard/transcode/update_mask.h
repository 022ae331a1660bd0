// The update mask of a PATCH, from what its body names.
#pragma once

#include <google/protobuf/descriptor.h>

#include <string>
#include <vector>

#include "services/dashboard/transcode/json_reader.h"

namespace tollgate::transcode {

// The paths of the fields that an object names, as an update mask: proto names, sorted, down into
// messages. Fails with an unknown name.
Read<std::vector<std::string>> FieldPaths(json::Value value,
                                          const google::protobuf::Descriptor* type);

}  // namespace tollgate::transcode
