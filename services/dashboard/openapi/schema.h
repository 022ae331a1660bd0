// JSON schemas of messages and fields, as proto3 JSON writes them.
#pragma once

#include <google/api/field_behavior.pb.h>
#include <google/protobuf/descriptor.h>

#include <map>
#include <set>
#include <string>

#include "services/dashboard/openapi/document.h"

namespace tollgate::openapi {

// The comment above a declaration, as one paragraph.
template <typename Descriptor>
std::string CommentOf(const Descriptor* descriptor);

// Collects the schemas of referenced messages.
class Schemas {
 public:
  // A reference; or the schema itself if JSON has a special form for the type.
  Node Of(const google::protobuf::Descriptor* type);
  // nullable: allows null for an unset message.
  Node OfField(const google::protobuf::FieldDescriptor* field, bool nullable);
  // The message without the fields that are in the path.
  Node OfRest(const google::protobuf::Descriptor* type, const std::set<std::string>& without);
  // Makes all fields of the type optional.
  void SetPartial(const google::protobuf::Descriptor* type) { partial_.insert(type->full_name()); }
  // Returns components.schemas, including Status.
  Node Take();

  static bool IsQueryValue(const google::protobuf::FieldDescriptor* field);
  static bool Has(const google::protobuf::FieldDescriptor* field,
                  google::api::FieldBehavior behavior);

 private:
  Node Object(const google::protobuf::Descriptor* type, const std::set<std::string>& without);
  Node Single(const google::protobuf::FieldDescriptor* field);

  std::set<std::string> partial_;
  std::map<std::string, Node> named_;
};

}  // namespace tollgate::openapi
