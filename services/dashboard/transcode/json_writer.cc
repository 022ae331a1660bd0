#include "services/dashboard/transcode/json_writer.h"

#include <algorithm>
#include <memory>
#include <vector>

#include "common/base/base64.h"
#include "common/base/text.h"
#include "common/json/json.h"
#include "services/dashboard/transcode/json_reader.h"
#include "services/dashboard/transcode/text.h"
#include "services/dashboard/transcode/time_text.h"
#include "services/dashboard/transcode/well_known.h"

namespace tollgate::transcode {
namespace {

namespace pb = google::protobuf;
using Kind = pb::FieldDescriptor::CppType;

class Writer {
 public:
  bool Message(const pb::Message& message, const std::string& any_url = "");
  bool List(const pb::Message& message, const pb::FieldDescriptor* field);
  std::string out;
  std::string error;

 private:
  bool Fail(std::string what) {
    if (error.empty()) error = std::move(what);
    return false;
  }
  bool Object(const pb::Message& message, const std::string& any_url);
  bool Map(const pb::Message& message, const pb::FieldDescriptor* field);
  // index: of a list element; -1: a singular field.
  bool Single(const pb::Message& message, const pb::FieldDescriptor* field, int index);
  bool Text(const std::string& text) {
    if (!IsValidUtf8(text)) return Fail("a string is not UTF-8");
    json::AppendQuoted(out, text);
    return true;
  }
  bool OptionalText(const std::optional<std::string>& text, const pb::Message& message) {
    if (!text) return Fail(message.GetDescriptor()->full_name() + " is out of range");
    return Text(*text);
  }
  bool Any(const pb::Message& message);
  bool FieldMask(const pb::Message& message);

