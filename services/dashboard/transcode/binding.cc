#include "services/dashboard/transcode/binding.h"

#include <algorithm>
#include <map>
#include <set>

#include "common/base/text.h"
#include "common/base/try.h"
#include "services/dashboard/transcode/json_reader.h"
#include "services/dashboard/transcode/number_text.h"
#include "services/dashboard/transcode/slot.h"
#include "services/dashboard/transcode/text.h"
#include "services/dashboard/transcode/time_text.h"
#include "services/dashboard/transcode/update_mask.h"
#include "services/dashboard/transcode/well_known.h"

namespace tollgate::transcode {
namespace {

using Kind = pb::FieldDescriptor::CppType;
using Done = BasicResult<void, std::string>;

std::vector<std::string> Split(std::string_view text, char at) {
  std::vector<std::string> parts;
  for (size_t begin = 0; begin <= text.size();) {
    const size_t end = std::min(text.find(at, begin), text.size());
    parts.emplace_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return parts;
}

std::string Joined(const std::vector<std::string>& parts, std::string_view by) {
  std::string text;
  for (const std::string& part : parts) {
    if (&part != &parts.front()) text += by;
    text += part;
  }
  return text;
}

// Reads a value from the path or the query.
class TextReader {
 public:
  enum class Source { kPath, kQuery };
  explicit TextReader(Source source) : source_(source) {}

  Done Value(const std::string& text, Slot slot);
  bool saw_bad_utf8() const { return saw_bad_utf8_; }

 private:
  static Done Invalid(const std::string& text) { return Fail{"invalid value " + GoQuoted(text)}; }
  template <typename T>
  static Done Put(Slot& slot, const std::string& text, std::optional<T> value) {
    if (!value) return Invalid(text);
    slot.Put(std::move(*value));
    return {};
  }
  Done Text(const std::string& text, Slot& slot) {
    saw_bad_utf8_ = saw_bad_utf8_ || !IsValidUtf8(text);
    slot.Put(text);
    return {};
  }
  Done Enum(const std::string& text, Slot& slot) const;
  Done Message(const std::string& text, Slot& slot);

  const Source source_;
  bool saw_bad_utf8_ = false;
};

Done TextReader::Value(const std::string& text, Slot slot) {
  switch (slot.field()->cpp_type()) {
    case Kind::CPPTYPE_BOOL:
      return Put(slot, text, ParseBool(text));
    case Kind::CPPTYPE_INT32:
      return Put(slot, text, ParseInteger<int32_t>(text));
    case Kind::CPPTYPE_INT64:
      return Put(slot, text, ParseInteger<int64_t>(text));
    case Kind::CPPTYPE_UINT32:
      return Put(slot, text, ParseInteger<uint32_t>(text));
    case Kind::CPPTYPE_UINT64:
      return Put(slot, text, ParseInteger<uint64_t>(text));
    case Kind::CPPTYPE_STRING:
      if (slot.field()->type() == pb::FieldDescriptor::TYPE_BYTES)
        return Put(slot, text, ParseBytes(text));
      return Text(text, slot);
    case Kind::CPPTYPE_ENUM:
      return Enum(text, slot);
    case Kind::CPPTYPE_MESSAGE:
      return Message(text, slot);
    default:
      return Invalid(text);
  }
}

Done TextReader::Enum(const std::string& text, Slot& slot) const {
  const pb::EnumDescriptor* type = slot.field()->enum_type();
  const pb::EnumValueDescriptor* value = type->FindValueByName(text);
  if (value == nullptr) {
    const auto number = ParseInteger<int32_t>(text);
    if (number) value = type->FindValueByNumber(*number);
  }
  if (value == nullptr) {
    return Fail{source_ == Source::kPath ? text + " is not valid"
                                         : GoQuoted(text) + " is not a valid value"};
  }
  slot.PutEnum(value->number());
  return {};
}

Done TextReader::Message(const std::string& text, Slot& slot) {
  const pb::Descriptor* type = slot.field()->message_type();
  switch (WellKnownOf(type)) {
    case WellKnown::kTimestamp: {
      std::string bare = text;
      if (source_ == Source::kPath) {  // Go accepts quotes around it, too
        bare.erase(0, std::min(bare.find_first_not_of('"'), bare.size()));
        bare.erase(bare.find_last_not_of('"') + 1);
      }
      const auto time = source_ == Source::kPath ? ParseJsonTimestamp(bare) : ParseTimestamp(bare);
      if (!time) return Invalid(text);
      if (!TimestampText(*time)) return Fail{text + " before 0001-01-01"};
      SetTime(slot.NewMessage(), *time);
      return {};
    }
    case WellKnown::kFieldMask: {
      Slot paths(slot.NewMessage(), type->FindFieldByNumber(1), true);
      for (const std::string& path : Split(text, ',')) {
        TRY(Text(path, paths));
      }
      return {};
    }
    default:
      return Fail{"unsupported message type: " + GoQuoted(type->full_name())};
  }
}

// Sets the field at a path of field names. Unknown names are ignored.
class PathSetter {
 public:
  PathSetter(TextReader& reader, pb::Message& request) : reader_(reader), request_(request) {}

  Done Set(const std::vector<std::string>& path, const std::vector<std::string>& values) {
    pb::Message* message = &request_;
    for (size_t i = 0; i + 1 < path.size(); ++i) {
      const pb::FieldDescriptor* field = FindField(message->GetDescriptor(), path[i]);
      if (field == nullptr) return {};
      TRY(CheckOneof(*message, field));
      if (field->is_repeated() || field->message_type() == nullptr)
        return Fail{"invalid path: " + GoQuoted(path[i]) + " is not a message"};
      message = message->GetReflection()->MutableMessage(message, field);
    }
    const pb::FieldDescriptor* field = FindField(message->GetDescriptor(), path.back());
    if (field == nullptr) return {};
    TRY(CheckOneof(*message, field));
    if (field->is_map()) return SetMap(*message, field, values);
    if (!field->is_repeated() && values.size() > 1) {
      return Fail{"too many values for field " + GoQuoted(field->name()) + ": " +
                  Joined(values, ", ")};
    }
    for (const std::string& value : values) {
      const auto put = reader_.Value(value, Slot(*message, field, field->is_repeated()));
      if (put.ok()) continue;
      return Fail{std::string(field->is_repeated() ? "parsing list " : "parsing field ") +
                  GoQuoted(field->name()) + ": " + put.error()};
    }
    return {};
  }

 private:
  static Done CheckOneof(const pb::Message& message, const pb::FieldDescriptor* field) {
    const pb::OneofDescriptor* oneof = field->real_containing_oneof();
    if (oneof == nullptr) return {};
    const auto* set = message.GetReflection()->GetOneofFieldDescriptor(message, oneof);
    if (set == nullptr || (set == field && field->message_type() != nullptr)) return {};
    return Fail{"field already set for oneof " + GoQuoted(oneof->name())};
  }

  Done SetMap(pb::Message& message, const pb::FieldDescriptor* field,
              const std::vector<std::string>& values) {
    if (values.size() != 2) {
      return Fail{"more than one value provided for key " + GoQuoted(values[0]) + " in map " +
                  GoQuoted(field->full_name())};
    }
    pb::Message* entry = message.GetReflection()->AddMessage(&message, field);
    const pb::Descriptor* type = field->message_type();
    if (auto put = reader_.Value(values[0], Slot(*entry, type->map_key(), false)); !put.ok())
      return Fail{"parsing map key " + GoQuoted(field->name()) + ": " + put.error()};
    if (auto put = reader_.Value(values[1], Slot(*entry, type->map_value(), false)); !put.ok())
      return Fail{"parsing map value " + GoQuoted(field->name()) + ": " + put.error()};
    return {};
  }

  TextReader& reader_;
  pb::Message& request_;
};

// The path with proto names. Returned unchanged if a part is not a field or leads through a list.
std::vector<std::string> ProtoNames(const pb::Descriptor* type,
                                    const std::vector<std::string>& path) {
  std::vector<std::string> names;
  for (const std::string& part : path) {
    const pb::FieldDescriptor* field = type == nullptr ? nullptr : FindField(type, part);
    if (field == nullptr) return path;
    names.push_back(field->name());
    type = field->is_repeated() ? nullptr : field->message_type();
  }
  return names;
}

bool IsHidden(const Route& route, const std::vector<std::string>& path) {
  return std::any_of(route.hidden.begin(), route.hidden.end(), [&](const auto& names) {
    return names.size() <= path.size() && std::equal(names.begin(), names.end(), path.begin());
  });
}

Done BindBody(const Route& route, std::string_view body, pb::Message& request) {
  if (route.body == Route::Body::kNone) return {};
  if (IsBlank(body)) {
    // An empty body sets an empty message.
    const auto touch = [&](const pb::FieldDescriptor* field) {
      if (field != nullptr && !field->is_repeated() && field->message_type() != nullptr)
        request.GetReflection()->MutableMessage(&request, field);
    };
    touch(route.body_field);
    touch(route.mask_field);
    return {};
  }
  TRY(const auto document, ParseBody(body));
  const json::Value root = document.root();
  if (route.body == Route::Body::kWhole) return ReadMessage(root, request);
  const pb::FieldDescriptor* field = route.body_field;
  // null sets a message, but leaves a string or a list unchanged.
  const bool is_message = field->message_type() != nullptr && !field->is_repeated();
  if (!root.is_null() || is_message) {
    TRY(ReadField(root, request, field));
  }
  if (route.mask_field == nullptr) return {};
  TRY(auto paths, FieldPaths(root, field->message_type()));
  pb::Message* mask = request.GetReflection()->MutableMessage(&request, route.mask_field);
  Slot slot(*mask, mask->GetDescriptor()->FindFieldByNumber(1), true);
  for (std::string& path : paths) slot.Put(std::move(path));
  return {};
}

Done BindPath(const Route& route, const std::vector<std::string>& values, TextReader& reader,
              pb::Message& request) {
  for (size_t i = 0; i < values.size(); ++i) {
    const auto& fields = route.variables[i];
    const pb::FieldDescriptor* field = fields.back();
    Done put;
    if (fields.size() > 1) {
      std::vector<std::string> path;
      for (const auto* part : fields) path.push_back(part->name());
      put = PathSetter(reader, request).Set(path, {values[i]});
    } else if (field->is_repeated()) {
      request.GetReflection()->ClearField(&request, field);
      for (const std::string& value : Split(values[i], ',')) {
        put = reader.Value(value, Slot(request, field, true));
        if (!put.ok()) break;
      }
    } else {
      request.GetReflection()->ClearField(&request, field);
      put = reader.Value(values[i], Slot(request, field, false));
    }
    if (!put.ok()) {
      return Fail{"type mismatch, parameter: " + route.path.variables()[i] +
                  ", error: " + put.error()};
    }
  }
  return {};
}

Done BindQuery(const Route& route, const RequestParts& parts, TextReader& reader,
               pb::Message& request) {
  TRY(auto pairs, ParseQuery(parts.form));
  TRY(const auto query, ParseQuery(parts.query));
  pairs.insert(pairs.end(), query.begin(), query.end());
  // Groups the values by name, in the order of the names.
  std::vector<std::string> names;
  std::map<std::string, std::vector<std::string>> values;
  for (auto& [name, value] : pairs) {
    auto& list = values[name];
    if (list.empty()) names.push_back(name);
    list.push_back(std::move(value));
  }
  std::set<std::string> seen;
  for (const std::string& name : names) {
    std::vector<std::string> list = values[name];
    std::string path_text = name, map_key;
    if (const size_t open = name.rfind('['); open != std::string::npos && name.ends_with(']')) {
      path_text = name.substr(0, open);
      map_key = name.substr(open);
      list.insert(list.begin(), map_key.substr(1, map_key.size() - 2));
    }
    const auto path = ProtoNames(request.GetDescriptor(), Split(path_text, '.'));
    if (IsHidden(route, path)) continue;
    if (!seen.insert(Joined(path, ".") + map_key).second)
      return Fail{"duplicate field " + GoQuoted(Joined(path, ".") + map_key)};
    TRY(PathSetter(reader, request).Set(path, list));
  }
  return {};
}

}  // namespace

BasicResult<Pairs, std::string> ParseQuery(std::string_view text) {
  Pairs pairs;
  std::string error;
  while (!text.empty()) {
    const size_t end = std::min(text.find('&'), text.size());
    const std::string_view pair = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    if (pair.find(';') != std::string_view::npos) {
      error = "invalid semicolon separator in query";
      continue;
    }
    if (pair.empty()) continue;
    const size_t equals = std::min(pair.find('='), pair.size());
    const Unescaped name = PercentDecode(pair.substr(0, equals), true);
    const Unescaped value = PercentDecode(pair.substr(std::min(equals + 1, pair.size())), true);
    for (const Unescaped* part : {&name, &value}) {
      if (!part->malformed.empty() && error.empty())
        error = "invalid URL escape " + GoQuoted(part->malformed);
    }
    pairs.emplace_back(name.text, value.text);
  }
  if (!error.empty()) return Fail{std::move(error)};
  return pairs;
}

grpc::Status Bind(const Route& route, const RequestParts& parts, pb::Message& request) {
  const auto invalid = [](const Done& done) {
    return grpc::Status(grpc::StatusCode::INVALID_ARGUMENT, done.error());
  };
  if (auto done = BindBody(route, parts.body, request); !done.ok()) return invalid(done);
  TextReader path(TextReader::Source::kPath), query(TextReader::Source::kQuery);
  if (auto done = BindPath(route, parts.values, path, request); !done.ok()) return invalid(done);
  if (route.has_query) {
    if (auto done = BindQuery(route, parts, query, request); !done.ok()) return invalid(done);
  }
  if (path.saw_bad_utf8() || query.saw_bad_utf8()) {
    return {grpc::StatusCode::INVALID_ARGUMENT, "a value of the path or of the query is not UTF-8"};
  }
  return grpc::Status::OK;
}

}  // namespace tollgate::transcode
