// Tests which requests are traced: a share chosen by the head, and failed ones.
#include "common/tracing/tracer.h"

#include <gtest/gtest.h>

#include <cstring>

#include "common/base/clock.h"
#include "common/tracing/testing/fake_collector.h"
#include "tollgate/config/v1/config.pb.h"

namespace tollgate::tracing {
namespace {

TraceId IdOf(uint64_t number) {
  TraceId id{};
  std::memcpy(id.data() + 8, &number, sizeof number);
  id[0] = 1;
  return id;
}

// A process has one tracer; each case replaces it.
struct Traced {
  explicit Traced(double ratio, bool trust = false) {
    config::v1::TracingConfig config;
    config.set_otlp_endpoint(collector.address());
    config.set_sample_ratio(ratio);
    config.set_trust_client_sampling(trust);
    EXPECT_TRUE(Start(config, {"test", "1"}).ok());
  }
  ~Traced() { Stop(2'000); }
  FakeCollector collector;
};

int SampledOf(int count) {
  int sampled = 0;
  for (int i = 0; i < count; ++i) sampled += IsSampledByHead(IdOf(NewSpanId()), std::nullopt);
  return sampled;
}

TEST(Tracer, WithoutACollectorNothingIsTraced) {
  ASSERT_TRUE(Start({}, {"test", "1"}).ok());
  EXPECT_FALSE(Enabled());
  EXPECT_FALSE(IsSampledByHead(IdOf(1), true));
  EXPECT_FALSE(IsExported({IdOf(1), 1, true}, Failure::kBroken));
  Record(std::vector<Span>(1));
}

TEST(Tracer, AWrongConfigurationIsAnError) {
  config::v1::TracingConfig config;
  config.set_otlp_endpoint("collector");
  EXPECT_FALSE(Start(config, {}).ok());
  config.set_otlp_endpoint("http://collector:4318");
  EXPECT_FALSE(Start(config, {}).ok());
  config.set_otlp_endpoint("collector:4317");
  config.set_sample_ratio(1.5);
  EXPECT_FALSE(Start(config, {}).ok());
  config.set_sample_ratio(0.5);
  config.set_queue_bytes(1);
  EXPECT_FALSE(Start(config, {}).ok());
  config.set_queue_bytes(1 << 20);
  config.set_authority_file("none.pem");
  EXPECT_FALSE(Start(config, {}).ok()) << "an authority without https";
  config.set_otlp_endpoint("https://collector:4317");
  EXPECT_FALSE(Start(config, {}).ok()) << "a file that is not there";
  config.clear_authority_file();
  config.set_certificate_file("none.pem");
  EXPECT_FALSE(Start(config, {}).ok()) << "a certificate without a key";
  EXPECT_FALSE(Enabled());
}

TEST(Tracer, TheHeadSamplesItsShareOfTraces) {
  {
    Traced traced(0.01);
    EXPECT_NEAR(SampledOf(100'000), 1'000, 200);
    const bool first = IsSampledByHead(IdOf(7), std::nullopt);
    EXPECT_EQ(IsSampledByHead(IdOf(7), std::nullopt), first) << "the same for a whole trace";
  }
  {
    Traced traced(1);
    EXPECT_EQ(SampledOf(1'000), 1'000);
  }
  Traced traced(0);
  EXPECT_EQ(SampledOf(1'000), 0);
}

TEST(Tracer, AClientsFlagCountsOnlyWhenClientsAreTrusted) {
  {
    Traced traced(0);
    EXPECT_FALSE(IsSampledByHead(IdOf(1), true));
  }
  Traced traced(0, /*trust=*/true);
  EXPECT_TRUE(IsSampledByHead(IdOf(1), true));
  EXPECT_FALSE(IsSampledByHead(IdOf(1), false));
  EXPECT_FALSE(IsSampledByHead(IdOf(1), std::nullopt));
}

TEST(Tracer, FailuresAreExportedAndAFloodOfRefusalsLeavesRoomForTheOthers) {
  Traced traced(0);
  const TraceContext unsampled{IdOf(1), 1, false};
  EXPECT_FALSE(IsExported(unsampled, Failure::kNone));
  EXPECT_TRUE(IsExported({IdOf(1), 1, true}, Failure::kNone));
  int refused = 0;
  for (int i = 0; i < 10 * kTracedFailuresPerSecond; ++i) {
    refused += IsExported(unsampled, Failure::kRefused);
  }
  EXPECT_GE(refused, kTracedFailuresPerSecond);
  EXPECT_LE(refused, 3 * kTracedFailuresPerSecond) << "another second may have begun";
  EXPECT_TRUE(IsExported(unsampled, Failure::kBroken));
}

TEST(Tracer, SpansGetUnixTimes) {
  Traced traced(1);
  Span span;
  span.scope = "tollgate.test";
  span.name = "test";
  span.context = {IdOf(1), 1, true};
  const int64_t before_us = SystemClock::Get().WallUs();
  span.start_us = SystemClock::Get().MonotonicUs();
  span.end_us = span.start_us + 5;
  Record({span});
  ASSERT_TRUE(traced.collector.WaitForSpans(1));
  const auto sent = traced.collector.spans()[0];
  EXPECT_NEAR(static_cast<double>(sent.start_time_unix_nano()),
              static_cast<double>(before_us) * 1e3, 1e9);
  EXPECT_EQ(sent.end_time_unix_nano() - sent.start_time_unix_nano(), 5'000u);
}

}  // namespace
}  // namespace tollgate::tracing
