#include "services/dashboard/openapi/schema.h"

#include "services/dashboard/transcode/well_known.h"

namespace tollgate::openapi {

namespace pb = google::protobuf;
using Kind = pb::FieldDescriptor::Type;
using transcode::WellKnown;

template <typename Descriptor>
std::string CommentOf(const Descriptor* descriptor) {
  pb::SourceLocation location;
  if (!descriptor->GetSourceLocation(&location)) return "";
  std::string text;
  for (const char c : location.leading_comments) {
    if (c == '\n') {
      text += ' ';
    } else if (c != ' ' || (!text.empty() && text.back() != ' ')) {
      text += c;
    }
  }
  while (text.ends_with(' ')) text.pop_back();
  return text;
}
template std::string CommentOf(const pb::ServiceDescriptor*);
template std::string CommentOf(const pb::MethodDescriptor*);
template std::string CommentOf(const pb::FieldDescriptor*);
template std::string CommentOf(const pb::Descriptor*);

namespace {

Node Typed(std::string_view type, std::string_view format = "") {
  Node schema = Node::Map();
  schema.Set("type", type);
  if (!format.empty()) schema.Set("format", format);
  return schema;
}

Node Nullable(Node schema) {
  Node null = Typed("null");
  return Node::Map().Set("oneOf", Node::List().Add(std::move(schema)).Add(std::move(null)));
}

}  // namespace

bool Schemas::Has(const pb::FieldDescriptor* field, google::api::FieldBehavior behavior) {
  const auto& options = field->options();
  for (int i = 0; i < options.ExtensionSize(google::api::field_behavior); ++i) {
    if (options.GetExtension(google::api::field_behavior, i) == behavior) return true;
  }
  return false;
}

bool Schemas::IsQueryValue(const pb::FieldDescriptor* field) {
  if (field->message_type() == nullptr) return true;
  const WellKnown known = transcode::WellKnownOf(field->message_type());
  return known == WellKnown::kTimestamp || known == WellKnown::kFieldMask;
}

Node Schemas::Of(const pb::Descriptor* type) {
  switch (transcode::WellKnownOf(type)) {
    case WellKnown::kTimestamp:
      return Typed("string", "date-time");
    case WellKnown::kDuration:
      return Typed("string").Set("pattern", R"(^-?[0-9]+(\.[0-9]{1,9})?s$)");
    case WellKnown::kFieldMask:
      return Typed("string");
    default:
      break;
  }
  if (named_.count(type->name()) == 0) {
    named_.emplace(type->name(), Node::Map());  // reserved first: the type may refer to itself
    Node object = Object(type, {});
    named_.at(type->name()) = std::move(object);
  }
  return Node::Map().Set("$ref", "#/components/schemas/" + type->name());
}

Node Schemas::Single(const pb::FieldDescriptor* field) {
  switch (field->type()) {
    case Kind::TYPE_BOOL:
      return Typed("boolean");
    case Kind::TYPE_INT32:
    case Kind::TYPE_SINT32:
    case Kind::TYPE_SFIXED32:
      return Typed("integer", "int32");
    case Kind::TYPE_UINT32:
    case Kind::TYPE_FIXED32:
      return Typed("integer").Set("minimum", Node::Raw("0"));
    case Kind::TYPE_INT64:
    case Kind::TYPE_SINT64:
    case Kind::TYPE_SFIXED64:
      return Typed("string", "int64");
    case Kind::TYPE_UINT64:
    case Kind::TYPE_FIXED64:
      return Typed("string", "uint64");
    case Kind::TYPE_BYTES:
      return Typed("string").Set("contentEncoding", "base64");
    case Kind::TYPE_ENUM: {
      Node names = Node::List();
      for (int i = 0; i < field->enum_type()->value_count(); ++i) {
        names.Add(Node::Text(field->enum_type()->value(i)->name()));
      }
      return Typed("string").Set("enum", std::move(names));
    }
    case Kind::TYPE_MESSAGE:
    case Kind::TYPE_GROUP:
      return Of(field->message_type());
    default:
      break;
  }
  Node text = Typed("string");
  // Decimal USD; empty if unset.
  if (field->name().ends_with("_usd"))
    text.Set("pattern", R"(^(-?(0|[1-9][0-9]*)(\.[0-9]{1,12})?)?$)");
  return text;
}

Node Schemas::OfField(const pb::FieldDescriptor* field, bool nullable) {
  if (field->is_map()) {
    Node map = Typed("object");
    return map.Set("additionalProperties", Single(field->message_type()->map_value()));
  }
  if (field->is_repeated()) return Typed("array").Set("items", Single(field));
  Node schema = Single(field);
  return nullable && field->message_type() != nullptr ? Nullable(std::move(schema)) : schema;
}

Node Schemas::OfRest(const pb::Descriptor* type, const std::set<std::string>& without) {
  return Object(type, without);
}

Node Schemas::Object(const pb::Descriptor* type, const std::set<std::string>& without) {
  Node object = Typed("object");
  const std::string comment = CommentOf(type);
  if (!comment.empty()) object.Set("description", comment);
  Node properties = Node::Map(), required = Node::List();
  for (int i = 0; i < type->field_count(); ++i) {
    const pb::FieldDescriptor* field = type->field(i);
    if (without.count(field->name()) > 0) continue;
    Node schema = OfField(field, true);
    if (const std::string text = CommentOf(field); !text.empty()) schema.Set("description", text);
    if (Has(field, google::api::OUTPUT_ONLY)) schema.Set("readOnly", Node::Raw("true"));
    if (Has(field, google::api::INPUT_ONLY)) schema.Set("writeOnly", Node::Raw("true"));
    properties.Set(field->json_name(), std::move(schema));
    if (Has(field, google::api::REQUIRED) && partial_.count(type->full_name()) == 0)
      required.Add(Node::Text(field->json_name()));
  }
  if (!required.empty()) object.Set("required", std::move(required));
  object.Set("properties", std::move(properties));
  return object;
}

Node Schemas::Take() {
  Node status = Typed("object");
  status.Set(
      "required",
      Node::List().Add(Node::Text("code")).Add(Node::Text("message")).Add(Node::Text("details")));
  Node& properties = status.At("properties");
  properties.Set("code", Typed("integer", "int32").Set("description", "A google.rpc.Code."));
  properties.Set("message", Typed("string"));
  Node detail = Typed("object");
  detail.Set("required", Node::List().Add(Node::Text("@type")));
  detail.At("properties").Set("@type", Typed("string"));
  properties.Set("details", Typed("array").Set("items", std::move(detail)));
  named_.insert_or_assign("Status", std::move(status));
  Node all = Node::Map();
  for (auto& [name, schema] : named_) all.Set(name, std::move(schema));
  return all;
}

}  // namespace tollgate::openapi
