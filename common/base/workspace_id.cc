#include "common/base/workspace_id.h"

#include <algorithm>

namespace tollgate {

bool IsWorkspaceId(std::string_view text) {
  return !text.empty() && text.size() <= 63 && text.front() != '-' && text.back() != '-' &&
         std::all_of(text.begin(), text.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || c == '-';
         });
}

}  // namespace tollgate
