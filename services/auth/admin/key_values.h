// Converts keys between the admin API and the store.
#pragma once

#include <string>
#include <vector>

#include "services/auth/admin/calls.h"
#include "services/auth/storage/key_rows.h"
#include "tollgate/admin/v1/keys.pb.h"

namespace tollgate::auth {

// now_us decides whether the key has expired.
admin::v1::Key ToAdmin(const KeyRecord& record, int64_t now_us);
std::string EtagOf(const v1::Key& key);

// Proto names of the fields that an update may change.
const std::vector<std::string_view>& KeyFields();
// Validates these fields (proto paths of KeyFields) and sets them in the record. prefix: prepended
// to field names in failures, for example "key.".
AdminResult<void> SetFields(const admin::v1::Key& from, const std::vector<std::string>& paths,
                            const std::string& prefix, KeyRecord& into);

// Lists the differences between two records for the audit log. Empty if there are none.
std::string DifferenceText(const KeyRecord& before, const KeyRecord& after);
// Lists the settings of a new key for the audit log.
std::string SettingsText(const KeyRecord& record);

}  // namespace tollgate::auth
