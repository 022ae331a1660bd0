// The router's part of a trace: the run below the gateway's span, each engine and the settlement
// below the run.
#include "services/inference_router/run/run_trace.h"

#include <gtest/gtest.h>

#include <map>

#include "common/base/clock.h"
#include "common/tracing/testing/fake_collector.h"
#include "common/tracing/tracer.h"
#include "tollgate/config/v1/config.pb.h"

namespace tollgate::inference_router {
namespace {

constexpr char kSampled[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
constexpr char kNotSampled[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";
constexpr char kRun[] = "tollgate.inference.v1.InferenceService/Generate";

inference::v1::GenerateRequest RequestWith(const std::string& traceparent) {
  inference::v1::GenerateRequest request;
  request.set_kind(inference::v1::REQUEST_KIND_CHAT);
  request.set_traceparent(traceparent);
  return request;
}

std::string TextOf(const otlp::v1::Span& span, const std::string& attribute) {
  for (const auto& one : span.attributes()) {
    if (one.key() == attribute) return one.value().string_value();
  }
  return "";
}

class RunTraceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    config::v1::TracingConfig config;
    config.set_otlp_endpoint(collector_.address());
    config.set_sample_ratio(0);  // the gateway has decided
    ASSERT_TRUE(tracing::Start(config, {"inference-router", "1"}).ok());
  }
  void TearDown() override { tracing::Stop(1'000); }
  std::vector<otlp::v1::Span> Exported() {
    tracing::Stop(5'000);
    return collector_.spans();
  }
  const int64_t now_ = SystemClock::Get().MonotonicUs();
  tracing::FakeCollector collector_;
};

TEST_F(RunTraceTest, WithoutATraceOfTheGatewayThereIsNone) {
  EXPECT_FALSE(RunTrace::Begin(RequestWith(""), now_));
  EXPECT_FALSE(RunTrace::Begin(RequestWith("rubbish"), now_));
  tracing::Stop(1'000);
  EXPECT_FALSE(RunTrace::Begin(RequestWith(kSampled), now_)) << "nor when this process has none";
}

TEST_F(RunTraceTest, EnginesAndTheSettlementAreSpansOfTheRun) {
  auto trace = RunTrace::Begin(RequestWith(kSampled), now_);
  ASSERT_TRUE(trace);
  trace->BeginAttempt("gpu-1", catalog::v1::ENGINE_KIND_VLLM, "prefix", now_ + 1);
  const std::string first = trace->AttemptTraceparent();
  trace->EndAttempt(&RowOf(ErrorId::kUpstreamError), 0, now_ + 2);
  trace->BeginAttempt("gpu-2", catalog::v1::ENGINE_KIND_VLLM, "load", now_ + 3);
  EXPECT_NE(trace->AttemptTraceparent(), first);
  trace->EndAttempt(nullptr, now_ + 4, now_ + 5);
  trace->BeginSettle(now_ + 6);
  EXPECT_NE(trace->SettleTraceparent(), "");
  trace->EndSettle(now_ + 7);
  common::v1::Usage usage;
  usage.set_prompt_tokens(11);
  usage.set_completion_tokens(5);
  trace->SetUsage(usage);
  trace->End({.model = "sim/model"}, now_ + 8);
  const auto spans = Exported();
  ASSERT_EQ(spans.size(), 4u);
  EXPECT_EQ(spans[0].name(), kRun);
  EXPECT_EQ(spans[0].parent_span_id(), std::string("\x00\xf0\x67\xaa\x0b\xa9\x02\xb7", 8));
  for (size_t i = 1; i < spans.size(); ++i) {
    EXPECT_EQ(spans[i].parent_span_id(), spans[0].span_id());
    EXPECT_EQ(spans[i].trace_id(), spans[0].trace_id());
  }
  EXPECT_EQ(spans[1].name(), "chat sim/model");
  EXPECT_EQ(spans[1].status().code(), otlp::v1::STATUS_CODE_ERROR);
  EXPECT_EQ(spans[1].events_size(), 0);
  EXPECT_EQ(TextOf(spans[1], "tollgate.engine.reason"), "prefix");
  EXPECT_EQ(TextOf(spans[2], "tollgate.engine.reason"), "load");
  EXPECT_EQ(spans[2].events(0).name(), "first token");
  EXPECT_EQ(spans[3].name(), "settle");
}

TEST_F(RunTraceTest, ARunThatIsNotSampledIsExportedOnlyWhenItFails) {
  auto good = RunTrace::Begin(RequestWith(kNotSampled), now_);
  EXPECT_EQ(good->SettleTraceparent(), "");
  good->End({.model = "sim/model"}, now_ + 1);
  auto gone = RunTrace::Begin(RequestWith(kNotSampled), now_);
  gone->End({.client_gone = true}, now_ + 1);
  auto bad = RunTrace::Begin(RequestWith(kNotSampled), now_);
  bad->End({.error = &RowOf(ErrorId::kModelNotServing)}, now_ + 1);
  const auto spans = Exported();
  ASSERT_EQ(spans.size(), 1u);
  EXPECT_EQ(spans[0].status().code(), otlp::v1::STATUS_CODE_ERROR);
}

TEST_F(RunTraceTest, MoreEnginesThanAreRecordedDoNoHarm) {
  auto trace = RunTrace::Begin(RequestWith(kSampled), now_);
  for (int i = 0; i < 20; ++i) {
    trace->BeginAttempt("gpu", catalog::v1::ENGINE_KIND_VLLM, "load", now_ + i);
    trace->EndAttempt(nullptr, 0, now_ + i);
  }
  trace->End({}, now_ + 30);
  EXPECT_EQ(Exported().size(), 5u);
}

}  // namespace
}  // namespace tollgate::inference_router
