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
AdminResult<ListPage> PageAt(int32_t size, std::string_view token, std::string binding);
// The tokens are bound to the caller and to the request, apart from its page.
template <typename Request>
AdminResult<ListPage> PageOfList(const Request& request, const Caller& caller) {
  Request list = request;
  list.clear_page_size();
  list.clear_page_token();
  return PageAt(request.page_size(), request.page_token(),
                Request::descriptor()->name() + "\n" + caller.actor + "\n" + ContentOf(list));
}
// Adds the rows of the page to the response. rows has one more than the page's size if there is
// another page, which starts after position_of(last row).
template <typename Rows, typename Response, typename Add, typename PositionOf>
void FillPage(const ListPage& page, Rows& rows, Response& response, Add add,
              PositionOf position_of) {
  const bool more = rows.size() > static_cast<size_t>(page.size);
  if (more) rows.pop_back();
  for (const auto& row : rows) add(row);
  if (more) response.set_next_page_token(EncodePageToken(page.binding, position_of(rows.back())));
}
Fail<Failure> InvalidPageToken();

// The fields of the resource that an update changes, as proto names: those of the mask (JSON names
// are accepted), or without a mask those that are set. allowed: fields that may change, which
// include their subfields. INVALID_ARGUMENT on update_mask for any other path, and if no field is
// left.
AdminResult<std::vector<std::string>> MaskedFields(const google::protobuf::FieldMask& mask,
                                                   const google::protobuf::Message& resource,
                                                   std::span<const std::string_view> allowed);

}  // namespace tollgate::admin
