#include "services/dashboard/transcode/json_reader.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>
#include <memory>
#include <set>

#include "services/dashboard/transcode/number_text.h"
#include "services/dashboard/transcode/slot.h"
#include "services/dashboard/transcode/text.h"
#include "services/dashboard/transcode/well_known.h"

namespace tollgate::transcode {
namespace {

namespace pb = google::protobuf;
using Kind = pb::FieldDescriptor::CppType;

constexpr json::Limits kLimits{.max_depth = 10'000,
                               .max_members = SIZE_MAX,
                               .max_values = SIZE_MAX,
                               .allow_nul = true,
                               .allow_duplicate_keys = true,
                               .first_value_only = true};

// Deterministic, so that equal messages have equal bytes.
std::string Serialize(const pb::Message& message) {
  std::string bytes;
  pb::io::StringOutputStream stream(&bytes);
  pb::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  message.SerializePartialToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

class Reader {
 public:
  bool Message(json::Value value, pb::Message& message, bool inside_any = false);
  bool Field(json::Value value, pb::Message& message, const pb::FieldDescriptor* field);
  std::string error;

 private:
  bool Fail(const std::string& what) {
    if (error.empty()) error = what;
    return false;
  }
  // Does not show the value: it may be a misplaced secret.
  bool FailValue(json::Value, std::string_view wanted) {
    return Fail("invalid value for " + std::string(wanted));
  }
  bool Object(json::Value value, pb::Message& message, bool inside_any);
  bool List(json::Value value, pb::Message& message, const pb::FieldDescriptor* field);
  bool Map(json::Value value, pb::Message& message, const pb::FieldDescriptor* field);
  bool MapKey(const std::string& key, pb::Message& entry, const pb::FieldDescriptor* field);
  // *kept: false for an unknown enum name, which is dropped.
  bool Single(json::Value value, Slot slot, bool* kept);
  bool Enum(json::Value value, Slot& slot, bool* kept);
  template <typename T>
  bool Integer(json::Value value, Slot& slot);
  template <typename T>
  bool Float(json::Value value, Slot& slot);
  bool Any(json::Value value, pb::Message& message);
  bool AnyValue(json::Value value, pb::Message& embedded);
  bool DynamicValue(json::Value value, pb::Message& message);
  bool FieldMask(json::Value value, pb::Message& message);

  int depth_ = 0;
};

bool Reader::Message(json::Value value, pb::Message& message, bool inside_any) {
  if (++depth_ > kMaxMessageDepth) return Fail("nested too deep");
  const pb::Descriptor* type = message.GetDescriptor();
  bool ok = false;
  switch (WellKnownOf(type)) {
    case WellKnown::kAny:
      ok = Any(value, message);
      break;
    case WellKnown::kTimestamp:
    case WellKnown::kDuration: {
      const auto time = !value.is_string() ? std::nullopt
                        : WellKnownOf(type) == WellKnown::kTimestamp
                            ? ParseJsonTimestamp(value.string())
                            : ParseJsonDuration(value.string());
      ok = time.has_value() || FailValue(value, type->full_name());
      if (time) SetTime(message, *time);
      break;
    }
    case WellKnown::kWrapper: {
      bool kept = true;
      ok = Single(value, Slot(message, type->FindFieldByNumber(1), false), &kept);
      break;
    }
    case WellKnown::kStruct:
      ok = Map(value, message, type->FindFieldByNumber(1));
      break;
    case WellKnown::kListValue:
      ok = List(value, message, type->FindFieldByNumber(1));
      break;
    case WellKnown::kValue:
      ok = DynamicValue(value, message);
      break;
    case WellKnown::kFieldMask:
      ok = FieldMask(value, message);
      break;
    case WellKnown::kEmpty:
      ok = value.is_object() || FailValue(value, type->full_name());
      break;
    case WellKnown::kNone:
      ok = Object(value, message, inside_any);
  }
  --depth_;
  return ok;
}

bool Reader::Object(json::Value value, pb::Message& message, bool inside_any) {
  const pb::Descriptor* type = message.GetDescriptor();
  if (!value.is_object()) return FailValue(value, "the message " + type->full_name());
  std::set<int> seen;
  std::set<const pb::OneofDescriptor*> oneofs;
  for (const json::Value member : value) {
    const std::string name = member.key();
    if (inside_any && name == "@type") continue;
    const pb::FieldDescriptor* field = FindField(type, name);
    if (field == nullptr) continue;
    if (!seen.insert(field->number()).second) return Fail("duplicate field \"" + name + "\"");
    if (member.is_null() && !(TakesNull(field) && !field->is_map())) continue;
    if (const auto* oneof = field->real_containing_oneof();
        oneof != nullptr && !oneofs.insert(oneof).second) {
      return Fail("error parsing \"" + name + "\", oneof " + oneof->full_name() +
                  " is already set");
    }
    if (!Field(member, message, field)) return false;
  }
  return true;
}

bool Reader::Field(json::Value value, pb::Message& message, const pb::FieldDescriptor* field) {
  if (field->is_map()) return Map(value, message, field);
  if (field->is_repeated()) return List(value, message, field);
  bool kept = true;
  return Single(value, Slot(message, field, false), &kept);
}

bool Reader::List(json::Value value, pb::Message& message, const pb::FieldDescriptor* field) {
  if (!value.is_array()) return FailValue(value, "the list " + field->name());
  for (const json::Value element : value) {
    bool kept = true;
    if (!Single(element, Slot(message, field, true), &kept)) return false;
  }
  return true;
}

bool Reader::Map(json::Value value, pb::Message& message, const pb::FieldDescriptor* field) {
  if (!value.is_object()) return FailValue(value, "the map " + field->name());
  const pb::Reflection* access = message.GetReflection();
  const pb::Descriptor* entry_type = field->message_type();
  std::set<std::string> keys;
  for (const json::Value member : value) {
    std::unique_ptr<pb::Message> entry(
        pb::MessageFactory::generated_factory()->GetPrototype(entry_type)->New());
    const std::string key = member.key();
    if (!MapKey(key, *entry, entry_type->map_key())) return false;
    // Entries have only their key so far. Comparing their bytes finds equal keys, such as "1" and
    // "01".
    if (!keys.insert(Serialize(*entry)).second) return Fail("duplicate map key \"" + key + "\"");
    bool kept = true;
    if (!Single(member, Slot(*entry, entry_type->map_value(), false), &kept)) return false;
    if (kept) access->AddAllocatedMessage(&message, field, entry.release());
  }
  return true;
}

bool Reader::MapKey(const std::string& key, pb::Message& entry, const pb::FieldDescriptor* field) {
  Slot slot(entry, field, false);
  const auto number = [&]<typename T>(T*) {
    const auto parsed = ParseInteger<T>(key);
    if (!parsed) return Fail("invalid map key \"" + key + "\"");
    slot.Put(*parsed);
    return true;
  };
  switch (field->cpp_type()) {
    case Kind::CPPTYPE_STRING:
      slot.Put(key);
      return true;
    case Kind::CPPTYPE_BOOL:
      if (key != "true" && key != "false") return Fail("invalid map key \"" + key + "\"");
      slot.Put(key == "true");
      return true;
    case Kind::CPPTYPE_INT32:
      return number(static_cast<int32_t*>(nullptr));
    case Kind::CPPTYPE_INT64:
      return number(static_cast<int64_t*>(nullptr));
    case Kind::CPPTYPE_UINT32:
      return number(static_cast<uint32_t*>(nullptr));
    case Kind::CPPTYPE_UINT64:
      return number(static_cast<uint64_t*>(nullptr));
    default:
      return Fail("unknown kind of map key");
  }
}

template <typename T>
bool Reader::Integer(json::Value value, Slot& slot) {
  const std::string text = value.is_string() ? value.string() : std::string(value.raw());
  const bool number = value.is_number() || (value.is_string() && IsJsonNumber(text));
  const auto integral = number ? IntegralText(text) : std::nullopt;
  const auto parsed = integral ? ParseInteger<T>(*integral) : std::nullopt;
  if (!parsed) return FailValue(value, "the integer " + slot.field()->name());
  slot.Put(*parsed);
  return true;
}

template <typename T>
bool Reader::Float(json::Value value, Slot& slot) {
  std::optional<T> parsed;
  const std::string text = value.string();
  if (value.is_number()) {
    parsed = NumberValue<T>(value.raw());
  } else if (text == "NaN" || text == "Infinity" || text == "-Infinity") {
    parsed = ParseFloat<T>(text);
  } else if (value.is_string() && IsJsonNumber(text)) {
    parsed = NumberValue<T>(text);
  }
  if (!parsed) return FailValue(value, "the number " + slot.field()->name());
  slot.Put(*parsed);
  return true;
}

bool Reader::Enum(json::Value value, Slot& slot, bool* kept) {
  if (value.is_null() && IsNullValue(slot.field())) {
    slot.PutEnum(0);
    return true;
  }
  if (value.is_string()) {
    const auto* found = slot.field()->enum_type()->FindValueByName(value.string());
    *kept = found != nullptr;
    if (found != nullptr) slot.PutEnum(found->number());
    return true;
  }
  const auto integral = value.is_number() ? IntegralText(value.raw()) : std::nullopt;
  const auto number = integral ? ParseInteger<int32_t>(*integral) : std::nullopt;
  if (!number) return FailValue(value, "the enum " + slot.field()->name());
  slot.PutEnum(*number);
  return true;
}

bool Reader::Single(json::Value value, Slot slot, bool* kept) {
  switch (slot.field()->cpp_type()) {
    case Kind::CPPTYPE_MESSAGE:
      return Message(value, slot.NewMessage());
    case Kind::CPPTYPE_ENUM:
      return Enum(value, slot, kept);
    case Kind::CPPTYPE_BOOL:
      if (!value.is_bool()) return FailValue(value, "the bool " + slot.field()->name());
      slot.Put(value.boolean());
      return true;
    case Kind::CPPTYPE_STRING: {
      if (!value.is_string()) return FailValue(value, "the string " + slot.field()->name());
      if (slot.field()->type() != pb::FieldDescriptor::TYPE_BYTES) {
        slot.Put(value.string());
        return true;
      }
      auto bytes = ParseBytes(value.string());
      if (!bytes) return FailValue(value, "the bytes " + slot.field()->name());
      slot.Put(std::move(*bytes));
      return true;
    }
    case Kind::CPPTYPE_INT32:
      return Integer<int32_t>(value, slot);
    case Kind::CPPTYPE_INT64:
      return Integer<int64_t>(value, slot);
    case Kind::CPPTYPE_UINT32:
      return Integer<uint32_t>(value, slot);
    case Kind::CPPTYPE_UINT64:
      return Integer<uint64_t>(value, slot);
    case Kind::CPPTYPE_FLOAT:
      return Float<float>(value, slot);
    case Kind::CPPTYPE_DOUBLE:
      return Float<double>(value, slot);
  }
  return Fail("unknown kind of field");
}

bool Reader::Any(json::Value value, pb::Message& message) {
  if (!value.is_object()) return FailValue(value, "google.protobuf.Any");
  std::string url;
  for (const json::Value member : value) {
    if (!member.KeyEquals("@type")) continue;
    if (!url.empty()) return Fail("duplicate \"@type\" field");
    if (!member.is_string()) return FailValue(member, "@type");
    url = member.string();
    if (url.empty()) return Fail("@type field contains empty value");
  }
  if (url.empty()) return true;  // all other members of it are unknown
  const pb::Message* prototype = FindType(url);
  if (prototype == nullptr) return Fail("unable to resolve \"" + url + "\"");
  std::unique_ptr<pb::Message> embedded(prototype->New());
  const bool known = WellKnownOf(embedded->GetDescriptor()) != WellKnown::kNone;
  if (known ? !AnyValue(value, *embedded) : !Message(value, *embedded, true)) return false;
  const pb::Descriptor* type = message.GetDescriptor();
  Slot(message, type->FindFieldByNumber(1), false).Put(url);
  Slot(message, type->FindFieldByNumber(2), false).Put(Serialize(*embedded));
  return true;
}

bool Reader::AnyValue(json::Value value, pb::Message& embedded) {
  bool found = false;
  for (const json::Value member : value) {
    if (!member.KeyEquals("value")) continue;
    if (found) return Fail("duplicate \"value\" field");
    found = true;
    if (!Message(member, embedded)) return false;
  }
  if (!found && WellKnownOf(embedded.GetDescriptor()) != WellKnown::kEmpty) {
    return Fail("missing \"value\" field");
  }
  return true;
}

bool Reader::DynamicValue(json::Value value, pb::Message& message) {
  const pb::Descriptor* type = message.GetDescriptor();
  const auto field = [&](json::Type kind) {
    switch (kind) {
      case json::Type::kNull:
        return type->FindFieldByNumber(1);
      case json::Type::kNumber:
        return type->FindFieldByNumber(2);
      case json::Type::kString:
        return type->FindFieldByNumber(3);
      case json::Type::kBool:
        return type->FindFieldByNumber(4);
      case json::Type::kObject:
        return type->FindFieldByNumber(5);
      default:
        return type->FindFieldByNumber(6);
    }
  }(value.type());
  bool kept = true;
  return Single(value, Slot(message, field, false), &kept);
}

bool Reader::FieldMask(json::Value value, pb::Message& message) {
  if (!value.is_string()) return FailValue(value, "google.protobuf.FieldMask");
  std::string text = value.string();
  constexpr char kSpaces[] = " \t\n\v\f\r";
  text.erase(0, std::min(text.find_first_not_of(kSpaces), text.size()));
  text.erase(text.find_last_not_of(kSpaces) + 1);
  if (text.empty()) return true;
  Slot slot(message, message.GetDescriptor()->FindFieldByNumber(1), true);
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(',', begin), text.size());
    auto path = SnakeCasePath(std::string_view(text).substr(begin, end - begin));
    if (!path) return FailValue(value, "google.protobuf.FieldMask");
    slot.Put(std::move(*path));
    begin = end + 1;
  }
  return true;
}

}  // namespace

bool IsBlank(std::string_view text) {
  return text.find_first_not_of(" \t\r\n") == std::string_view::npos;
}

Read<json::Document> ParseBody(std::string_view text) {
  auto document = json::Document::ParseView(text, kLimits);
  if (!document.ok()) return Fail{"the body is not JSON: " + document.error().message};
  return std::move(*document);
}

const pb::FieldDescriptor* FindField(const pb::Descriptor* type, std::string_view name) {
  const std::string text(name);
  if (const auto* field = type->FindFieldByName(text)) return field;
  // FindFieldByCamelcaseName ignores names that are set with json_name.
  for (int i = 0; i < type->field_count(); ++i) {
    if (type->field(i)->json_name() == text) return type->field(i);
  }
  return nullptr;
}

Read<void> ReadMessage(json::Value value, pb::Message& message) {
  Reader reader;
  if (!reader.Message(value, message)) return Fail{reader.error};
  return {};
}

Read<void> ReadField(json::Value value, pb::Message& message, const pb::FieldDescriptor* field) {
  Reader reader;
  if (!reader.Field(value, message, field)) return Fail{reader.error};
  return {};
}

}  // namespace tollgate::transcode
