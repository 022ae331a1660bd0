#include "common/config/reader.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/message.h>
#include <yaml-cpp/yaml.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <set>
#include <string_view>
#include <type_traits>
#include <vector>

#include "common/base/text.h"
#include "common/base/try.h"
#include "common/config/substitute.h"

namespace tollgate::config {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::EnumDescriptor;
using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;
using Status = BasicResult<void, std::string>;

Fail<std::string> ErrorAt(const Source& source, const YAML::Node& node,
                          const std::string& message) {
  return Fail{At(source.name, node.Mark(), message)};
}

// Quotes a name from the file. Text that does not look like a name is withheld: it may be a
// misplaced secret, and more people read errors than the file.
std::string Quoted(const std::string& text) {
  const bool name = text.size() <= 40 && std::all_of(text.begin(), text.end(), [](char c) {
                      return std::isalpha(static_cast<unsigned char>(c)) || c == '_' || c == '-';
                    });
  return name ? "\"" + text + "\"" : "(not shown: not a valid name)";
}

// A scalar's text after substitution, and whether it may be read as a number or boolean.
struct Scalar {
  std::string text;
  bool plain = false;
};

BasicResult<Scalar, std::string> ReadScalar(const YAML::Node& node, const FieldDescriptor& field,
                                            const Source& source, const std::string& expected) {
  if (!node.IsScalar()) {
    return ErrorAt(source, node,
                   field.name() + " must be " + expected +
                       (node.IsMap()        ? ", not a mapping"
                        : node.IsSequence() ? ", not a list"
                                            : ", not empty"));
  }
  auto text = Substitute(node.Scalar(), source.base_dir);
  if (!text) return ErrorAt(source, node, text.error());
  // yaml-cpp tags quoted scalars "!". A substituted scalar counts as plain.
  return Scalar{std::move(text->text), text->changed || node.Tag() != "!"};
}

template <typename Number>
BasicResult<Number, std::string> ReadNumber(const YAML::Node& node, const FieldDescriptor& field,
                                            const Source& source, const std::string& expected) {
  TRY(auto scalar, ReadScalar(node, field, source, expected));
  Number value{};
  const char* end = scalar.text.data() + scalar.text.size();
  const auto [stop, problem] = std::from_chars(scalar.text.data(), end, value);
  if (problem == std::errc::result_out_of_range) {
    return ErrorAt(source, node, field.name() + " is out of range");
  }
  if (!scalar.plain || problem != std::errc() || stop != end) {
    return ErrorAt(source, node, field.name() + " must be " + expected);
  }
  if constexpr (std::is_floating_point_v<Number>) {
    if (!std::isfinite(value)) return ErrorAt(source, node, field.name() + " must be " + expected);
  }
  return value;
}

BasicResult<bool, std::string> ReadBool(const YAML::Node& node, const FieldDescriptor& field,
                                        const Source& source) {
  TRY(auto scalar, ReadScalar(node, field, source, "true or false"));
  if (scalar.plain && scalar.text == "true") return true;
  if (scalar.plain && scalar.text == "false") return false;
  return ErrorAt(source, node, field.name() + " must be true or false");
}

BasicResult<std::string, std::string> ReadString(const YAML::Node& node,
                                                 const FieldDescriptor& field,
                                                 const Source& source) {
  TRY(auto scalar, ReadScalar(node, field, source, "text"));
  if (field.type() == FieldDescriptor::TYPE_STRING && !IsValidUtf8(scalar.text)) {
    return ErrorAt(source, node, field.name() + " must be valid UTF-8");
  }
  return std::move(scalar.text);
}

// The name used in the file: "debug" for LEVEL_DEBUG of the enum Level.
std::string ShortName(const EnumValueDescriptor& value) {
  std::string prefix;
  for (char c : value.type()->name()) {
    if (std::isupper(static_cast<unsigned char>(c)) && !prefix.empty()) prefix += '_';
    prefix += static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  prefix += '_';
  std::string_view name = value.name();
  if (name.starts_with(prefix)) name.remove_prefix(prefix.size());
  std::string lower;
  for (char c : name) lower += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  return lower;
}

BasicResult<const EnumValueDescriptor*, std::string> ReadEnum(const YAML::Node& node,
                                                              const FieldDescriptor& field,
                                                              const Source& source) {
  const EnumDescriptor& type = *field.enum_type();
  std::string names;
  for (int i = 0; i < type.value_count(); ++i) {
    const std::string name = ShortName(*type.value(i));
    if (name != "unspecified") names += (names.empty() ? "" : ", ") + name;
  }
  TRY(auto scalar, ReadScalar(node, field, source, "one of " + names));
  for (int i = 0; i < type.value_count(); ++i) {
    const std::string name = ShortName(*type.value(i));
    if (name != "unspecified" && name == scalar.text) return type.value(i);
  }
  return ErrorAt(source, node, field.name() + " must be one of " + names);
}

// Sets a singular field, or adds to a repeated one.
#define TOLLGATE_STORE(Kind, value)                                 \
  (field.is_repeated() ? reflection.Add##Kind(&into, &field, value) \
                       : reflection.Set##Kind(&into, &field, value))

#define TOLLGATE_READ_AND_STORE(Kind, expression)      \
  do {                                                 \
    auto value = expression;                           \
    if (!value) return Fail{std::move(value).error()}; \
    TOLLGATE_STORE(Kind, std::move(*value));           \
    return {};                                         \
  } while (false)

Status ReadValue(const YAML::Node& node, const FieldDescriptor& field, const Source& source,
                 Message& into) {
  const Reflection& reflection = *into.GetReflection();
  constexpr const char* kWhole = "a whole number";
  constexpr const char* kNatural = "a whole number that is not negative";
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_INT32:
      TOLLGATE_READ_AND_STORE(Int32, ReadNumber<int32_t>(node, field, source, kWhole));
    case FieldDescriptor::CPPTYPE_INT64:
      TOLLGATE_READ_AND_STORE(Int64, ReadNumber<int64_t>(node, field, source, kWhole));
    case FieldDescriptor::CPPTYPE_UINT32:
      TOLLGATE_READ_AND_STORE(UInt32, ReadNumber<uint32_t>(node, field, source, kNatural));
    case FieldDescriptor::CPPTYPE_UINT64:
      TOLLGATE_READ_AND_STORE(UInt64, ReadNumber<uint64_t>(node, field, source, kNatural));
    case FieldDescriptor::CPPTYPE_DOUBLE:
      TOLLGATE_READ_AND_STORE(Double, ReadNumber<double>(node, field, source, "a number"));
    case FieldDescriptor::CPPTYPE_FLOAT:
      TOLLGATE_READ_AND_STORE(Float, ReadNumber<float>(node, field, source, "a number"));
    case FieldDescriptor::CPPTYPE_BOOL:
      TOLLGATE_READ_AND_STORE(Bool, ReadBool(node, field, source));
    case FieldDescriptor::CPPTYPE_STRING:
      TOLLGATE_READ_AND_STORE(String, ReadString(node, field, source));
    case FieldDescriptor::CPPTYPE_ENUM:
      TOLLGATE_READ_AND_STORE(Enum, ReadEnum(node, field, source));
    case FieldDescriptor::CPPTYPE_MESSAGE: {
      Message* child = field.is_repeated() ? reflection.AddMessage(&into, &field)
                                           : reflection.MutableMessage(&into, &field);
      return ReadMessage(node, source, *child);
    }
  }
  return ErrorAt(source, node, field.name() + " has a type that configuration cannot hold");
}

#undef TOLLGATE_READ_AND_STORE
#undef TOLLGATE_STORE

Status ReadList(const YAML::Node& node, const FieldDescriptor& field, const Source& source,
                Message& into) {
  if (!node.IsSequence()) return ErrorAt(source, node, field.name() + " must be a list");
  for (const YAML::Node& item : node) {
    Status read = ReadValue(item, field, source, into);
    if (!read) return read;
  }
  return {};
}

// A map field is a repeated message of key and value.
Status ReadMap(const YAML::Node& node, const FieldDescriptor& field, const Source& source,
               Message& into) {
  if (!node.IsMap()) return ErrorAt(source, node, field.name() + " must be a mapping");
  const Descriptor& entry_type = *field.message_type();
  std::set<std::string> seen;
  for (const auto& pair : node) {
    if (!pair.first.IsScalar()) return ErrorAt(source, pair.first, "a key must be plain text");
    if (!seen.insert(pair.first.Scalar()).second) {
      return ErrorAt(source, pair.first, "duplicate key " + Quoted(pair.first.Scalar()));
    }
    Message* entry = into.GetReflection()->AddMessage(&into, &field);
    Status key = ReadValue(pair.first, *entry_type.map_key(), source, *entry);
    if (!key) return key;
    Status value = ReadValue(pair.second, *entry_type.map_value(), source, *entry);
    if (!value) return value;
  }
  return {};
}

Status ReadField(const YAML::Node& key, const YAML::Node& node, const FieldDescriptor& field,
                 const Source& source, Message& into) {
  const auto* oneof = field.real_containing_oneof();
  if (oneof != nullptr && into.GetReflection()->HasOneof(into, oneof)) {
    return ErrorAt(source, key, "only one field of " + oneof->name() + " may be set");
  }
  // An empty value ("field:") means the default.
  if (node.IsNull()) return {};
  if (field.is_map()) return ReadMap(node, field, source, into);
  if (field.is_repeated()) return ReadList(node, field, source, into);
  return ReadValue(node, field, source, into);
}

std::string UnknownField(const std::string& name, const Descriptor& type) {
  std::vector<std::string> known;
  for (int i = 0; i < type.field_count(); ++i) known.push_back(type.field(i)->name());
  std::string message = "unknown field " + Quoted(name) + " in " + type.name();
  const std::string closest = ClosestName(name, known);
  if (!closest.empty()) message += " (did you mean " + Quoted(closest) + "?)";
  return message;
}

}  // namespace

std::string At(const std::string& name, const YAML::Mark& mark, const std::string& message) {
  if (mark.is_null()) return name + ": " + message;
  return name + ":" + std::to_string(mark.line + 1) + ":" + std::to_string(mark.column + 1) + ": " +
         message;
}

Status ReadMessage(const YAML::Node& node, const Source& source, Message& into) {
  const Descriptor& type = *into.GetDescriptor();
  if (!node.IsDefined() || node.IsNull()) return {};
  if (!node.IsMap())
    return ErrorAt(source, node, type.name() + " must be a mapping of field names to values");
  std::set<std::string> seen;
  for (const auto& pair : node) {
    if (!pair.first.IsScalar())
      return ErrorAt(source, pair.first, "a field name must be plain text");
    const std::string& name = pair.first.Scalar();
    const FieldDescriptor* field = type.FindFieldByName(name);
    if (field == nullptr) return ErrorAt(source, pair.first, UnknownField(name, type));
    if (!seen.insert(name).second)
      return ErrorAt(source, pair.first, "duplicate key " + Quoted(name));
    Status read = ReadField(pair.first, pair.second, *field, source, into);
    if (!read) return read;
  }
  return {};
}

}  // namespace tollgate::config
