// A key with all of its columns, for the admin calls.
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "common/sql/sql.h"
#include "services/auth/storage/auth_store.h"

namespace tollgate::auth {

struct KeyRecord {
  v1::Key key;
  std::map<std::string, std::string> labels;
  // The person as "user:ID", or another actor.
  std::string created_by;
  std::string rotated_from;  // key id
  std::string state_reason;
  int64_t last_used_us = 0;  // 0: never
};

// "SELECT … FROM virtual_key k JOIN workspace w …", to be followed by WHERE.
extern const std::string kSelectKeyRecords;
KeyRecord ReadKeyRecord(const sql::Row& row);

using MaybeKey = std::optional<KeyRecord>;
sql::SqlResult<MaybeKey> FindKeyById(sql::Connection& connection, const std::string& key_id);
sql::SqlResult<MaybeKey> FindKeyIn(sql::Connection& connection, const std::string& workspace,
                                   const std::string& key_id);
// lookup: AuthStore::LookupsOf.
sql::SqlResult<MaybeKey> FindKeyByLookup(sql::Connection& connection, const std::string& lookup);
// The keys of a workspace, ordered by id: WriteKeyUse locks rows in the same order, so the two do
// not deadlock.
sql::SqlResult<std::vector<KeyRecord>> KeysNotRevoked(sql::Connection& connection,
                                                      const std::string& workspace);
// Returns the keys that have this label, "name=value".
sql::SqlResult<std::vector<std::string>> KeysWithLabel(sql::Connection& connection,
                                                       std::span<const sql::Param> key_ids,
                                                       std::string_view label);

// Inserts a new key. Its times of creation and change are those in `record.key`.
sql::SqlResult<void> InsertKey(sql::Connection& connection, const KeyRecord& record,
                               const AuthStore::Stored& stored);
// Copies the limits by model from one key to another; a KeyRecord does not contain them.
sql::SqlResult<void> CopyModelLimits(sql::Connection& connection, const std::string& from,
                                     const std::string& to);
// Writes the changeable fields of a key, with its version.
sql::SqlResult<void> UpdateKey(sql::Connection& connection, const KeyRecord& record);

}  // namespace tollgate::auth
