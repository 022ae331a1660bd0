#include "services/auth/storage/key_query.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "common/base/try.h"

namespace tollgate::auth {

using sql::SqlResult;

namespace {

// With more matches than this, the list is read in order of creation until the page is full.
constexpr int kFewKeys = 20'000;
// Keys that are read in one query.
constexpr size_t kTogether = 200;

// Applies the conditions of the SQL statement to a key that FindByPrefix has found.
bool Takes(const KeyQuery& query, const KeyRecord& record) {
  if (query.state != 0 && record.key.state() != query.state) return false;
  if (query.label.empty()) return true;
  const size_t equals = query.label.find('=');
  const auto found = record.labels.find(query.label.substr(0, equals));
  return found != record.labels.end() && found->second == query.label.substr(equals + 1);
}

std::string LowerAscii(std::string text) {
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return text;
}

int64_t Characters(std::string_view utf8) {
  return std::ranges::count_if(utf8, [](char c) { return (c & 0xc0) != 0x80; });
}

// Ordered newest first.
struct Found {
  int64_t created_us = 0;
  std::string key_id;
  bool operator<(const Found& other) const {
    return std::pair(created_us, key_id) > std::pair(other.created_us, other.key_id);
  }
};

// Finds keys by the prefix of their name, public part or last four characters, using one index for
// each. nullopt if there are more than kFewKeys.
SqlResult<std::optional<std::set<Found>>> FindByPrefix(sql::Connection& sql,
                                                       const KeyQuery& query) {
  // The highest Unicode character: sorts after all text with this prefix.
  static const std::string kEnd = "\xf4\x8f\xbf\xbf";
  const std::string lower = LowerAscii(query.prefix);
  std::set<Found> found;
  for (const auto& [column, prefix] :
       {std::pair("lower(name)", &lower), std::pair("key_id", &query.prefix),
        std::pair("last_four", &query.prefix)}) {
    const std::string end = *prefix + kEnd;
    int seen = 0;
    const std::string text =
        "SELECT created_at_us, key_id FROM virtual_key WHERE workspace_id = $1"
        " AND " +
        std::string(column) + " >= $2 AND " + column + " < $3 LIMIT " +
        std::to_string(kFewKeys + 1);
    auto read = sql.Query(text, {query.workspace, *prefix, end}, [&](const sql::Row& row) {
      ++seen;
      found.insert({row.Int(0), row.Text(1)});
    });
    if (!read) return Fail{std::move(read).error()};
    if (seen > kFewKeys) return std::optional<std::set<Found>>();
  }
  return std::optional(std::move(found));
}

SqlResult<void> ReadFound(sql::Connection& sql, const KeyQuery& query, const std::set<Found>& found,
                          size_t limit, const std::function<void(KeyRecord)>& add) {
  auto next = query.before_id.empty() ? found.begin()
                                      : found.upper_bound({query.before_us, query.before_id});
  size_t added = 0;
  while (next != found.end() && added < limit) {
    std::vector<sql::Param> ids;
    for (; next != found.end() && ids.size() < kTogether; ++next) ids.emplace_back(next->key_id);
    std::map<Found, KeyRecord> records;
    auto read =
        sql.QueryIn(kSelectKeyRecords + " WHERE k.key_id IN", ids, "", [&](const sql::Row& row) {
          KeyRecord record = ReadKeyRecord(row);
          const Found place{record.key.created_at_us(), record.key.key_id()};
          if (Takes(query, record)) records.emplace(place, std::move(record));
        });
    if (!read) return read;
    for (auto& [place, record] : records) {
      if (added++ < limit) add(std::move(record));
    }
  }
  return {};
}

}  // namespace

SqlResult<void> ListKeys(sql::Connection& sql, const KeyQuery& query, int limit,
                         const std::function<void(KeyRecord)>& add) {
  if (!query.prefix.empty()) {
    TRY(auto found, FindByPrefix(sql, query));
    if (found) return ReadFound(sql, query, *found, static_cast<size_t>(limit), add);
  }
  std::string text = kSelectKeyRecords + " WHERE k.workspace_id = $1";
  std::vector<sql::Param> params = {query.workspace};
  const auto next = [&](sql::Param value) {
    params.push_back(value);
    return "$" + std::to_string(params.size());
  };
  if (!query.before_id.empty()) {
    const std::string us = next(query.before_us);
    text += " AND (k.created_at_us, k.key_id) < (" + us + ", " + next(query.before_id) + ")";
  }
  if (query.state != 0) text += " AND k.state = " + next(query.state);
  const std::string lower = LowerAscii(query.prefix);
  if (!query.prefix.empty()) {
    const std::string length = std::to_string(Characters(query.prefix));
    // The driver of SQLite numbers placeholders by their first appearance.
    const std::string any_case = next(lower);
    const std::string exact = next(query.prefix);
    text += " AND (substr(lower(k.name), 1, " + length + ") = " + any_case +
            " OR substr(k.key_id, 1, " + length + ") = " + exact + " OR substr(k.last_four, 1, " +
            length + ") = " + exact + ")";
  }
  // Matches a whole line of the labels. LIKE differs between the two databases.
  const std::string line = "\n" + query.label + "\n";
  static const std::string kBreak = "\n";
  if (!query.label.empty()) {
    const std::string lines = next(kBreak) + " || k.labels || " + next(kBreak);
    text += " AND replace(" + lines + ", " + next(line) + ", '') <> " + lines;
  }
  text += " ORDER BY k.created_at_us DESC, k.key_id DESC LIMIT " + std::to_string(limit);
  return sql.Query(text, params, [&](const sql::Row& row) { add(ReadKeyRecord(row)); });
}

SqlResult<void> ReadExpiringKeys(sql::Connection& connection, const ExpiryQuery& query,
                                 const std::function<void(v1::ExpiringKey)>& add) {
  return connection.Query(
      "SELECT key_id, name, expires_at_us FROM virtual_key WHERE workspace_id = $1"
      " AND state = $2 AND expires_at_us >= $3 AND expires_at_us < $4"
      " ORDER BY expires_at_us, key_id LIMIT $5",
      {query.workspace, static_cast<int>(v1::KEY_STATE_ACTIVE), query.start_us, query.end_us,
       query.limit},
      [&](const sql::Row& row) {
        v1::ExpiringKey key;
        key.set_key_id(row.Text(0));
        key.set_display_name(row.Text(1));
        key.set_expire_us(row.Int(2));
        add(std::move(key));
      });
}

}  // namespace tollgate::auth
