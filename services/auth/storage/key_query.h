// Lists the keys of a workspace.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "services/auth/storage/key_rows.h"
#include "tollgate/auth/v1/front.pb.h"

namespace tollgate::auth {

struct KeyQuery {
  std::string workspace;
  std::string prefix;  // of the name, the id or the last four characters
  int state = 0;       // v1::KeyState; 0: any
  std::string label;   // "name=value"
  // Only keys after this one, newest first.
  int64_t before_us = INT64_MAX;
  std::string before_id;  // empty: from the start
};
sql::SqlResult<void> ListKeys(sql::Connection& connection, const KeyQuery& query, int limit,
                              const std::function<void(KeyRecord)>& add);

// Active keys that expire from start_us until before end_us, the first of them first.
struct ExpiryQuery {
  std::string workspace;
  int64_t start_us = 0, end_us = 0;
  int limit = 0;
};
sql::SqlResult<void> ReadExpiringKeys(sql::Connection& connection, const ExpiryQuery& query,
                                      const std::function<void(v1::ExpiringKey)>& add);

}  // namespace tollgate::auth