  int depth_ = 0;
};

bool Writer::Message(const pb::Message& message, const std::string& any_url) {
  if (++depth_ > kMaxMessageDepth) return Fail("nested too deep");
  const pb::Descriptor* type = message.GetDescriptor();
  bool ok = false;
  switch (WellKnownOf(type)) {
    case WellKnown::kAny:
      ok = Any(message);
      break;
    case WellKnown::kTimestamp:
      ok = OptionalText(TimestampText(GetTime(message)), message);
      break;
    case WellKnown::kDuration:
      ok = OptionalText(DurationText(GetTime(message)), message);
      break;
    case WellKnown::kFieldMask:
      ok = FieldMask(message);
      break;
    case WellKnown::kNone:
      ok = Object(message, any_url);
      break;
    case WellKnown::kUnsupported:
      return Fail("unsupported message type " + type->full_name());
  }
  --depth_;
  return ok;
}

bool Writer::Object(const pb::Message& message, const std::string& any_url) {
  const pb::Descriptor* type = message.GetDescriptor();
  const pb::Reflection* access = message.GetReflection();
  out += '{';
  bool first = true;
  const auto name = [&](std::string_view text) {
    if (!first) out += ',';
    first = false;
    json::AppendQuoted(out, text);
    out += ':';
  };
  if (!any_url.empty()) {
    name("@type");
    if (!Text(any_url)) return false;
  }
  for (int i = 0; i < type->field_count(); ++i) {  // in the order of declaration
    const pb::FieldDescriptor* field = type->field(i);
    const bool singular_message = !field->is_repeated() && field->message_type() != nullptr;
    const bool unset = field->has_presence() && !access->HasField(message, field);
    if (unset && field->containing_oneof() != nullptr) continue;  // `optional` fields, too
    name(field->json_name());
    if (unset && singular_message) {
      out += "null";
    } else if (field->is_map()) {
      if (!Map(message, field)) return false;
    } else if (field->is_repeated()) {
      if (!List(message, field)) return false;
    } else if (!Single(message, field, -1)) {
      return false;
    }
  }
  out += '}';
  return true;
}

bool Writer::List(const pb::Message& message, const pb::FieldDescriptor* field) {
  out += '[';
  const int size = message.GetReflection()->FieldSize(message, field);
  for (int i = 0; i < size; ++i) {
    if (i > 0) out += ',';
    if (!Single(message, field, i)) return false;
  }
  out += ']';
  return true;
}

bool Writer::Map(const pb::Message& message, const pb::FieldDescriptor* field) {
  const pb::Reflection* access = message.GetReflection();
  const pb::FieldDescriptor* key = field->message_type()->map_key();
  std::vector<const pb::Message*> entries;
  const int size = access->FieldSize(message, field);
  for (int i = 0; i < size; ++i) {
    entries.push_back(&access->GetRepeatedMessage(message, field, i));
  }
  std::sort(entries.begin(), entries.end(), [key](const pb::Message* a, const pb::Message* b) {
    return a->GetReflection()->GetString(*a, key) < b->GetReflection()->GetString(*b, key);
  });
  out += '{';
  for (const pb::Message* entry : entries) {
    if (entry != entries.front()) out += ',';
    if (!Single(*entry, key, -1)) return false;
    out += ':';
    if (!Single(*entry, field->message_type()->map_value(), -1)) return false;
  }
  out += '}';
  return true;
}

bool Writer::Single(const pb::Message& message, const pb::FieldDescriptor* field, int index) {
  const pb::Reflection* access = message.GetReflection();
  const bool one = index < 0;
  switch (field->cpp_type()) {
    case Kind::CPPTYPE_MESSAGE:
      return Message(one ? access->GetMessage(message, field)
                         : access->GetRepeatedMessage(message, field, index));
    case Kind::CPPTYPE_ENUM: {
      const int number = one ? access->GetEnumValue(message, field)
                             : access->GetRepeatedEnumValue(message, field, index);
      const auto* value = field->enum_type()->FindValueByNumber(number);
      if (value != nullptr) {
        json::AppendQuoted(out, value->name());
      } else {
        out += std::to_string(number);
      }
      return true;
    }
    case Kind::CPPTYPE_BOOL:
      out +=
          (one ? access->GetBool(message, field) : access->GetRepeatedBool(message, field, index))
              ? "true"
              : "false";
      return true;
    case Kind::CPPTYPE_INT32:
      out += std::to_string(one ? access->GetInt32(message, field)
                                : access->GetRepeatedInt32(message, field, index));
      return true;
    case Kind::CPPTYPE_UINT32:
      out += std::to_string(one ? access->GetUInt32(message, field)
                                : access->GetRepeatedUInt32(message, field, index));
      return true;
    case Kind::CPPTYPE_INT64:
      out += '"' +
             std::to_string(one ? access->GetInt64(message, field)
                                : access->GetRepeatedInt64(message, field, index)) +
             '"';
      return true;
    case Kind::CPPTYPE_UINT64:
      out += '"' +
             std::to_string(one ? access->GetUInt64(message, field)
                                : access->GetRepeatedUInt64(message, field, index)) +
             '"';
      return true;
    case Kind::CPPTYPE_STRING: {
      const std::string text = one ? access->GetString(message, field)
                                   : access->GetRepeatedString(message, field, index);
      if (field->type() != pb::FieldDescriptor::TYPE_BYTES) return Text(text);
      out += '"' + Base64Encode(text) + '"';
      return true;
    }
    default:
      return Fail("unknown kind of field");
  }
}

bool Writer::Any(const pb::Message& message) {
  const pb::Reflection* access = message.GetReflection();
  const std::string url = access->GetString(message, message.GetDescriptor()->FindFieldByNumber(1));
  const std::string bytes =
      access->GetString(message, message.GetDescriptor()->FindFieldByNumber(2));
  if (url.empty() && bytes.empty()) {
    out += "{}";
    return true;
  }
  const pb::Message* prototype = url.empty() ? nullptr : FindType(url);
  if (prototype == nullptr) return Fail("unable to resolve the type \"" + url + "\" of an Any");
  std::unique_ptr<pb::Message> embedded(prototype->New());
  if (!embedded->ParsePartialFromString(bytes)) {
    return Fail("the value of an Any is not a " + embedded->GetDescriptor()->full_name());
  }
  if (WellKnownOf(embedded->GetDescriptor()) == WellKnown::kNone) return Message(*embedded, url);
  out += "{\"@type\":";
  if (!Text(url)) return false;
  out += ",\"value\":";
  if (!Message(*embedded)) return false;
  out += '}';
  return true;
}

bool Writer::FieldMask(const pb::Message& message) {
  const pb::FieldDescriptor* field = message.GetDescriptor()->FindFieldByNumber(1);
  const pb::Reflection* access = message.GetReflection();
  std::string text;
  for (int i = 0; i < access->FieldSize(message, field); ++i) {
    const auto path = CamelCasePath(access->GetRepeatedString(message, field, i));
    if (!path) return Fail("a path of a google.protobuf.FieldMask has no JSON form");
    if (i > 0) text += ',';
    text += *path;
  }
  return Text(text);
}

}  // namespace

BasicResult<std::string, std::string> WriteMessage(const pb::Message& message) {
  Writer writer;
  if (!writer.Message(message)) return Fail{writer.error};
  return std::move(writer.out);
}

BasicResult<std::string, std::string> WriteField(const pb::Message& message,
                                                 const pb::FieldDescriptor* field) {
  Writer writer;
  const bool ok = field->is_repeated()
                      ? writer.List(message, field)
                      : writer.Message(message.GetReflection()->GetMessage(message, field));
  if (!ok) return Fail{writer.error};
  return std::move(writer.out);
}

std::string EscapeForHtml(std::string_view json) {
  std::string out;
  for (size_t i = 0; i < json.size(); ++i) {
    const std::string_view rest = json.substr(i);
    if (json[i] == '<') {
      out += "\\u003c";
    } else if (json[i] == '>') {
      out += "\\u003e";
    } else if (json[i] == '&') {
      out += "\\u0026";
    } else if (rest.starts_with("\xE2\x80\xA8") || rest.starts_with("\xE2\x80\xA9")) {
      out += rest[2] == '\xA8' ? "\\u2028" : "\\u2029";
      i += 2;
    } else {
      out += json[i];
    }
  }
  return out;
}

}  // namespace tollgate::transcode
