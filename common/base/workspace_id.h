// The grammar of workspace ids.
#pragma once

#include <string_view>

namespace tollgate {

// 1 to 63 lower-case letters, digits and hyphens; the first and the last character are not hyphens.
bool IsWorkspaceId(std::string_view text);

}  // namespace tollgate
