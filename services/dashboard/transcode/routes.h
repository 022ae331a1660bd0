// Routes of services with google.api.http options, as in grpc-gateway.
#pragma once

#include <google/protobuf/descriptor.h>

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "services/dashboard/transcode/path_template.h"

namespace tollgate::transcode {

struct Route {
  std::string http_method;
  PathTemplate path;
  const google::protobuf::MethodDescriptor* method = nullptr;
  // Target of the JSON body: nothing, the whole request (kWhole), or body_field.
  enum class Body { kNone, kWhole, kField } body = Body::kNone;
  const google::protobuf::FieldDescriptor* body_field = nullptr;
  // Field to return as the answer; null: the whole message.
  const google::protobuf::FieldDescriptor* response_field = nullptr;
  // Update mask to fill from the body of a PATCH; null: none.
  const google::protobuf::FieldDescriptor* mask_field = nullptr;
  // For each path variable, the path to its field from the request down.
  std::vector<std::vector<const google::protobuf::FieldDescriptor*>> variables;

  // Whether the query is read: false if body and path cover all fields.
  bool has_query = true;
  // Proto names of fields that path and body set and that the query must not set: "key", or
  // "key.name".
  std::vector<std::vector<std::string>> hidden;

  // "/package.Service/Method".
  std::string RpcPath() const;
};

class RouteTable {
 public:
  // Adds the services in the order given. Fails with the error in an option.
  static BasicResult<RouteTable, std::string> Make(
      const std::vector<const google::protobuf::ServiceDescriptor*>& services);
  // Adds a route without descriptors, for tests of the matching.
  void Add(Route route);

  struct Found {
    enum class Kind { kRoute, kNotFound, kOtherMethod } kind = Kind::kNotFound;
    const Route* route = nullptr;
    std::vector<std::string> values;  // values of the path variables
  };
  // segments: of the decoded path. The route that was registered last wins. get_too: falls back to
  // a GET route if the method has none (a form that is posted instead of a long query).
  Found Find(const std::string& http_method, const std::vector<std::string>& segments,
             bool get_too) const;

  // Keyed by HTTP method, in the order of registration.
  const std::map<std::string, std::vector<Route>>& routes() const { return routes_; }

 private:
  BasicResult<void, std::string> AddMethod(const google::protobuf::MethodDescriptor* method);
  std::map<std::string, std::vector<Route>> routes_;
};

// Splits the decoded path at "/", without the leading one.
std::vector<std::string> SplitPath(std::string_view path);

}  // namespace tollgate::transcode
