#include "common/base/workspace_id.h"

#include <algorithm>

#include "common/base/ascii.h"

namespace tollgate {

bool IsWorkspaceId(std::string_view text) {
  return !text.empty() && text.size() <= 63 && text.front() != '-' && text.back() != '-' &&
         std::all_of(text.begin(), text.end(),
                     [](char c) { return IsDigit(c) || IsLower(c) || c == '-'; });
}

}  // namespace tollgate
