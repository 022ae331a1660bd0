#include "services/billing/storage/request_ids.h"

#include <optional>
#include <string>

#include "common/base/crypto.h"
#include "common/base/try.h"

namespace tollgate::billing {
namespace {

using sql::SqlResult;

// id: the actor and the request id of the call.
constexpr std::string_view kRequestIdTable = R"sql(
CREATE TABLE request_id (
  id {text} PRIMARY KEY,
  content {blob} NOT NULL,
  at_us {int} NOT NULL
){strict};
CREATE INDEX request_id_at ON request_id (at_us);
)sql";
constexpr sql::Migration kMigrations[] = {{1, "request ids", kRequestIdTable}};

constexpr int64_t kKeepIdsUs = int64_t{7} * 24 * 3600 * 1'000'000;

}  // namespace

std::span<const sql::Migration> RequestIdMigrations() { return kMigrations; }

SqlResult<void> MigrateRequestIds(sql::Database& database) {
  return database.Migrate(kRequestIdsComponent, kMigrations);
}

SqlResult<SeenRequest> SeeRequest(sql::Connection& transaction, const audit::Origin& by,
                                  std::string_view content, int64_t now_us) {
  if (by.request_id.empty()) return SeenRequest::kFresh;
  TRY(transaction.Execute("DELETE FROM request_id WHERE at_us < $1", {now_us - kKeepIdsUs}));
  const std::string id = by.actor + "\n" + by.request_id;
  const std::string digest = Sha256(content);
  TRY(auto added, transaction.Execute("INSERT INTO request_id (id, content, at_us) VALUES ($1, $2, "
                                      "$3) ON CONFLICT (id) DO NOTHING",
                                      {id, sql::Param::Blob(digest), now_us}));
  if (added == 1) return SeenRequest::kFresh;
  std::string known;
  TRY(transaction.Query("SELECT content FROM request_id WHERE id = $1", {id},
                        [&](const sql::Row& row) { known = row.Text(0); }));
  return known == digest ? SeenRequest::kSame : SeenRequest::kOther;
}

}  // namespace tollgate::billing
