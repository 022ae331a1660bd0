// The list of keys: pages, prefix, state and label.
#include <algorithm>
#include <cstdlib>
#include <map>
#include <optional>
#include <set>

#include "common/admin/filter.h"
#include "common/admin/values.h"
#include "common/base/try.h"
#include "services/auth/admin/key_admin.h"
#include "services/auth/admin/key_policy.h"
#include "services/auth/admin/key_values.h"
#include "services/auth/domain/rules.h"

namespace tollgate::auth {

namespace pb = tollgate::admin::v1;

using sql::SqlResult;

namespace {

constexpr char kKeysParent[] = "workspaces/*";

// The position of a list: "created:key_id" of the last key.
std::string PositionOf(const v1::Key& key) {
  return std::to_string(key.created_at_us()) + ":" + key.key_id();
}

struct KeyQuery {
  std::string workspace;
  std::string prefix;
  int state = 0;
  std::string label;  // "name=value"
  int64_t before_us = INT64_MAX;
  std::string before_id;

  // Applies the conditions of the SQL statement to a key that FindByPrefix has found.
  bool Takes(const KeyRecord& record) const {
    if (state != 0 && record.key.state() != state) return false;
    if (label.empty()) return true;
    const size_t equals = label.find('=');
    const auto found = record.labels.find(label.substr(0, equals));
    return found != record.labels.end() && found->second == label.substr(equals + 1);
  }
};
// With more matches than this, the list is read in order of creation until the page is full.
constexpr int kFewKeys = 20'000;
// Keys that are read in one query.
constexpr size_t kTogether = 200;

AdminResult<KeyQuery> QueryOf(const pb::ListKeysRequest& request, const std::string& workspace,
                              const std::string& position) {
  KeyQuery query{.workspace = workspace, .prefix = request.query()};
  TRY(Checked(CheckRemark(query.prefix, "query"), "query"));
  static constexpr std::string_view kFields[] = {"state", "label"};
  TRY(auto terms, admin::ParseFilter(request.filter(), kFields));
  for (const admin::FilterTerm& term : terms) {
    if (term.field == "label") {
      if (term.value.find('=') == std::string::npos) {
        return admin::InvalidField("filter", "a label is given as \"name=value\"");
      }
      query.label = term.value;
      continue;
    }
    v1::KeyState state;
    if (!v1::KeyState_Parse("KEY_STATE_" + term.value, &state) || state == 0) {
      return admin::InvalidField("filter", "state is ACTIVE, DISABLED or REVOKED");
    }
    query.state = state;
  }
  if (!position.empty()) {
    const size_t colon = position.find(':');
    query.before_us = std::strtoll(position.c_str(), nullptr, 10);
    query.before_id = position.substr(colon + 1);
  }
  return query;
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
          if (query.Takes(record)) records.emplace(place, std::move(record));
        });
    if (!read) return read;
    for (auto& [place, record] : records) {
      if (added++ < limit) add(std::move(record));
    }
  }
  return {};
}

SqlResult<void> ReadPage(sql::Connection& sql, const KeyQuery& query, int limit,
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

}  // namespace

AdminResult<pb::ListKeysResponse> KeyAdmin::List(const Caller& caller,
                                                 const pb::ListKeysRequest& request) {
  TRY(auto parts, admin::NameParts(kKeysParent, request.parent(), "parent"));
  TRY(auto page, admin::PageOfList(request, caller));
  TRY(auto query, QueryOf(request, parts.front(), page.position));
  const int64_t now_us = store_.clock().WallUs();
  pb::ListKeysResponse response;
  const auto done = store_.Read([&](sql::Connection& sql) -> SqlResult<void> {
    response.Clear();
    std::vector<KeyRecord> records;
    TRY(ReadPage(sql, query, page.size + 1,
                 [&](KeyRecord record) { records.push_back(std::move(record)); }));
    admin::FillPage(
        page, records, response,
        [&](const KeyRecord& record) { *response.add_keys() = ToAdmin(record, now_us); },
        [](const KeyRecord& record) { return PositionOf(record.key); });
    std::vector<pb::Key*> keys;
    for (pb::Key& key : *response.mutable_keys()) keys.push_back(&key);
    return AddRequests(sql, now_us, keys);
  });
  if (!done) return Fail{admin::FromError(done.error())};
  return response;
}

AdminResult<pb::ListKeysResponse> KeyAdmin::ListByIds(const std::string& workspace,
                                                      const std::vector<std::string>& ids) {
  const int64_t now_us = store_.clock().WallUs();
  pb::ListKeysResponse response;
  const auto done = store_.Read([&](sql::Connection& sql) -> SqlResult<void> {
    response.Clear();
    for (const std::string& id : ids) {
      TRY(sql.Query(kSelectKeyRecords + " WHERE k.key_id = $1 AND k.workspace_id = $2",
                    {id, workspace}, [&](const sql::Row& row) {
                      *response.add_keys() = ToAdmin(ReadKeyRecord(row), now_us);
                    }));
    }
    std::vector<pb::Key*> keys;
    for (pb::Key& key : *response.mutable_keys()) keys.push_back(&key);
    return AddRequests(sql, now_us, keys);
  });
  if (!done) return Fail{admin::FromError(done.error())};
  return response;
}

}  // namespace tollgate::auth
