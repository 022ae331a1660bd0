#include "common/admin/requests.h"

#include <google/protobuf/descriptor.h>
#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>

#include <algorithm>

#include "common/admin/values.h"
#include "common/base/id.h"
#include "common/base/try.h"

namespace tollgate::admin {
namespace {

using google::protobuf::Descriptor;
using google::protobuf::FieldDescriptor;

constexpr int64_t kMicros = 1'000'000;
// Year 9999.
constexpr int64_t kMaxSeconds = 253'402'300'799;

const FieldDescriptor* FindField(const Descriptor& type, std::string_view name) {
  for (int i = 0; i < type.field_count(); ++i) {
    const FieldDescriptor* field = type.field(i);
    if (field->name() == name || field->json_name() == name) return field;
  }
  return nullptr;
}

// The path in proto names; empty for a field that does not exist.
std::string ProtoPath(const Descriptor& type, std::string_view path) {
  const size_t dot = path.find('.');
  const FieldDescriptor* field = FindField(type, path.substr(0, dot));
  if (field == nullptr) return "";
  if (dot == std::string_view::npos) return field->name();
  if (field->is_repeated() || field->message_type() == nullptr) return "";
  const std::string rest = ProtoPath(*field->message_type(), path.substr(dot + 1));
  return rest.empty() ? "" : field->name() + "." + rest;
}

}  // namespace

AdminResult<std::string> RequestIdOrNew(const std::string& text) {
  return text.empty() ? AdminResult<std::string>(Id::New().ToHex()) : RequiredRequestId(text);
}

AdminResult<ListPage> PageAt(int32_t size, std::string_view token, std::string binding) {
  ListPage page{.binding = std::move(binding)};
  TRY(auto rows, PageSize(size));
  page.size = rows;
  TRY(auto position, DecodePageToken(page.binding, token));
  page.position = std::move(position);
  return page;
}

Fail<Failure> InvalidPageToken() {
  return InvalidField("page_token", "the page_token is not one of this list");
}

std::string ContentOf(const google::protobuf::MessageLite& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  message.SerializePartialToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

google::protobuf::Timestamp ToTimestamp(int64_t us) {
  google::protobuf::Timestamp time;
  time.set_seconds(us / kMicros);
  time.set_nanos(static_cast<int32_t>(us % kMicros * 1000));
  return time;
}

AdminResult<int64_t> ToMicros(const google::protobuf::Timestamp& time, const std::string& field) {
  if (time.seconds() < 0 || time.seconds() > kMaxSeconds || time.nanos() < 0 ||
      time.nanos() > 999'999'999) {
    return InvalidField(field, field + " is not a time from 1970 to 9999");
  }
  return time.seconds() * kMicros + time.nanos() / 1000;
}

AdminResult<std::vector<std::string>> MaskedFields(const google::protobuf::FieldMask& mask,
                                                   const google::protobuf::Message& resource,
                                                   std::span<const std::string_view> allowed) {
  std::vector<std::string> paths;
  const Descriptor& type = *resource.GetDescriptor();
  const auto add = [&](const std::string& given) {
    const std::string path = ProtoPath(type, given);
    const std::string_view top = std::string_view(path).substr(0, path.find('.'));
    if (path.empty() || std::ranges::find(allowed, top) == allowed.end()) return false;
    paths.push_back(path);
    return true;
  };
  if (mask.paths_size() > 0) {
    for (const std::string& path : mask.paths()) {
      if (!add(path)) {
        return InvalidField("update_mask", "\"" + path + "\" is not a field that may be changed");
      }
    }
    return paths;
  }
  std::vector<const FieldDescriptor*> set;
  resource.GetReflection()->ListFields(resource, &set);
  for (const FieldDescriptor* field : set) add(field->name());
  if (!paths.empty()) return paths;
  return InvalidField("update_mask", "the request changes nothing: name the fields to change");
}

}  // namespace tollgate::admin
