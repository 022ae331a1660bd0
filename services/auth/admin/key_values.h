// Keys of the admin API and keys as they are stored, converted into each other.
#pragma once

#include <string>
#include <vector>

#include "services/auth/admin/calls.h"
#include "services/auth/storage/key_rows.h"
#include "tollgate/admin/v1/keys.pb.h"

namespace tollgate::auth {

// now_us tells whether the key has expired.
admin::v1::Key ToAdmin(const KeyRecord& record, int64_t now_us);
std::string EtagOf(const v1::Key& key);

// The fields that may change, as proto names.
const std::vector<std::string_view>& KeyFields();
// Sets these fields (proto paths of KeyFields) in the record, checked. prefix: of the fields' names
// in failures, for example "key.".
AdminResult<void> SetFields(const admin::v1::Key& from, const std::vector<std::string>& paths,
                            const std::string& prefix, KeyRecord& into);

// What differs between two records, for the audit log; empty: nothing.
std::string DifferenceText(const KeyRecord& before, const KeyRecord& after);
// The settings of a new key.
std::string SettingsText(const KeyRecord& record);

}  // namespace tollgate::auth
