#include "gateway/worker/key_use.h"

#include <gtest/gtest.h>

#include "common/runtime/testing/run_coro.h"
#include "gateway/testing/pipeline_fakes.h"

namespace tollgate::gateway {
namespace {

using testing::FakeAuth;

constexpr int64_t kMinuteUs = 60'000'000;

// Runs body with a reporter whose auth is a fake.
template <typename Body>
void WithReporter(ManualClock& clock, Body body) {
  ::tollgate::testing::RunTask([&](Loop& loop) -> Task<void> {
    FakeAuth auth(loop);
    auto reporter = std::make_shared<KeyUseReporter>(loop, clock, auth);
    co_await body(*reporter, auth);
    reporter->Stop();
  });
}

TEST(KeyUseReporter, CountsAreThoseOfTheHourAndTheMinute) {
  ManualClock clock(100 * 3600LL * 1'000'000);
  WithReporter(clock, [&](KeyUseReporter& reporter, FakeAuth& auth) -> Task<void> {
    reporter.Count("key", "192.0.2.1");
    reporter.Count("key", "192.0.2.1");
    reporter.CountRefusal("key");
    co_await reporter.Report();
    clock.Advance(1000);
    reporter.Count("key", "192.0.2.1");
    co_await reporter.Report();
    EXPECT_EQ(auth.use_reports.size(), 2u);
    const auth::v1::KeyUse& use = auth.use_reports[1].uses(0);
    EXPECT_EQ(use.requests_in_hour(), 3);
    EXPECT_EQ(use.refusals_in_minute(), 1);
    EXPECT_EQ(use.hour(), 100);
    EXPECT_EQ(use.last_used_us(), clock.WallUs());
    EXPECT_EQ(use.addresses_size(), 0);  // not wanted
    co_await reporter.Report();
    EXPECT_EQ(auth.use_reports.size(), 2u);  // nothing new
  });
}

TEST(KeyUseReporter, TheEndOfAMinuteIsReportedAfterIt) {
  ManualClock clock(100 * 3600LL * 1'000'000);
  WithReporter(clock, [&](KeyUseReporter& reporter, FakeAuth& auth) -> Task<void> {
    reporter.Count("key", "");
    reporter.CountRefusal("key");
    clock.Advance(kMinuteUs);
    reporter.Count("key", "");
    co_await reporter.Report();
    EXPECT_EQ(auth.use_reports.at(0).uses_size(), 2);
    EXPECT_EQ(auth.use_reports.at(0).uses(0).refusals_in_minute(), 1);
    EXPECT_EQ(auth.use_reports.at(0).uses(1).refusals_in_minute(), 0);
    EXPECT_EQ(auth.use_reports.at(0).uses(1).requests_in_hour(), 2);
  });
}

TEST(KeyUseReporter, AReportThatFailedIsSentAgain) {
  ManualClock clock;
  WithReporter(clock, [&](KeyUseReporter& reporter, FakeAuth& auth) -> Task<void> {
    auth.down = true;
    reporter.Count("key", "");
    co_await reporter.Report();
    auth.down = false;
    co_await reporter.Report();
    EXPECT_EQ(auth.use_reports.size(), 2u);
    EXPECT_EQ(auth.use_reports.at(1).uses(0).key_id(), "key");
  });
}

TEST(KeyUseReporter, AddressesAreReportedOnceAuthWantsThem) {
  ManualClock clock;
  WithReporter(clock, [&](KeyUseReporter& reporter, FakeAuth& auth) -> Task<void> {
    auth.wants_addresses = true;
    reporter.Count("key", "192.0.2.1");
    co_await reporter.Report();
    reporter.Count("key", "192.0.2.1");
    reporter.Count("key", "192.0.2.1");
    reporter.Count("key", "192.0.2.2");
    co_await reporter.Report();
    EXPECT_EQ(auth.use_reports.at(0).uses(0).addresses_size(), 0);
    EXPECT_EQ(auth.use_reports.at(1).uses(0).addresses_size(), 2);
  });
}

}  // namespace
}  // namespace tollgate::gateway
