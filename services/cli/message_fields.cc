#include "services/cli/message_fields.h"

#include <google/protobuf/timestamp.pb.h>

#include <algorithm>

#include "common/base/ascii.h"
#include "common/base/crypto.h"
#include "services/cli/admin_cells.h"

namespace tollgate::cli {
namespace {

using google::protobuf::EnumValueDescriptor;
using google::protobuf::FieldDescriptor;
using google::protobuf::Message;
using google::protobuf::Reflection;

// The prefix of an enum's values: "ADJUSTMENT_KIND_" of AdjustmentKind.
std::string ValuePrefix(const google::protobuf::EnumDescriptor& type) {
  std::string prefix;
  for (const char c : type.name()) {
    if (IsUpper(c) && !prefix.empty()) prefix += '_';
    prefix += static_cast<char>(IsUpper(c) ? c : c & ~0x20);
  }
  return prefix + '_';
}

// "write-off" of AdjustmentKind is ADJUSTMENT_KIND_WRITE_OFF.
const EnumValueDescriptor* ValueOf(const google::protobuf::EnumDescriptor& type, std::string word) {
  for (char& c : word) c = c == '-' ? '_' : static_cast<char>(c >= 'a' && c <= 'z' ? c & ~0x20 : c);
  return type.FindValueByName(ValuePrefix(type) + word);
}

// The message that holds the last field of the path.
Message& HolderOf(Message& root, const FieldPath& path) {
  Message* message = &root;
  for (size_t i = 0; i + 1 < path.fields.size(); ++i) {
    const FieldDescriptor* field = path.fields[i];
    const Reflection& reflection = *message->GetReflection();
    if (!field->is_repeated()) {
      message = reflection.MutableMessage(message, field);
    } else if (reflection.FieldSize(*message, field) == 0) {
      message = reflection.AddMessage(message, field);
    } else {
      message = reflection.MutableRepeatedMessage(message, field, 0);
    }
  }
  return *message;
}

const Message& Child(const Message& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  if (!field.is_repeated()) return reflection.GetMessage(message, &field);
  if (reflection.FieldSize(message, &field) > 0) {
    return reflection.GetRepeatedMessage(message, &field, 0);
  }
  return *reflection.GetMessageFactory()->GetPrototype(field.message_type());
}

const Message& HolderOf(const Message& root, const FieldPath& path) {
  const Message* message = &root;
  for (size_t i = 0; i + 1 < path.fields.size(); ++i) message = &Child(*message, *path.fields[i]);
  return *message;
}

bool AddEntry(Message& message, const FieldDescriptor& map, const std::string& text) {
  const size_t equals = text.find('=');
  if (equals == std::string::npos) return false;
  Message& entry = *message.GetReflection()->AddMessage(&message, &map);
  return SetField(entry, "key", {text.substr(0, equals)}) &&
         SetField(entry, "value", {text.substr(equals + 1)});
}

bool SetOne(Message& message, const FieldDescriptor& field, const std::string& text) {
  const Reflection& reflection = *message.GetReflection();
  const auto set = [&](auto one, auto add, auto value) {
    field.is_repeated() ? (reflection.*add)(&message, &field, std::move(value))
                        : (reflection.*one)(&message, &field, std::move(value));
    return true;
  };
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_STRING: {
      const auto bytes = field.type() == FieldDescriptor::TYPE_BYTES ? HexDecode(text) : text;
      return bytes && set(&Reflection::SetString, &Reflection::AddString, *bytes);
    }
    case FieldDescriptor::CPPTYPE_BOOL:
      return set(&Reflection::SetBool, &Reflection::AddBool, text != "false");
    case FieldDescriptor::CPPTYPE_INT32:
      return set(&Reflection::SetInt32, &Reflection::AddInt32,
                 static_cast<int32_t>(std::stoll(text, nullptr, 0)));
    case FieldDescriptor::CPPTYPE_INT64:
      return set(&Reflection::SetInt64, &Reflection::AddInt64,
                 int64_t{std::stoll(text, nullptr, 0)});
    case FieldDescriptor::CPPTYPE_ENUM: {
      const EnumValueDescriptor* value = ValueOf(*field.enum_type(), text);
      return value != nullptr && set(&Reflection::SetEnum, &Reflection::AddEnum, value);
    }
    default:
      return field.is_map() && AddEntry(message, field, text);
  }
}

std::vector<std::string> TextsOf(const Message& message, const FieldDescriptor& field) {
  const Reflection& reflection = *message.GetReflection();
  std::vector<std::string> texts;
  for (int i = 0; i < reflection.FieldSize(message, &field); ++i) {
    texts.push_back(field.cpp_type() == FieldDescriptor::CPPTYPE_STRING
                        ? reflection.GetRepeatedString(message, &field, i)
                        : std::to_string(reflection.GetRepeatedInt32(message, &field, i)));
  }
  return texts;
}

Cell TextCell(const std::string& text, const std::string& field, const std::string& part) {
  if (part == "id") return Text(LastPart(text));
  if (part == "workspace") return Text(WorkspaceOf(text));
  if (part == "exact") return {Text(text).json, "$" + text, true};
  if (part == "number") {
    std::string digits = LastPart(text);
    std::erase(digits, '-');  // "2026-11" is 202611
    return Integer(digits.empty() ? 0 : std::stoll(digits));
  }
  return field.ends_with("_usd") ? Usd(text) : Text(text);
}

Cell ValueCell(const Message& message, const FieldDescriptor& field, const std::string& part) {
  const Reflection& reflection = *message.GetReflection();
  switch (field.cpp_type()) {
    case FieldDescriptor::CPPTYPE_BOOL:
      return Bool(reflection.GetBool(message, &field));
    case FieldDescriptor::CPPTYPE_INT32:
      return Integer(reflection.GetInt32(message, &field));
    case FieldDescriptor::CPPTYPE_INT64:
      return Integer(reflection.GetInt64(message, &field));
    case FieldDescriptor::CPPTYPE_ENUM: {
      const EnumValueDescriptor* value =
          field.enum_type()->FindValueByNumber(reflection.GetEnumValue(message, &field));
      return Text(value == nullptr ? "" : EnumText(value->name(), ValuePrefix(*field.enum_type())));
    }
    case FieldDescriptor::CPPTYPE_STRING:
      return TextCell(reflection.GetString(message, &field), field.name(), part);
    default:
      return Time(
          static_cast<const google::protobuf::Timestamp&>(reflection.GetMessage(message, &field)));
  }
}

}  // namespace

