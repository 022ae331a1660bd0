#include "common/admin/paging.h"

#include <algorithm>

#include "common/base/crypto.h"

namespace tollgate::admin {
namespace {

constexpr int kDefaultPage = 50;
constexpr int kMaxPage = 200;
constexpr size_t kMarkBytes = 8;
constexpr size_t kMaxToken = 1024;

std::string Mark(std::string_view binding, std::string_view position) {
  return Sha256(std::to_string(binding.size()) + ":" + std::string(binding) + std::string(position))
      .substr(0, kMarkBytes);
}

}  // namespace

AdminResult<int> PageSize(int32_t requested) {
  if (requested < 0) return InvalidField("page_size", "page_size must not be negative");
  return requested == 0 ? kDefaultPage : std::min(requested, kMaxPage);
}

std::string EncodePageToken(std::string_view binding, std::string_view position) {
  return HexEncode(Mark(binding, position) + std::string(position));
}

AdminResult<std::string> DecodePageToken(std::string_view binding, std::string_view token) {
  if (token.empty()) return std::string();
  const auto bytes = token.size() <= kMaxToken ? HexDecode(token) : std::nullopt;
  if (bytes && bytes->size() > kMarkBytes) {
    std::string position = bytes->substr(kMarkBytes);
    if (bytes->substr(0, kMarkBytes) == Mark(binding, position)) return position;
  }
  return InvalidField("page_token",
                      "the page_token is not one of this list; start again without it");
}

}  // namespace tollgate::admin
