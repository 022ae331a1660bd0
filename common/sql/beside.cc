#include "common/sql/beside.h"

#include <filesystem>

#include "common/base/try.h"

namespace tollgate::sql {

SqlResult<std::unique_ptr<Connection>> ConnectBeside(const std::string& url, bool read_only) {
  constexpr std::string_view kSqlite = "sqlite:";
  if (url.starts_with(kSqlite) && !std::filesystem::exists(url.substr(kSqlite.size()))) {
    return Fail{SqlError{ErrorKind::kOther, "there is no database " + url}};
  }
  Database::Options options;
  options.url = url;
  TRY(const auto database, Database::Open(options));
  auto connection = database->Connect();
  if (!connection.ok() || !read_only) return connection;
  const bool sqlite = database->dialect() == Dialect::kSqlite;
  TRY((*connection)
          ->ExecuteScript(sqlite ? "PRAGMA query_only = ON"
                                 : "SET default_transaction_read_only = on"));
  return connection;
}

}  // namespace tollgate::sql
