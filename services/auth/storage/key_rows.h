// A key with all of its columns, for the admin calls.
#pragma once

#include <map>
#include <string>

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

// Inserts a new key. Its times of creation and change are those in `record.key`.
sql::SqlResult<void> InsertKey(sql::Connection& connection, const KeyRecord& record,
                               const AuthStore::Stored& stored);
// Copies the limits by model from one key to another; a KeyRecord does not contain them.
sql::SqlResult<void> CopyModelLimits(sql::Connection& connection, const std::string& from,
                                     const std::string& to);
// Writes the changeable fields of a key, with its version.
sql::SqlResult<void> UpdateKey(sql::Connection& connection, const KeyRecord& record);

}  // namespace tollgate::auth
