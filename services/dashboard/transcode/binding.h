// Builds the request message of a call from body, path and query.
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/support/status.h>

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/base/result.h"
#include "services/dashboard/transcode/routes.h"

namespace tollgate::transcode {

// Decoded pairs of a query or a form, in their order.
using Pairs = std::vector<std::pair<std::string, std::string>>;
// Fails with "invalid URL escape …" and the like.
BasicResult<Pairs, std::string> ParseQuery(std::string_view text);

struct RequestParts {
  std::string_view body;
  // Values of the path's variables.
  std::vector<std::string> values;
  // The query as sent, and a body that is a form and counts as query.
  std::string_view query;
  std::string_view form;
};

// INVALID_ARGUMENT with the problem. request must be empty.
grpc::Status Bind(const Route& route, const RequestParts& parts,
                  google::protobuf::Message& request);

}  // namespace tollgate::transcode
