// Makes the request message of a call from body, path and query.
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
  // Of the path's variables.
  std::vector<std::string> values;
  // The query as sent, and the form in the body, if it counts as query.
  std::string_view query;
  std::string_view form;
};

// The status says what is wrong: INVALID_ARGUMENT; INTERNAL for text of path or query that is not
// UTF-8. request must be empty.
grpc::Status Bind(const Route& route, const RequestParts& parts,
                  google::protobuf::Message& request);

}  // namespace tollgate::transcode
