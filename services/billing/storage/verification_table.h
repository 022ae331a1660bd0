// The table of the verifications requested over the admin API (verify/verifications.h).
#pragma once

#include <span>
#include <string_view>

#include "common/sql/sql.h"

namespace tollgate::billing {

inline constexpr std::string_view kVerificationsComponent = "billing verifications";
std::span<const sql::Migration> VerificationMigrations();

}  // namespace tollgate::billing
