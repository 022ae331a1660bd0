#include "services/dashboard/transcode/json_reader.h"

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

class Reader {
 public:
  bool Message(json::Value value, pb::Message& message);
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
  bool Object(json::Value value, pb::Message& message);
  bool List(json::Value value, pb::Message& message, const pb::FieldDescriptor* field);
  bool Map(json::Value value, pb::Message& message, const pb::FieldDescriptor* field);
  // *kept: false for an unknown enum name, which is dropped.
  bool Single(json::Value value, Slot slot, bool* kept);
  bool Enum(json::Value value, Slot& slot, bool* kept);
  template <typename T>
  bool Integer(json::Value value, Slot& slot);
  bool FieldMask(json::Value value, pb::Message& message);

  int depth_ = 0;
};

bool Reader::Message(json::Value value, pb::Message& message) {
  if (++depth_ > kMaxMessageDepth) return Fail("nested too deep");
  const pb::Descriptor* type = message.GetDescriptor();
  bool ok = false;
  switch (WellKnownOf(type)) {
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
    case WellKnown::kFieldMask:
      ok = FieldMask(value, message);
      break;
    case WellKnown::kNone:
      ok = Object(value, message);
      break;
    case WellKnown::kAny:
    case WellKnown::kUnsupported:
      return Fail("unsupported message type " + type->full_name());
  }
  --depth_;
  return ok;
}

bool Reader::Object(json::Value value, pb::Message& message) {
  const pb::Descriptor* type = message.GetDescriptor();
  if (!value.is_object()) return FailValue(value, "the message " + type->full_name());
  std::set<int> seen;
  std::set<const pb::OneofDescriptor*> oneofs;
  for (const json::Value member : value) {
    const std::string name = member.key();
    const pb::FieldDescriptor* field = FindField(type, name);
    if (field == nullptr) continue;
    if (!seen.insert(field->number()).second) return Fail("duplicate field \"" + name + "\"");
    if (member.is_null()) continue;
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
    if (keys.contains(key)) return Fail("duplicate map key \"" + key + "\"");
    Slot(*entry, entry_type->map_key(), false).Put(key);
    bool kept = true;
    if (!Single(member, Slot(*entry, entry_type->map_value(), false), &kept)) return false;
    if (!kept) continue;
    keys.insert(key);
    access->AddAllocatedMessage(&message, field, entry.release());
  }
  return true;
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

bool Reader::Enum(json::Value value, Slot& slot, bool* kept) {
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
    default:
      return Fail("unknown kind of field");
  }
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
