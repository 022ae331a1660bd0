#include "gateway/handlers/usage_report.h"

#include <gtest/gtest.h>

#include "common/base/utc_text.h"
#include "common/json/json.h"

namespace tollgate::gateway {
namespace {

void Fill(billing::v1::UsageBucket& bucket, int64_t requests, int64_t prompt, int64_t charged) {
  bucket.set_requests(requests);
  bucket.mutable_usage()->set_prompt_tokens(prompt);
  bucket.mutable_usage()->set_cached_tokens(2);
  bucket.mutable_usage()->set_cache_write_tokens(1);
  bucket.mutable_usage()->set_completion_tokens(30);
  bucket.mutable_usage()->set_reasoning_tokens(4);
  bucket.set_charged_nano_usd(charged);
}

UsageReport Example() {
  UsageReport report;
  report.period = {*ParseUtc("2024-02-28T12:00:00.5Z"), *ParseUtc("2024-03-01")};
  Fill(*report.usage.mutable_total(), 3, 99, 1'000'000'001);
  billing::v1::UsageBucket& bucket = *report.usage.add_buckets();
  Fill(bucket, 2, 90, 1'000'000'000);
  bucket.set_model("a/\"b\"");
  bucket.set_day(19782);  // 2024-02-29
  billing::v1::Balance& balance = *report.usage.mutable_balance();
  balance.set_paid_nano_usd(5'000'000'000);
  balance.set_granted_nano_usd(250'000'000);
  balance.set_held_nano_usd(7);
  balance.set_available_nano_usd(5'249'999'993);
  balance.set_month(202403);
  balance.set_month_spent_nano_usd(1);
  balance.set_month_held_nano_usd(7);
  return report;
}

TEST(UsageReport, ExactBytes) {
  auth::v1::Key key;
  key.set_key_id("abc");
  key.set_name("build \"bot\"");
  UsageReport report = Example();
  EXPECT_EQ(RenderUsageReport(key, report),
            R"({"object":"usage_report","key":{"id":"abc","name":"build \"bot\""},)"
            R"("period":{"start":"2024-02-28T12:00:00.500000Z","end":"2024-03-01T00:00:00Z"},)"
            R"("currency":"USD","totals":{"requests":3,"input_tokens":99,"cached_tokens":2,)"
            R"("output_tokens":30,"reasoning_tokens":4,"cost":"1.000000001"},)"
            R"("buckets":[{"date":"2024-02-29","model":"a/\"b\"","requests":2,"input_tokens":90,)"
            R"("cached_tokens":2,"output_tokens":30,"reasoning_tokens":4,"cost":"1"}],)"
            R"("balance":{"total":"5.25","held":"0.000000007","available":"5.249999993"},)"
            R"("month":{"month":"2024-03","spent":"0.000000001","held":"0.000000007","cap":null},)"
            R"("limits":{"key":{"requests_per_minute":null,"tokens_per_minute":null,)"
            R"("concurrent_requests":null},"workspace":{"requests_per_minute":null,)"
            R"("tokens_per_minute":null,"concurrent_requests":null}}})");
}

TEST(UsageReport, WithoutUsage) {
  const std::string body = RenderUsageReport({}, {});
  const auto document = json::Document::ParseView(body);
  ASSERT_TRUE(document.ok()) << body;
  EXPECT_EQ(document->root().Find("buckets").raw(), "[]");
  EXPECT_EQ(document->root().Find("totals").Find("cost").raw(), "\"0\"");
  EXPECT_EQ(document->root().Find("key").Find("name").raw(), "null");
}

TEST(UsageReport, LimitsAndTheirRemainders) {
  auth::v1::Key key;
  key.mutable_key_limits()->set_requests_per_minute(100);
  key.mutable_key_limits()->set_concurrent_requests(5);
  key.mutable_workspace_limits()->set_tokens_per_minute(9'000);
  UsageReport report = Example();
  report.usage.mutable_balance()->set_cap_nano_usd(12'500'000'000);
  report.key_remaining.emplace().mutable_requests()->set_remaining(97);
  report.key_remaining->mutable_concurrency()->set_remaining(0);
  const std::string body = RenderUsageReport(key, report);
  EXPECT_NE(
      body.find(R"("key":{"requests_per_minute":{"limit":100,"remaining":97},)"
                R"("tokens_per_minute":null,"concurrent_requests":{"limit":5,"remaining":0}})"),
      std::string::npos)
      << body;
  // The remaining limits of the workspace are unknown.
  EXPECT_NE(body.find(R"("workspace":{"requests_per_minute":null,)"
                      R"("tokens_per_minute":{"limit":9000,"remaining":null},)"
                      R"("concurrent_requests":null})"),
            std::string::npos)
      << body;
  EXPECT_NE(body.find(R"("cap":"12.5")"), std::string::npos) << body;
}

}  // namespace
}  // namespace tollgate::gateway
