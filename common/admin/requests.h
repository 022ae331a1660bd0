// What handlers read from admin requests besides names and amounts: request ids, pages, times,
// masks.
#pragma once

#include <google/protobuf/field_mask.pb.h>
#include <google/protobuf/message.h>
#include <google/protobuf/timestamp.pb.h>

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/admin/caller.h"
#include "common/admin/failure.h"
#include "common/admin/paging.h"

namespace tollgate::admin {

// The request_id of a call that does not require one: a random id if it is empty.
AdminResult<std::string> RequestIdOrNew(const std::string& text);

// Serializes deterministically, maps included, to compare the contents of repeated requests.
std::string ContentOf(const google::protobuf::MessageLite& message);

google::protobuf::Timestamp ToTimestamp(int64_t us);
// Microseconds since the Unix epoch; INVALID_ARGUMENT on field for a time that is out of range.
AdminResult<int64_t> ToMicros(const google::protobuf::Timestamp& time, const std::string& field);

// The page of a list: its size, the position to continue at ("" at the start), and what its tokens
// are bound to.
struct ListPage {
  int size = 0;
  std::string position;
  std::string binding;
};
// parent and filter: "" for a list that has none.
template <typename Request>
AdminResult<ListPage> PageOfList(const Request& request, const Caller& caller,
                                 std::string_view method, const std::string& parent,
                                 const std::string& filter) {
  ListPage page;
  auto size = PageSize(request.page_size());
  if (!size) return Fail{size.error()};
  page.size = *size;
  page.binding = std::string(method) + "\n" + caller.actor + "\n" + parent + "\n" + filter;
  auto position = DecodePageToken(page.binding, request.page_token());
  if (!position) return Fail{position.error()};
  page.position = *std::move(position);
  return page;
}

// The fields of the resource that an update changes, as proto names: those of the mask (JSON names
// are accepted), or without a mask those that are set. allowed: fields that may change, which
// include their subfields. INVALID_ARGUMENT on update_mask for any other path, and if no field is
// left.
AdminResult<std::vector<std::string>> MaskedFields(const google::protobuf::FieldMask& mask,
                                                   const google::protobuf::Message& resource,
                                                   std::span<const std::string_view> allowed);

}  // namespace tollgate::admin
