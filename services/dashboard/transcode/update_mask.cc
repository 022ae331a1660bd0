#include "services/dashboard/transcode/update_mask.h"

#include <algorithm>

#include "services/dashboard/transcode/text.h"
#include "services/dashboard/transcode/well_known.h"

namespace tollgate::transcode {

namespace pb = google::protobuf;

namespace {

// Leaves of a Struct or a Value, which have no type to look names up in.
void DynamicPaths(json::Value value, const std::string& path, std::vector<std::string>& paths) {
  if (!value.is_object() || value.size() == 0) {
    paths.push_back(path);
    return;
  }
  for (const json::Value member : value) DynamicPaths(member, path + "." + member.key(), paths);
}

bool AddPaths(json::Value value, const pb::Descriptor* type, const std::string& path,
              std::vector<std::string>& paths, std::string& error) {
  if (!value.is_object() || value.size() == 0) {
    if (!path.empty() || value.is_object()) paths.push_back(path);
    return true;
  }
  for (const json::Value member : value) {
    if (type == nullptr) {
      error = "JSON structure did not match request type";
      return false;
    }
    const std::string key = member.key();
    const pb::FieldDescriptor* field = FindField(type, key);
    if (field == nullptr) {
      error = "could not find field " + GoQuoted(key) + " in " + GoQuoted(type->full_name());
      return false;
    }
    const std::string below = path.empty() ? field->name() : path + "." + field->name();
    const pb::Descriptor* inner = field->message_type();
    const WellKnown known =
        inner == nullptr || field->is_map() ? WellKnown::kNone : WellKnownOf(inner);
    if (known == WellKnown::kStruct || known == WellKnown::kValue) {
      DynamicPaths(member, below, paths);
    } else if (known == WellKnown::kAny && !field->is_repeated()) {
      if (!member.is_object() || !member.Find("@type")) {
        error = "could not find field @type in " + GoQuoted(key) + " in message " +
                GoQuoted(type->full_name());
        return false;
      }
      paths.push_back(below);
    } else if (field->is_repeated()) {
      paths.push_back(below);
    } else if (!AddPaths(member, inner, below, paths, error)) {
      return false;
    }
  }
  return true;
}

}  // namespace

Read<std::vector<std::string>> FieldPaths(json::Value value, const pb::Descriptor* type) {
  std::vector<std::string> paths;
  std::string error;
  if (!AddPaths(value, type, "", paths, error)) return Fail{std::move(error)};
  std::sort(paths.begin(), paths.end());
  return paths;
}

}  // namespace tollgate::transcode
