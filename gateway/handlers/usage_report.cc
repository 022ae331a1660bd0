#include "gateway/handlers/usage_report.h"

#include <string_view>

#include "common/base/utc_text.h"
#include "common/json/writer.h"
#include "common/money/money.h"

namespace tollgate::gateway {

namespace {

namespace bv = billing::v1;
using ratelimit::v1::LimitStatus;
using ratelimit::v1::PeekResponse;

void AddCounts(json::Writer& out, const bv::UsageBucket& bucket) {
  out.Number("requests", bucket.requests())
      .Number("input_tokens", bucket.usage().prompt_tokens())
      .Number("cached_tokens", bucket.usage().cached_tokens())
      .Number("output_tokens", bucket.usage().completion_tokens())
      .Number("reasoning_tokens", bucket.usage().reasoning_tokens())
      .Text("cost", NanoToDecimalUsd(bucket.charged_nano_usd()));
}

std::string KeyObject(const auth::v1::Key& key) {
  return json::Writer()
      .Text("id", key.key_id())
      .Raw("name", key.name().empty() ? "null" : json::Quoted(key.name()))
      .Done();
}

std::string PeriodObject(const UsagePeriod& period) {
  return json::Writer()
      .Text("start", UtcText(period.start_us))
      .Text("end", UtcText(period.end_us))
      .Done();
}

std::string TotalsObject(const bv::UsageBucket& total) {
  json::Writer out;
  AddCounts(out, total);
  return out.Done();
}

std::string BucketObject(const bv::UsageBucket& bucket) {
  json::Writer out;
  out.Text("date", UtcDateText(bucket.day())).Text("model", bucket.model());
  AddCounts(out, bucket);
  return out.Done();
}

std::string BalanceObject(const bv::Balance& balance) {
  return json::Writer()
      .Text("total", NanoToDecimalUsd(balance.paid_nano_usd() + balance.granted_nano_usd()))
      .Text("held", NanoToDecimalUsd(balance.held_nano_usd()))
      .Text("available", NanoToDecimalUsd(balance.available_nano_usd()))
      .Done();
}

std::string MonthObject(const bv::Balance& balance) {
  return json::Writer()
      .Text("month", UtcMonthText(balance.month()))
      .Text("spent", NanoToDecimalUsd(balance.month_spent_nano_usd()))
      .Text("held", NanoToDecimalUsd(balance.month_held_nano_usd()))
      .Raw("cap", balance.has_cap_nano_usd()
                      ? json::Quoted(NanoToDecimalUsd(balance.cap_nano_usd()))
                      : "null")
      .Done();
}

// remaining: null if unknown.
std::string LimitObject(int64_t limit, const LimitStatus* remaining) {
  if (limit <= 0) return "null";
  json::Writer out;
  out.Number("limit", limit);
  if (remaining == nullptr) return out.Null("remaining").Done();
  return out.Number("remaining", remaining->remaining()).Done();
}

std::string LimitsObject(const auth::v1::Limits& limits,
                         const std::optional<PeekResponse>& remaining) {
  return json::Writer()
      .Raw("requests_per_minute",
           LimitObject(limits.requests_per_minute(), remaining ? &remaining->requests() : nullptr))
      .Raw("tokens_per_minute",
           LimitObject(limits.tokens_per_minute(), remaining ? &remaining->tokens() : nullptr))
      .Raw("concurrent_requests", LimitObject(limits.concurrent_requests(),
                                              remaining ? &remaining->concurrency() : nullptr))
      .Done();
}

}  // namespace

std::string RenderUsageReport(const auth::v1::Key& key, const UsageReport& report) {
  return json::Writer()
      .Text("object", "usage_report")
      .Raw("key", KeyObject(key))
      .Raw("period", PeriodObject(report.period))
      .Text("currency", "USD")
      .Raw("totals", TotalsObject(report.usage.total()))
      .Raw("buckets", json::WriteArray(report.usage.buckets(), BucketObject))
      .Raw("balance", BalanceObject(report.usage.balance()))
      .Raw("month", MonthObject(report.usage.balance()))
      .Raw("limits",
           json::Writer()
               .Raw("key", LimitsObject(key.key_limits(), report.key_remaining))
               .Raw("workspace", LimitsObject(key.workspace_limits(), report.workspace_remaining))
               .Done())
      .Done();
}

}  // namespace tollgate::gateway
