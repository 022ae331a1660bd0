// Converts rows of the auth tables to protos. Each Read* expects the columns of its kSelect*.
#pragma once

#include <functional>
#include <string>
#include <string_view>

#include "common/sql/sql.h"
#include "services/auth/storage/audit_log.h"
#include "tollgate/auth/v1/auth.pb.h"

namespace tollgate::auth {

inline constexpr std::string_view kSelectKeys =
    "SELECT k.key_id, k.workspace_id, k.name, k.state, k.expires_at_us, k.allowed_models, "
    "k.requests_per_minute, k.tokens_per_minute, k.concurrent_requests, w.requests_per_minute, "
    "w.tokens_per_minute, w.concurrent_requests, k.version, k.created_at_us, k.last_four, "
    "k.filter_tag, k.monthly_quota, k.allowed_addresses, k.updated_at_us, k.pepper_id, "
    "k.model_limits, w.model_limits, p.limits, p.shadow, k.lineage "
    "FROM virtual_key k JOIN workspace w ON w.workspace_id = k.workspace_id "
    "LEFT JOIN plan p ON p.plan_id = w.plan";
inline constexpr int kLimitColumns = 20;  // the first column of the limits by model and of the plan
inline constexpr int kLineageColumn = 24;
inline constexpr int kKeyColumns = 25;
// With the key's and its workspace's own limits.
v1::Key ReadKey(const sql::Row& row);
// For gateways: with the limits that apply, including those of the plan and by model.
v1::Key ReadKeyWithPlan(const sql::Row& row);
// 0 if the key has no tag under this pepper.
uint64_t ReadFilterTag(const sql::Row& row, std::string_view pepper_id);
std::string_view ReadPepperId(const sql::Row& row);

// Lists are stored in a column with one entry per line. Entries have no line breaks
// (domain/rules.h).
std::string JoinLines(const google::protobuf::RepeatedPtrField<std::string>& lines);

void SplitLines(std::string_view text, const std::function<void(std::string_view)>& line);

}  // namespace tollgate::auth
