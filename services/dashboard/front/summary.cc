#include "services/dashboard/front/summary.h"

#include <absl/time/time.h>

#include <algorithm>
#include <limits>
#include <utility>
#include <vector>

#include "common/admin/requests.h"
#include "common/admin/values.h"
#include "common/money/money.h"

namespace tollgate::dashboard {
namespace {

namespace pb = admin::v1;
using admin::FormatUsd;

constexpr int64_t kQuarterUs = 900LL * 1'000'000;
constexpr int32_t kFewDays = 3;
constexpr int kHighPercent = 80;

pb::SummaryAttention& Attend(pb::AttentionKind kind, pb::Summary& into) {
  pb::SummaryAttention& attention = *into.add_attention();
  attention.set_kind(kind);
  return attention;
}

void FillUsage(const billing::v1::ReadSummaryResponse& ledger, pb::Summary& into) {
  into.set_running_requests(ledger.balance().open_holds());
  pb::SummaryDay& today = *into.mutable_today();
  today.set_requests(ledger.requests());
  today.set_free_requests(ledger.free_requests());
  today.mutable_tokens()->set_prompt_tokens(ledger.usage().prompt_tokens());
  today.mutable_tokens()->set_cached_tokens(ledger.usage().cached_tokens());
  today.mutable_tokens()->set_cache_write_tokens(ledger.usage().cache_write_tokens());
  today.mutable_tokens()->set_completion_tokens(ledger.usage().completion_tokens());
  today.mutable_tokens()->set_reasoning_tokens(ledger.usage().reasoning_tokens());
  today.set_cost_usd(FormatUsd(ledger.charged_nano_usd()));
  pb::SummaryRecent& recent = *into.mutable_recent();
  recent.set_requests(ledger.recent_requests());
  if (ledger.recent_requests() > 0) {
    *recent.mutable_start_time() = admin::ToTimestamp(ledger.recent_start_us());
  }
  *recent.mutable_outcomes() = ledger.outcomes();
  if (ledger.has_first_token_p50_us()) recent.set_first_token_p50_us(ledger.first_token_p50_us());
  if (ledger.has_first_token_p95_us()) recent.set_first_token_p95_us(ledger.first_token_p95_us());
}

// Percentage of the cap that is spent or held; 100 for a cap of 0.
int PercentOfCap(const billing::v1::Balance& balance) {
  const int64_t used = balance.month_spent_nano_usd() + balance.month_held_nano_usd();
  const int64_t cap = balance.cap_nano_usd();
  if (cap <= 0) return 100;
  return static_cast<int>(std::min<Int128>(Int128{used} * 100 / cap, 1000));
}

void FillMoney(const billing::v1::ReadSummaryResponse& ledger, pb::Summary& into) {
  const billing::v1::Balance& balance = ledger.balance();
  const int64_t available = balance.available_nano_usd();
  into.set_available_usd(FormatUsd(available));
  into.set_week_spent_usd(FormatUsd(ledger.week_charged_nano_usd()));
  const auto days = DaysLeft(available, ledger.week_charged_nano_usd());
  if (days) into.set_days_left(*days);
  if (!ledger.frozen().empty()) {
    Attend(pb::ATTENTION_KIND_FROZEN, into).set_detail(ledger.frozen());
  }
  const bool low = ledger.low_balance_nano_usd() > 0 && available < ledger.low_balance_nano_usd();
  if (low || (days && *days < kFewDays)) Attend(pb::ATTENTION_KIND_LOW_BALANCE, into);
  if (!ledger.auto_reload().empty()) {
    pb::SummaryAttention& reload = Attend(pb::ATTENTION_KIND_AUTO_RELOAD, into);
    reload.set_detail(ledger.auto_reload() == "PAUSED" ? ledger.pause_reason() : "declined");
  }
  if (balance.has_cap_nano_usd()) {
    if (const int percent = PercentOfCap(balance); percent >= kHighPercent) {
      Attend(pb::ATTENTION_KIND_CAP, into).set_percent(percent);
    }
  }
}

void FillRefusals(const auth::v1::ReadWorkspaceFactsResponse& facts, int64_t day_start_us,
                  pb::Summary& into) {
  using Why = std::pair<std::string, std::string>;  // code and reason
  std::map<Why, int64_t> counts;
  for (const auth::v1::RefusalSum& sum : facts.refusals()) {
    if (sum.quarter() < day_start_us / kQuarterUs) continue;
    counts[{sum.code(), sum.reason()}] += sum.count();
  }
  std::vector<std::pair<int64_t, Why>> order;
  for (const auto& [why, count] : counts) order.emplace_back(-count, why);
  std::ranges::sort(order);
  for (const auto& [count, why] : order) {
    pb::SummaryRefusal& refusal = *into.add_refusals();
    refusal.set_code(why.first);
    refusal.set_reason(why.second);
    refusal.set_count(-count);
  }
}

void FillKeys(const std::string& workspace, const auth::v1::ReadWorkspaceFactsResponse& facts,
              pb::Summary& into) {
  for (const auth::v1::ExpiringKey& key : facts.expiring_keys()) {
    pb::SummaryAttention& attention = Attend(pb::ATTENTION_KIND_KEY_EXPIRES, into);
    attention.set_subject("workspaces/" + workspace + "/keys/" + key.key_id());
    attention.set_display_name(key.display_name());
    *attention.mutable_time() = admin::ToTimestamp(key.expire_us());
  }
}

bool TakesRequests(const pb::Engine& engine) {
  return engine.state() == pb::ENGINE_STATE_UP || engine.state() == pb::ENGINE_STATE_PARTLY_UP;
}

// Does not name engines: names are for operators.
void FillEngines(const billing::v1::ReadSummaryResponse& ledger,
                 const std::map<std::string, pb::Engine>& engines, pb::Summary& into) {
  for (const std::string& model : ledger.week_models()) {
    int all = 0, down = 0;
    for (const auto& [id, engine] : engines) {
      if (std::ranges::find(engine.models(), model) == engine.models().end()) continue;
      ++all;
      down += TakesRequests(engine) ? 0 : 1;
    }
    if (down == 0) continue;
    pb::SummaryAttention& attention = Attend(pb::ATTENTION_KIND_ENGINES_DOWN, into);
    attention.set_subject("models/" + model);
    attention.set_down(down);
    attention.set_engines(all);
  }
}

}  // namespace

int64_t DayStartUs(int64_t now_us, const std::string& time_zone) {
  absl::TimeZone zone = absl::UTCTimeZone();
  if (!time_zone.empty() && time_zone != "UTC" && !absl::LoadTimeZone(time_zone, &zone)) {
    zone = absl::UTCTimeZone();
  }
  const absl::CivilDay day = absl::ToCivilDay(absl::FromUnixMicros(now_us), zone);
  return absl::ToUnixMicros(absl::FromCivil(day, zone));
}

std::optional<int32_t> DaysLeft(int64_t available_nano_usd, int64_t week_nano_usd) {
  if (week_nano_usd <= 0) return std::nullopt;
  if (available_nano_usd <= 0) return 0;
  return static_cast<int32_t>(std::min<Int128>(Int128{available_nano_usd} * 7 / week_nano_usd,
                                               std::numeric_limits<int32_t>::max()));
}

pb::Summary MakeSummary(const std::string& workspace, const std::string& time_zone,
                        int64_t day_start_us, const SummaryParts& parts) {
  pb::Summary summary;
  summary.set_name("workspaces/" + workspace + "/summary");
  summary.set_time_zone(time_zone);
  *summary.mutable_start_time() = admin::ToTimestamp(day_start_us);
  if (parts.ledger != nullptr) {
    FillUsage(*parts.ledger, summary);
    FillMoney(*parts.ledger, summary);
  } else {
    summary.add_missing("billing");
  }
  if (parts.facts != nullptr) {
    FillRefusals(*parts.facts, day_start_us, summary);
    FillKeys(workspace, *parts.facts, summary);
  } else {
    summary.add_missing("auth");
  }
  if (parts.engines == nullptr) {
    summary.add_missing("engines");
  } else if (parts.ledger != nullptr) {
    FillEngines(*parts.ledger, *parts.engines, summary);
  }
  return summary;
}

}  // namespace tollgate::dashboard