FieldPath FieldPath::Of(const google::protobuf::Descriptor& type, const std::string& path) {
  FieldPath found;
  const google::protobuf::Descriptor* at = &type;
  for (size_t begin = 0; begin <= path.size();) {
    const size_t end = std::min(path.find('.', begin), path.size());
    const std::string word = path.substr(begin, end - begin);
    begin = end + 1;
    const FieldDescriptor* field = at == nullptr ? nullptr : at->FindFieldByName(word);
    if (field == nullptr) {
      const bool of_text = !found.fields.empty() && found.part.empty() &&
                           found.fields.back()->type() == FieldDescriptor::TYPE_STRING;
      if (!of_text) return {};
      found.part = word;
      continue;
    }
    found.fields.push_back(field);
    at = field->message_type();
  }
  return found;
}

bool SetField(Message& message, const std::string& path, const std::vector<std::string>& texts) {
  const FieldPath found = FieldPath::Of(*message.GetDescriptor(), path);
  if (found.fields.empty()) return false;
  Message& holder = HolderOf(message, found);
  return std::ranges::all_of(
      texts, [&](const std::string& text) { return SetOne(holder, *found.fields.back(), text); });
}

void SetTime(Message& message, const std::string& path, int64_t us) {
  SetField(message, path + ".seconds", {std::to_string(us / 1'000'000)});
  SetField(message, path + ".nanos", {std::to_string(us % 1'000'000 * 1000)});
}

const Message& MessageAt(const Message& message, const std::string& path) {
  if (path.empty()) return message;
  const FieldPath found = FieldPath::Of(*message.GetDescriptor(), path);
  return Child(HolderOf(message, found), *found.fields.back());
}

bool BoolAt(const Message& message, const std::string& path) {
  const FieldPath found = FieldPath::Of(*message.GetDescriptor(), path);
  const Message& holder = HolderOf(message, found);
  return holder.GetReflection()->GetBool(holder, found.fields.back());
}

std::string TextAt(const Message& message, const std::string& path) {
  const FieldPath found = FieldPath::Of(*message.GetDescriptor(), path);
  if (found.fields.empty()) return "";
  const Message& holder = HolderOf(message, found);
  return holder.GetReflection()->GetString(holder, found.fields.back());
}

Cell CellAt(const Message& message, const Shown& shown) {
  if (shown.cell != nullptr) return shown.cell(message);
  const FieldPath path = FieldPath::Of(*message.GetDescriptor(), shown.path);
  const FieldDescriptor& field = *path.fields.back();
  const Message& holder = HolderOf(message, path);
  if (field.is_repeated()) return List(TextsOf(holder, field), shown.empty.value_or(""));
  if (shown.empty && !holder.GetReflection()->HasField(holder, &field)) {
    // An enum has a word for its zero, other types have null.
    return field.enum_type() != nullptr ? Text(*shown.empty) : None(*shown.empty);
  }
  return ValueCell(holder, field, path.part);
}

}  // namespace tollgate::cli
