#pragma once

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>

#include <string>

namespace tollgate::cli {

// A method of tollgate.admin.v1.
class Method {
 public:
  // name: "KeyService.ListKeys". It must exist; command_table_test checks that of all rows.
  static Method Of(const std::string& name);

  // An empty request or response of its type.
  const google::protobuf::Message& request() const { return Empty(*method_.input_type()); }
  const google::protobuf::Message& response() const { return Empty(*method_.output_type()); }
  // The process that serves it: "auth" or "billing".
  const char* process() const;
  std::string path() const;  // "/tollgate.admin.v1.KeyService/ListKeys"

 private:
  explicit Method(const google::protobuf::MethodDescriptor& method) : method_(method) {}
  static const google::protobuf::Message& Empty(const google::protobuf::Descriptor& type);

  const google::protobuf::MethodDescriptor& method_;
};

}  // namespace tollgate::cli
