#include "services/auth/storage/key_rows.h"

#include "common/base/try.h"
#include "services/auth/storage/rows.h"

namespace tollgate::auth {

using sql::SqlResult;

namespace {

constexpr std::string_view kFromKeys = " FROM virtual_key k";

// Names have no '=' and values no line breaks (domain/rules.h).
std::string LabelsText(const std::map<std::string, std::string>& labels) {
  std::string text;
  for (const auto& [name, value] : labels) {
    if (!text.empty()) text += '\n';
    text += name + '=' + value;
  }
  return text;
}

std::optional<int64_t> QuotaOf(const v1::Key& key) {
  if (!key.has_monthly_quota_nano_usd()) return std::nullopt;
  return key.monthly_quota_nano_usd();
}

}  // namespace

const std::string kSelectKeyRecords = [] {
  std::string text(kSelectKeys);
  text.insert(text.find(kFromKeys),
              ", k.labels, k.created_by, k.rotated_from, k.state_reason, k.last_used_us");
  return text;
}();

KeyRecord ReadKeyRecord(const sql::Row& row) {
  KeyRecord record;
  record.key = ReadKey(row);
  SplitLines(row.Bytes(kKeyColumns), [&record](std::string_view line) {
    const size_t equals = line.find('=');
    record.labels.emplace(line.substr(0, equals), line.substr(equals + 1));
  });
  record.created_by = row.Text(kKeyColumns + 1);
  record.rotated_from = row.Text(kKeyColumns + 2);
  record.state_reason = row.Text(kKeyColumns + 3);
  record.last_used_us = row.Int(kKeyColumns + 4);
  return record;
}

namespace {

SqlResult<std::vector<KeyRecord>> KeysWhere(sql::Connection& connection, const char* condition,
                                            std::initializer_list<sql::Param> params) {
  std::vector<KeyRecord> records;
  TRY(connection.Query(kSelectKeyRecords + condition, params,
                       [&](const sql::Row& row) { records.push_back(ReadKeyRecord(row)); }));
  return records;
}
SqlResult<MaybeKey> KeyWhere(sql::Connection& connection, const char* condition,
                             std::initializer_list<sql::Param> params) {
  TRY(auto records, KeysWhere(connection, condition, params));
  if (records.empty()) return MaybeKey();
  return MaybeKey(std::move(records.front()));
}

}  // namespace

SqlResult<MaybeKey> FindKeyById(sql::Connection& connection, const std::string& key_id) {
  return KeyWhere(connection, " WHERE k.key_id = $1", {key_id});
}

SqlResult<MaybeKey> FindKeyIn(sql::Connection& connection, const std::string& workspace,
                              const std::string& key_id) {
  return KeyWhere(connection, " WHERE k.key_id = $1 AND k.workspace_id = $2", {key_id, workspace});
}

SqlResult<MaybeKey> FindKeyByLookup(sql::Connection& connection, const std::string& lookup) {
  return KeyWhere(connection, " WHERE k.lookup = $1", {sql::Param::Blob(lookup)});
}

SqlResult<std::vector<KeyRecord>> KeysNotRevoked(sql::Connection& connection,
                                                 const std::string& workspace) {
  return KeysWhere(connection, " WHERE k.workspace_id = $1 AND k.state <> $2 ORDER BY k.key_id",
                   {workspace, static_cast<int64_t>(v1::KEY_STATE_REVOKED)});
}

SqlResult<std::vector<std::string>> KeysWithLabel(sql::Connection& connection,
                                                  std::span<const sql::Param> key_ids,
                                                  std::string_view label) {
  std::vector<std::string> found;
  const std::string line = "\n" + std::string(label) + "\n";
  TRY(connection.QueryIn("SELECT key_id, labels FROM virtual_key WHERE labels LIKE '%" +
                             std::string(label) + "%' AND key_id IN",
                         key_ids, "", [&](const sql::Row& row) {
                           const std::string labels = "\n" + row.Text(1) + "\n";
                           if (labels.find(line) != std::string::npos) found.push_back(row.Text(0));
                         }));
  return found;
}

SqlResult<void> InsertKey(sql::Connection& connection, const KeyRecord& record,
                          const AuthStore::Stored& stored) {
  const v1::Key& key = record.key;
  const v1::Limits& limits = key.key_limits();
  return WithoutValue(connection.Execute(
      "INSERT INTO virtual_key (key_id, lookup, workspace_id, name, state, expires_at_us, "
      "allowed_models, requests_per_minute, tokens_per_minute, concurrent_requests, version, "
      "created_at_us, last_four, filter_tag, monthly_quota, allowed_addresses, labels, created_by, "
      "rotated_from, state_reason, updated_at_us, pepper_id, lineage) VALUES ($1, $2, $3, $4, $5, "
      "$6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23)",
      {key.key_id(),
       sql::Param::Blob(stored.lookup),
       key.workspace_id(),
       key.name(),
       static_cast<int64_t>(key.state()),
       key.expires_at_us(),
       JoinLines(key.allowed_models()),
       limits.requests_per_minute(),
       limits.tokens_per_minute(),
       limits.concurrent_requests(),
       key.version(),
       key.created_at_us(),
       key.last_four(),
       static_cast<int64_t>(stored.filter_tag),
       QuotaOf(key),
       JoinLines(key.allowed_addresses()),
       LabelsText(record.labels),
       record.created_by,
       record.rotated_from,
       record.state_reason,
       key.changed_at_us(),
       stored.pepper_id,
       JoinLines(key.lineage())}));
}

SqlResult<void> CopyModelLimits(sql::Connection& connection, const std::string& from,
                                const std::string& to) {
  return WithoutValue(connection.Execute(
      "UPDATE virtual_key SET model_limits = (SELECT model_limits FROM virtual_key WHERE key_id = "
      "$1) WHERE key_id = $2",
      {from, to}));
}

SqlResult<void> UpdateKey(sql::Connection& connection, const KeyRecord& record) {
  const v1::Key& key = record.key;
  const v1::Limits& limits = key.key_limits();
  return WithoutValue(connection.Execute(
      "UPDATE virtual_key SET name = $1, state = $2, expires_at_us = $3, allowed_models = $4, "
      "requests_per_minute = $5, tokens_per_minute = $6, concurrent_requests = $7, version = $8, "
      "monthly_quota = $9, allowed_addresses = $10, labels = $11, state_reason = $12, "
      "updated_at_us = $13, lineage = $14 WHERE key_id = $15",
      {key.name(), static_cast<int64_t>(key.state()), key.expires_at_us(),
       JoinLines(key.allowed_models()), limits.requests_per_minute(), limits.tokens_per_minute(),
       limits.concurrent_requests(), key.version(), QuotaOf(key),
       JoinLines(key.allowed_addresses()), LabelsText(record.labels), record.state_reason,
       key.changed_at_us(), JoinLines(key.lineage()), key.key_id()}));
}

}  // namespace tollgate::auth
