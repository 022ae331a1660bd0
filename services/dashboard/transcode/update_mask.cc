#include "services/dashboard/transcode/update_mask.h"

#include <algorithm>

#include "services/dashboard/transcode/text.h"

namespace tollgate::transcode {

namespace pb = google::protobuf;

namespace {

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
    if (field->is_repeated()) {
      paths.push_back(below);
    } else if (!AddPaths(member, field->message_type(), below, paths, error)) {
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
