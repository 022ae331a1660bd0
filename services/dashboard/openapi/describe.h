// Writes the OpenAPI document of services with google.api.http options.
#pragma once

#include <google/protobuf/descriptor.h>

#include <vector>

#include "services/dashboard/openapi/document.h"

namespace tollgate::openapi {

// files: with comments, in the order of the document.
Node Describe(const std::vector<const google::protobuf::FileDescriptor*>& files);

}  // namespace tollgate::openapi
