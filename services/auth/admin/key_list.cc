// The list of keys: pages, prefix, state and label.
#include <cstdlib>
#include <vector>

#include "common/admin/filter.h"
#include "common/admin/values.h"
#include "common/base/try.h"
#include "services/auth/admin/key_admin.h"
#include "services/auth/admin/key_policy.h"
#include "services/auth/admin/key_values.h"
#include "services/auth/domain/rules.h"
#include "services/auth/storage/key_query.h"

namespace tollgate::auth {

namespace pb = tollgate::admin::v1;

using sql::SqlResult;

namespace {

constexpr char kKeysParent[] = "workspaces/*";

// The position of a list: "created:key_id" of the last key.
std::string PositionOf(const v1::Key& key) {
  return std::to_string(key.created_at_us()) + ":" + key.key_id();
}

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
    TRY(ListKeys(sql, query, page.size + 1,
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
      TRY(auto found, FindKeyIn(sql, workspace, id));
      if (found) *response.add_keys() = ToAdmin(*found, now_us);
    }
    std::vector<pb::Key*> keys;
    for (pb::Key& key : *response.mutable_keys()) keys.push_back(&key);
    return AddRequests(sql, now_us, keys);
  });
  if (!done) return Fail{admin::FromError(done.error())};
  return response;
}

}  // namespace tollgate::auth
