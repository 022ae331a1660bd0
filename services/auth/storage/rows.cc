#include "services/auth/storage/rows.h"

#include "services/auth/domain/limit_set.h"

namespace tollgate::auth {
namespace {

void ReadLimits(const sql::Row& row, int column, v1::Limits& limits) {
  limits.set_requests_per_minute(row.Int(column));
  limits.set_tokens_per_minute(row.Int(column + 1));
  limits.set_concurrent_requests(row.Int(column + 2));
}

}  // namespace

v1::Key ReadKey(const sql::Row& row) {
  v1::Key key;
  key.set_key_id(row.Text(0));
  key.set_workspace_id(row.Text(1));
  key.set_name(row.Text(2));
  key.set_state(static_cast<v1::KeyState>(row.Int(3)));
  key.set_expires_at_us(row.Int(4));
  SplitLines(row.Bytes(5),
             [&](std::string_view line) { key.add_allowed_models(std::string(line)); });
  ReadLimits(row, 6, *key.mutable_key_limits());
  ReadLimits(row, 9, *key.mutable_workspace_limits());
  key.set_version(row.Int(12));
  key.set_created_at_us(row.Int(13));
  key.set_last_four(row.Text(14));
  if (const auto quota = row.OptionalInt(16)) key.set_monthly_quota_nano_usd(*quota);
  SplitLines(row.Bytes(17),
             [&](std::string_view line) { key.add_allowed_addresses(std::string(line)); });
  key.set_changed_at_us(row.Int(18));
  SplitLines(row.Bytes(kLineageColumn),
             [&](std::string_view line) { key.add_lineage(std::string(line)); });
  return key;
}

v1::Key ReadKeyWithPlan(const sql::Row& row) {
  v1::Key key = ReadKey(row);
  const LimitSet of_key = ParseLimits(row.Bytes(kLimitColumns));
  const LimitSet of_workspace = ParseLimits(row.Bytes(kLimitColumns + 1));
  const LimitSet of_plan = ParseLimits(row.Bytes(kLimitColumns + 2));
  const bool shadow = row.Int(kLimitColumns + 3) != 0;
  const auto set = [&](const Effective& from, v1::Limits& limits) {
    limits.set_requests_per_minute(from.limits.requests_per_minute);
    limits.set_tokens_per_minute(from.limits.tokens_per_minute);
    limits.set_concurrent_requests(from.limits.concurrent_requests);
    if (from.of_plan && shadow) limits.set_shadow(true);
  };
  const auto values = [](const v1::Limits& limits) -> LimitValues {
    return {limits.requests_per_minute(), limits.tokens_per_minute(), limits.concurrent_requests()};
  };
  set(Choose(values(key.key_limits()), of_plan.key), *key.mutable_key_limits());
  set(Choose(values(key.workspace_limits()), of_plan.workspace), *key.mutable_workspace_limits());
  for (const auto& [model, from] : Choose(of_key.key_models, of_plan.key_models)) {
    set(from, (*key.mutable_key_model_limits())[model]);
  }
  for (const auto& [model, from] :
       Choose(of_workspace.workspace_models, of_plan.workspace_models)) {
    set(from, (*key.mutable_workspace_model_limits())[model]);
  }
  return key;
}

uint64_t ReadFilterTag(const sql::Row& row, std::string_view pepper_id) {
  return ReadPepperId(row) == pepper_id ? static_cast<uint64_t>(row.Int(15)) : 0;
}

std::string_view ReadPepperId(const sql::Row& row) { return row.Bytes(19); }

void SplitLines(std::string_view text, const std::function<void(std::string_view)>& line) {
  while (!text.empty()) {
    const size_t end = std::min(text.find('\n'), text.size());
    line(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

std::string JoinLines(const google::protobuf::RepeatedPtrField<std::string>& lines) {
  std::string text;
  for (const std::string& line : lines) {
    if (!text.empty()) text += '\n';
    text += line;
  }
  return text;
}

}  // namespace tollgate::auth
