// The routes of services whose methods have google.api.http options, as a grpc-gateway has them.
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
  // What the JSON body is read into: nothing, the whole request (kWhole), or this field.
  enum class Body { kNone, kWhole, kField } body = Body::kNone;
  const google::protobuf::FieldDescriptor* body_field = nullptr;
  // The field that is the answer; null: the whole message.
  const google::protobuf::FieldDescriptor* response_field = nullptr;
  // The update mask that is made from the body of a PATCH; null: none.
  const google::protobuf::FieldDescriptor* mask_field = nullptr;
  // For each variable of the path its field, from the request down.
  std::vector<std::vector<const google::protobuf::FieldDescriptor*>> variables;

  // Whether the query is read: the body and the path leave fields to it.
  bool has_query = true;
  // Proto names of what the path and the body set, which the query must not: "key", or "key.name".
  std::vector<std::vector<std::string>> hidden;

  // "/package.Service/Method".
  std::string RpcPath() const;
};

class RouteTable {
 public:
  // In the order of registration. Fails with what is wrong with an option.
  static BasicResult<RouteTable, std::string> Make(
      const std::vector<const google::protobuf::ServiceDescriptor*>& services);
  // Without descriptors, for tests of the matching.
  void Add(Route route);

  struct Found {
    enum class Kind { kRoute, kNotFound, kOtherMethod } kind = Kind::kNotFound;
    const Route* route = nullptr;
    std::vector<std::string> values;  // of the variables
  };
  // segments: of the decoded path. The route that was registered last wins. get_too: a GET route
  // is taken when the method has none (a form that is posted instead of a long query).
  Found Find(const std::string& http_method, const std::vector<std::string>& segments,
             bool get_too) const;

  // By HTTP method, in the order of registration.
  const std::map<std::string, std::vector<Route>>& routes() const { return routes_; }

 private:
  BasicResult<void, std::string> AddMethod(const google::protobuf::MethodDescriptor* method);
  std::map<std::string, std::vector<Route>> routes_;
};

// The decoded path split at "/", without the first one.
std::vector<std::string> SplitPath(std::string_view path);

}  // namespace tollgate::transcode
