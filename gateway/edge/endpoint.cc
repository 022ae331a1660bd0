#include "gateway/edge/endpoint.h"

namespace tollgate::gateway {

int EndpointTable::Find(std::string_view method, std::string_view path) const {
  if (method == "HEAD") method = "GET";
  // About a dozen rows: a linear search is as fast as a hash.
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (rows_[i].path == path && rows_[i].method == method) return static_cast<int>(i);
  }
  return -1;
}

Family FamilyOfPath(std::string_view path) {
  return path.starts_with("/v1/messages") ? Family::kMessages : Family::kOpenAi;
}

}  // namespace tollgate::gateway
