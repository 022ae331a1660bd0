// Formats values of tollgate.admin.v1 as cells.
#pragma once

#include <google/protobuf/timestamp.pb.h>

#include <string>

#include "common/money/money.h"
#include "services/cli/table.h"

namespace tollgate::cli {

inline Cell Usd(const std::string& decimal) {
  return Usd(ParseDecimalUsdToNano(decimal).value_or(0));
}
inline Cell Time(const google::protobuf::Timestamp& time) {
  return Time(time.seconds() * 1'000'000 + time.nanos() / 1000, "-");
}
// Last part of a resource name: "workspaces/acme/adjustments/x" gives "x".
inline std::string LastPart(const std::string& name) { return name.substr(name.rfind('/') + 1); }
// Workspace of a resource name: workspaces/{workspace}/…
inline std::string WorkspaceOf(const std::string& name) {
  const size_t begin = name.find('/') + 1;
  return name.substr(begin, name.find('/', begin) - begin);
}
// Enum value without its prefix, in lower case: "pending_approval".
inline std::string EnumText(std::string name, const std::string& prefix) {
  if (name.starts_with(prefix)) name.erase(0, prefix.size());
  for (char& c : name) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c | 0x20);
  }
  return name;
}

}  // namespace tollgate::cli
