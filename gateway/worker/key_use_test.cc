#include "gateway/worker/key_use.h"

#include <gtest/gtest.h>

#include "common/base/time_units.h"
#include "common/runtime/testing/run_coro.h"
#include "gateway/testing/pipeline_fakes.h"

namespace tollgate::gateway {
namespace {

using testing::FakeAuth;

// Runs body with a reporter that talks to a fake of auth.
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
  const Error held{.id = ErrorId::kRateLimited, .reason = Reason::kHeld};
  WithReporter(clock, [&](KeyUseReporter& reporter, FakeAuth& auth) -> Task<void> {
    reporter.Count("key", "192.0.2.1");
    reporter.Count("key", "192.0.2.1");
    reporter.CountRefusal("key", {.id = ErrorId::kBadRequest});
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
    EXPECT_EQ(use.addresses_size(), 0);  // auth did not ask for them
    co_await reporter.Report();
    EXPECT_EQ(auth.use_reports.size(), 2u);  // nothing new
  });
}

TEST(KeyUseReporter, TheEndOfAMinuteIsReportedAfterIt) {
  ManualClock clock(100 * 3600LL * 1'000'000);
  const Error held{.id = ErrorId::kRateLimited, .reason = Reason::kHeld};
  WithReporter(clock, [&](KeyUseReporter& reporter, FakeAuth& auth) -> Task<void> {
    reporter.Count("key", "");
    reporter.CountRefusal("key", {.id = ErrorId::kBadRequest});
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

// Auth would refuse the same report forever, and it would block all later reports.
TEST(KeyUseReporter, AReportThatAuthRefusesIsDroppedAndCounted) {
  ManualClock clock;
  auto& dropped = metrics::Counter("tollgate_gateway_key_uses_dropped_total", "");
  const double before = dropped.Value();
  WithReporter(clock, [&](KeyUseReporter& reporter, FakeAuth& auth) -> Task<void> {
    auth.refuses_reports = true;
    reporter.Count("bad", "");
    co_await reporter.Report();
    auth.refuses_reports = false;
    reporter.Count("good", "");
    co_await reporter.Report();
    EXPECT_EQ(auth.use_reports.size(), 2u);
    EXPECT_EQ(auth.use_reports.at(1).uses_size(), 1);
    EXPECT_EQ(auth.use_reports.at(1).uses(0).key_id(), "good");
  });
  EXPECT_EQ(dropped.Value() - before, 1);
}

// A customer at their rate limit does not abuse the service.
TEST(KeyUseReporter, RateLimitsAndFaultsOfTheServerAreNoRefusals) {
  ManualClock clock;
  WithReporter(clock, [&](KeyUseReporter& reporter, FakeAuth& auth) -> Task<void> {
    for (const ErrorId id :
         {ErrorId::kBadRequest, ErrorId::kInsufficientCredits, ErrorId::kRateLimited,
          ErrorId::kServerError, ErrorId::kServiceUnavailable}) {
      reporter.Count("key", "");
      reporter.CountRefusal("key", {.id = id});
    }
    co_await reporter.Report();
    EXPECT_EQ(auth.use_reports.at(0).uses(0).refusals_in_minute(), 2);
  });
}

// Decision 55. The counts per code and reason start with the quarter of an hour, so a repeated
// report changes nothing.
TEST(KeyUseReporter, EveryErrorIsCountedByItsCodeReasonAndQuarterOfAnHour) {
  ManualClock clock(100 * 3600LL * 1'000'000);
  const Error held{.id = ErrorId::kRateLimited, .reason = Reason::kHeld};
  WithReporter(clock, [&](KeyUseReporter& reporter, FakeAuth& auth) -> Task<void> {
    reporter.CountRefusal("key", held);
    co_await reporter.Report();
    reporter.CountRefusal("key", held);
    reporter.CountRefusal("key", {.id = ErrorId::kRateLimited});
    reporter.CountRefusal("key", {.id = ErrorId::kServiceUnavailable});
    clock.Advance(15 * kMinuteUs);
    reporter.CountRefusal("key", held);
    co_await reporter.Report();
    EXPECT_EQ(auth.use_reports.at(0).uses(0).refusals(0).count(), 1);
    const auto& ended = auth.use_reports.at(1).uses(0);
    EXPECT_EQ(ended.refusals_size(), 3);
    EXPECT_EQ(ended.refusals(0).code(), "rate_limited");
    EXPECT_EQ(ended.refusals(0).reason(), "");
    EXPECT_EQ(ended.refusals(0).count(), 1);
    EXPECT_EQ(ended.refusals(1).code(), "rate_limited");
    EXPECT_EQ(ended.refusals(1).reason(), "held");
    EXPECT_EQ(ended.refusals(1).quarter(), 400);
    EXPECT_EQ(ended.refusals(1).count(), 2);
    EXPECT_EQ(ended.refusals(2).code(), "service_unavailable");
    const auto& running = auth.use_reports.at(1).uses(1);
    EXPECT_EQ(running.refusals_size(), 1);
    EXPECT_EQ(running.refusals(0).quarter(), 401);
    EXPECT_EQ(running.refusals(0).count(), 1);
  });
}

// Uses with many addresses are spread over reports far below the gRPC message limit.
TEST(KeyUseReporter, AReportStaysBelowTheLimitOfAMessage) {
  constexpr int kKeys = 300, kAddresses = 1000;
  ManualClock clock;
  WithReporter(clock, [&](KeyUseReporter& reporter, FakeAuth& auth) -> Task<void> {
    auth.wants_addresses = true;
    reporter.Count("key", "");
    co_await reporter.Report();
    for (int k = 0; k < kKeys; ++k) {
      for (int a = 0; a < kAddresses; ++a) {
        reporter.Count("key" + std::to_string(k), std::to_string(a));
      }
    }
    co_await reporter.Report();
    int uses = 0, addresses = 0;
    for (size_t i = 1; i < auth.use_reports.size(); ++i) {
      EXPECT_LT(auth.use_reports[i].ByteSizeLong(), 1u << 20);
      uses += auth.use_reports[i].uses_size();
      for (const auto& use : auth.use_reports[i].uses()) addresses += use.addresses_size();
    }
    EXPECT_EQ(uses, kKeys);
    EXPECT_EQ(addresses, kKeys * kAddresses);
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
