#include "services/billing/storage/background_connection.h"

#include <utility>

#include "common/base/try.h"

namespace tollgate::billing {

sql::SqlResult<void> EnsureConnected(const sql::Database::Options& options,
                                     std::unique_ptr<sql::Connection>* connection) {
  if (*connection != nullptr && (*connection)->healthy()) return {};
  TRY(auto database, sql::Database::Open(options));
  TRY(auto opened, database->Connect());
  *connection = std::move(opened);
  return {};
}

}  // namespace tollgate::billing
