#include "services/billing/storage/background_connection.h"

#include <utility>

namespace tollgate::billing {

sql::SqlResult<void> EnsureConnected(const sql::Database::Options& options,
                                     std::unique_ptr<sql::Connection>* connection) {
  if (*connection != nullptr && (*connection)->healthy()) return {};
  auto database = sql::Database::Open(options);
  if (!database.ok()) return Fail{database.error()};
  auto opened = (*database)->Connect();
  if (!opened.ok()) return Fail{opened.error()};
  *connection = std::move(*opened);
  return {};
}

}  // namespace tollgate::billing
