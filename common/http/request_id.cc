#include "common/base/ascii.h"
#include "common/http/server.h"

namespace tollgate::http {

bool IsWellFormedRequestId(std::string_view id) {
  if (id.empty() || id.size() > 128) return false;
  for (const char c : id) {
    if (!IsAlnum(c) && c != '.' && c != '_' && c != '-') return false;
  }
  return true;
}

}  // namespace tollgate::http
