#include "services/auth/admin/key_lineage.h"

#include <optional>
#include <vector>

#include "common/admin/failure.h"
#include "common/base/clock.h"
#include "common/base/try.h"

namespace tollgate::auth {

using sql::SqlResult;

namespace {

// When the key was or will be of no use any more; 0: never.
int64_t EndOf(const v1::Key& key) {
  return key.state() == v1::KEY_STATE_REVOKED ? key.changed_at_us() : key.expires_at_us();
}

}  // namespace

SqlResult<void> JoinLineage(AuthStore::Change& change, KeyRecord& old, const std::string& made) {
  const int64_t month_us = UtcMonthStartUs(UtcMonth(change.now_us));
  std::vector<KeyRecord> others;
  std::vector<std::string> lineage;
  if (old.key.lineage().empty()) old.key.add_lineage(old.key.key_id());
  for (const std::string& id : old.key.lineage()) {
    if (id == old.key.key_id()) {
      lineage.push_back(id);
      continue;
    }
    TRY(auto found, FindKeyById(change.connection, id));
    const int64_t end_us = found ? EndOf(found->key) : 1;
    if (lineage.empty() || end_us == 0 || end_us >= month_us) lineage.push_back(id);
    if (end_us == 0 || end_us > change.now_us) others.push_back(*std::move(found));
  }
  lineage.push_back(made);
  if (lineage.size() > kMaxLineage) {
    return Fail{
        change
            .Refuse(admin::Precondition("ROTATED_TOO_OFTEN", "a key is rotated at most " +
                                                                 std::to_string(kMaxLineage - 1) +
                                                                 " times a month: make another one")
                        .error)
            .error()};
  }
  old.key.mutable_lineage()->Assign(lineage.begin(), lineage.end());
  for (KeyRecord& other : others) {
    other.key.mutable_lineage()->Assign(lineage.begin(), lineage.end());
    other.key.set_version(++change.version);
    TRY(UpdateKey(change.connection, other));
  }
  return {};
}

}  // namespace tollgate::auth
