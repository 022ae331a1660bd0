// What handlers read from admin requests beside names and amounts: request ids, pages, times,
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

// The request_id of a call that may go without one: a random one then.
AdminResult<std::string> RequestIdOrNew(const std::string& text);

// The message as bytes that are the same for equal messages, also with maps, to compare the
// contents of repeated requests.
std::string ContentOf(const google::protobuf::MessageLite& message);

google::protobuf::Timestamp ToTimestamp(int64_t us);
// Microseconds since the Unix epoch; INVALID_ARGUMENT on field for a time that is out of range.
AdminResult<int64_t> ToMicros(const google::protobuf::Timestamp& time, const std::string& field);

// The page of a list: its size, the position where it continues ("" at the start), and what its
// tokens are bound to.
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

// The fields of the resource that an update changes, as proto names: those of the mask, which may
// have JSON names, or, without a mask, those that are set. allowed: what may change; a mask may
// also name fields within those. INVALID_ARGUMENT on update_mask for every other path, and for
// none.
AdminResult<std::vector<std::string>> MaskedFields(const google::protobuf::FieldMask& mask,
                                                   const google::protobuf::Message& resource,
                                                   std::span<const std::string_view> allowed);

}  // namespace tollgate::admin
