// The exporter sends its spans, retries while the collector is unreachable, and stops in time. The
// outcome of each span is counted.
#include "common/tracing/exporter.h"

#include <grpcpp/security/credentials.h>
#include <gtest/gtest.h>
#include <prometheus/counter.h>

#include "common/base/clock.h"
#include "common/tracing/testing/fake_collector.h"

namespace tollgate::tracing {
namespace {

std::vector<Span> Some(size_t count) {
  std::vector<Span> spans(count);
  for (Span& span : spans) {
    span.scope = "tollgate.test";
    span.name = "test";
    span.context = {{1}, NewSpanId(), true};
  }
  return spans;
}

// Growth of the process's counters.
struct Counted {
  ExportMetrics metrics;
  const double exported = metrics.exported.Value(), refused = metrics.refused.Value(),
               stopped = metrics.stopped.Value(), failed_calls = metrics.failed_calls.Value();
  void Expect(double exported_by, double refused_by, double stopped_by) {
    EXPECT_EQ(metrics.exported.Value() - exported, exported_by);
    EXPECT_EQ(metrics.refused.Value() - refused, refused_by);
    EXPECT_EQ(metrics.stopped.Value() - stopped, stopped_by);
  }
};

struct Exported {
  explicit Exported(const std::string& target)
      : exporter(target, grpc::InsecureChannelCredentials(), {"test", "1"}, queue,
                 counted.metrics) {}
  Counted counted;
  SpanQueue queue{1 << 20};
  Exporter exporter;
};

TEST(Exporter, SpansReachTheCollector) {
  FakeCollector collector;
  Exported exported(collector.address());
  ASSERT_TRUE(exported.queue.Put(Some(3)));
  ASSERT_TRUE(collector.WaitForSpans(3));
  exported.exporter.Stop(60'000);
  exported.counted.Expect(3, 0, 0);
  EXPECT_EQ(exported.queue.bytes(), 0u);
}

TEST(Exporter, AFullQueueTravelsInSeveralMessages) {
  FakeCollector collector;
  Exported exported(collector.address());
  ASSERT_TRUE(exported.queue.Put(Some(Exporter::kMostSpans + 1)));
  ASSERT_TRUE(collector.WaitForSpans(Exporter::kMostSpans + 1));
  EXPECT_GE(collector.calls(), 2u);
}

TEST(Exporter, TriesAgainWhileTheCollectorIsUnreachable) {
  FakeCollector collector;
  collector.Answer({{grpc::StatusCode::UNAVAILABLE, "starting"},
                    {grpc::StatusCode::RESOURCE_EXHAUSTED, "busy"}});
  Exported exported(collector.address());
  ASSERT_TRUE(exported.queue.Put(Some(2)));
  ASSERT_TRUE(collector.WaitForSpans(2));
  exported.exporter.Stop(60'000);
  EXPECT_EQ(collector.spans().size(), 2u) << "once";
  exported.counted.Expect(2, 0, 0);
  EXPECT_EQ(exported.counted.metrics.failed_calls.Value() - exported.counted.failed_calls, 2);
}

TEST(Exporter, WhatTheCollectorRefusesIsNotSentAgain) {
  FakeCollector collector;
  collector.Answer({{grpc::StatusCode::INVALID_ARGUMENT, "no"}});
  Exported exported(collector.address());
  ASSERT_TRUE(exported.queue.Put(Some(2)));
  ASSERT_TRUE(collector.WaitForCalls(1));
  collector.RejectSpans(1);
  ASSERT_TRUE(exported.queue.Put(Some(3)));
  ASSERT_TRUE(collector.WaitForSpans(3));
  exported.exporter.Stop(60'000);
  exported.counted.Expect(2, 3, 0);
}

TEST(Exporter, StopSendsWhatIsLeft) {
  FakeCollector collector;
  Exported exported(collector.address());
  ASSERT_TRUE(exported.queue.Put(Some(Exporter::kMostSpans + 5)));
  exported.exporter.Stop(60'000);
  EXPECT_EQ(collector.spans().size(), Exporter::kMostSpans + 5);
}

TEST(Exporter, StopEndsInTimeWhenNobodyAnswers) {
  std::string address;
  {
    FakeCollector gone;
    address = gone.address();
  }
  Exported exported(address);
  ASSERT_TRUE(exported.queue.Put(Some(7)));
  const int64_t begin_us = SystemClock::Get().MonotonicUs();
  exported.exporter.Stop(2'000);
  EXPECT_LT(SystemClock::Get().MonotonicUs() - begin_us, 30'000'000);
  exported.counted.Expect(0, 0, 7);
  EXPECT_FALSE(exported.queue.Put(Some(1))) << "and nothing more is taken";
}

}  // namespace
}  // namespace tollgate::tracing
