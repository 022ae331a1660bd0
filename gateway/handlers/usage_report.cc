#include "gateway/handlers/usage_report.h"

#include <cstdio>
#include <string_view>

#include "common/base/utc_text.h"
#include "common/json/json.h"
#include "common/money/money.h"
#include "gateway/surfaces/shared/fields.h"

namespace tollgate::gateway {

namespace {

namespace bv = billing::v1;
using ratelimit::v1::LimitStatus;
using ratelimit::v1::PeekResponse;

std::string Object(MemberWriter& members) { return "{" + members.Take() + "}"; }

std::string Usd(int64_t nano_usd) { return json::Quoted(NanoToDecimalUsd(nano_usd)); }

void AddCounts(MemberWriter& out, const bv::UsageBucket& bucket) {
  const auto count = [&](std::string_view name, int64_t value) {
    out.Add(name, std::to_string(value));
  };
  count("requests", bucket.requests());
  count("input_tokens", bucket.usage().prompt_tokens());
  count("cached_tokens", bucket.usage().cached_tokens());
  count("output_tokens", bucket.usage().completion_tokens());
  count("reasoning_tokens", bucket.usage().reasoning_tokens());
  out.Add("cost", Usd(bucket.charged_nano_usd()));
}

std::string KeyObject(const auth::v1::Key& key) {
  MemberWriter out({});
  out.Add("id", json::Quoted(key.key_id()));
  out.Add("name", key.name().empty() ? "null" : json::Quoted(key.name()));
  return Object(out);
}

std::string PeriodObject(const UsagePeriod& period) {
  MemberWriter out({});
  out.Add("start", json::Quoted(UtcText(period.start_us)));
  out.Add("end", json::Quoted(UtcText(period.end_us)));
  return Object(out);
}

std::string Totals(const bv::UsageBucket& total) {
  MemberWriter out({});
  AddCounts(out, total);
  return Object(out);
}

std::string Buckets(const bv::GetUsageResponse& usage) {
  std::string list = "[";
  for (const bv::UsageBucket& bucket : usage.buckets()) {
    if (list.size() > 1) list += ",";
    MemberWriter out({});
    out.Add("date", json::Quoted(UtcDateText(bucket.day())));
    out.Add("model", json::Quoted(bucket.model()));
    AddCounts(out, bucket);
    list += Object(out);
  }
  return list + "]";
}

std::string BalanceObject(const bv::Balance& balance) {
  MemberWriter out({});
  out.Add("total", Usd(balance.paid_nano_usd() + balance.granted_nano_usd()));
  out.Add("held", Usd(balance.held_nano_usd()));
  out.Add("available", Usd(balance.available_nano_usd()));
  return Object(out);
}

std::string MonthObject(const bv::Balance& balance) {
  char month[16];
  std::snprintf(month, sizeof(month), "\"%04d-%02d\"", balance.month() / 100,
                balance.month() % 100);
  MemberWriter out({});
  out.Add("month", month);
  out.Add("spent", Usd(balance.month_spent_nano_usd()));
  out.Add("held", Usd(balance.month_held_nano_usd()));
  out.Add("cap", balance.has_cap_nano_usd() ? Usd(balance.cap_nano_usd()) : "null");
  return Object(out);
}

// left: null when nobody could say.
std::string LimitObject(int64_t limit, const LimitStatus* left) {
  if (limit <= 0) return "null";
  MemberWriter out({});
  out.Add("limit", std::to_string(limit));
  out.Add("remaining", left != nullptr ? std::to_string(left->remaining()) : "null");
  return Object(out);
}

std::string LimitsObject(const auth::v1::Limits& limits, const std::optional<PeekResponse>& left) {
  MemberWriter out({});
  out.Add("requests_per_minute",
          LimitObject(limits.requests_per_minute(), left ? &left->requests() : nullptr));
  out.Add("tokens_per_minute",
          LimitObject(limits.tokens_per_minute(), left ? &left->tokens() : nullptr));
  out.Add("concurrent_requests",
          LimitObject(limits.concurrent_requests(), left ? &left->concurrency() : nullptr));
  return Object(out);
}

}  // namespace

std::string RenderUsageReport(const auth::v1::Key& key, const UsageReport& report) {
  MemberWriter limits({});
  limits.Add("key", LimitsObject(key.key_limits(), report.key_left));
  limits.Add("workspace", LimitsObject(key.workspace_limits(), report.workspace_left));
  MemberWriter out({});
  out.Add("object", "\"usage_report\"");
  out.Add("key", KeyObject(key));
  out.Add("period", PeriodObject(report.period));
  out.Add("currency", "\"USD\"");
  out.Add("totals", Totals(report.usage.total()));
  out.Add("buckets", Buckets(report.usage));
  out.Add("balance", BalanceObject(report.usage.balance()));
  out.Add("month", MonthObject(report.usage.balance()));
  out.Add("limits", Object(limits));
  return Object(out);
}

}  // namespace tollgate::gateway
