#include "common/sql/postgres_connect.h"

#include <libpq-fe.h>
#include <poll.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string_view>

#include "common/sql/drivers.h"

namespace tollgate::sql {

SqlResult<void> CheckPostgresUrl(const std::string& url) {
  char* message = nullptr;
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> options(
      PQconninfoParse(url.c_str(), &message), &PQconninfoFree);
  PQfreemem(message);
  bool good = options != nullptr;
  // A password that is not percent-encoded may end early. Its rest becomes another part, which
  // libpq's connection errors show.
  for (const auto* at = options.get(); good && at->keyword != nullptr; ++at) {
    const std::string_view keyword = at->keyword;
    const std::string_view value = at->val == nullptr ? "" : at->val;
    if (keyword == "port") good = value.find_first_not_of("0123456789,") == std::string_view::npos;
    if (keyword == "host" || keyword == "dbname") {
      good = value.find('@') == std::string_view::npos;
    }
  }
  if (good) return {};
  return Fail{SqlError{ErrorKind::kOther,
                       "the storage URL cannot be read: it must be "
                       "postgresql://USER:PASSWORD@HOST:PORT/DATABASE, or with several servers "
                       "HOST:PORT,HOST:PORT, with every sign of user and "
                       "password but letters and digits percent-encoded (%40 for @)"}};
}

namespace {

// For a URL that has been checked.
bool NamesSeveralServers(const std::string& url) {
  const std::unique_ptr<PQconninfoOption, decltype(&PQconninfoFree)> options(
      PQconninfoParse(url.c_str(), nullptr), &PQconninfoFree);
  for (const auto* at = options.get(); at != nullptr && at->keyword != nullptr; ++at) {
    const std::string_view keyword = at->keyword;
    if (keyword != "host" && keyword != "hostaddr") continue;
    if (at->val != nullptr && std::string_view(at->val).find(',') != std::string_view::npos) {
      return true;
    }
  }
  return false;
}

}  // namespace

PGconn* OpenPostgres(const std::string& url, const Database::Options& options) {
  const std::string seconds = std::to_string(std::max(2, options.connect_timeout_ms / 1000));
  // Sets synchronous_commit=on even if the server's default is weaker. The options follow the URL,
  // so the URL cannot override them.
  std::string settings =
      "-c synchronous_commit=on -c client_min_messages=warning -c timezone=UTC"
      " -c tcp_user_timeout=5000 -c idle_in_transaction_session_timeout=" +
      std::to_string(options.idle_in_transaction_ms) +
      " -c statement_timeout=" + std::to_string(options.statement_timeout_ms) +
      " -c lock_timeout=" + std::to_string(options.lock_timeout_ms);
  if (options.by_key_only) {
    settings +=
        " -c plan_cache_mode=force_generic_plan -c jit=off -c enable_seqscan=off"
        " -c enable_hashjoin=off -c enable_mergejoin=off";
  }
  // Settings before the URL (dbname) are defaults that it can override. With several servers the
  // writable one is selected: after a fail-over it may be any of them. A single server may be a
  // standby, for commands that only read.
  const char* role = NamesSeveralServers(url) ? "read-write" : "any";
  const char* keys[] = {"connect_timeout",
                        "tcp_user_timeout",
                        "keepalives_idle",
                        "keepalives_interval",
                        "keepalives_count",
                        "target_session_attrs",
                        "dbname",
                        "options",
                        nullptr};
  const char* values[] = {seconds.c_str(), "5000",           "5",    "2", "2", role,
                          url.c_str(),     settings.c_str(), nullptr};
  return PQconnectdbParams(keys, values, /*expand_dbname=*/1);
}

bool WaitForResult(PGconn* connection, std::chrono::steady_clock::time_point until) {
  using Clock = std::chrono::steady_clock;
  while (PQstatus(connection) == CONNECTION_OK && PQisBusy(connection) != 0) {
    int wait_ms = -1;
    if (until != Clock::time_point::max()) {
      const auto left = std::chrono::ceil<std::chrono::milliseconds>(until - Clock::now());
      if (left.count() <= 0) return false;
      wait_ms = static_cast<int>(left.count());
    }
    pollfd waiting{PQsocket(connection), POLLIN, 0};
    if (poll(&waiting, 1, wait_ms) > 0 && PQconsumeInput(connection) == 0) return true;
  }
  return true;
}

}  // namespace tollgate::sql
