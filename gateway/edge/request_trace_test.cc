// A request exports one span for itself and one for each stage that ran, and never a text of the
// client.
#include "gateway/edge/request_trace.h"

#include <gtest/gtest.h>

#include <map>

#include "common/tracing/testing/fake_collector.h"
#include "common/tracing/tracer.h"
#include "tollgate/config/v1/config.pb.h"

namespace tollgate::gateway {
namespace {

constexpr char kParent[] = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-00";

HttpRequest MakeRequest(Headers headers = {{"traceparent", kParent}}) {
  HttpRequest request;
  request.method = "POST";
  request.path = "/v1/chat/completions";
  request.headers = std::move(headers);
  request.id = Id::New();
  return request;
}

class RequestTraceTest : public ::testing::Test {
 protected:
  void Start(double ratio) {
    config::v1::TracingConfig config;
    config.set_otlp_endpoint(collector_.address());
    config.set_sample_ratio(ratio);
    ASSERT_TRUE(tracing::Start(config, {"gateway", "1"}).ok());
  }
  void TearDown() override { tracing::Stop(1'000); }
  // The exported spans by name.
  std::map<std::string, otlp::v1::Span> Exported() {
    tracing::Stop(5'000);
    std::map<std::string, otlp::v1::Span> spans;
    for (const auto& span : collector_.spans()) spans[span.name()] = span;
    return spans;
  }
  static std::string TextOf(const otlp::v1::Span& span, const std::string& key) {
    for (const auto& one : span.attributes()) {
      if (one.key() == key) return one.value().string_value();
    }
    return "";
  }
  tracing::FakeCollector collector_;
  const Endpoint endpoint_{"POST", "/v1/chat/completions", "chat_completions"};
};

TEST_F(RequestTraceTest, WithoutACollectorNothingIsKept) {
  HttpRequest request = MakeRequest();
  BeginTrace(request);
  EXPECT_EQ(TraceOf(request), nullptr);
  EXPECT_EQ(TraceField(request).key, "");
  EXPECT_EQ(TraceparentOf(nullptr, Stage::kAdmit), "");
  {
    const StageTimer timer(nullptr, Stage::kAdmit);
  }
  EndTrace(request, {.status = 500}, &endpoint_);
}

TEST_F(RequestTraceTest, ARequestAndItsStagesAreSpansOfTheCallersTrace) {
  Start(1);
  HttpRequest request = MakeRequest();
  BeginTrace(request);
  RequestTrace& trace = *TraceOf(request);
  EXPECT_EQ(TraceField(request).value, "4bf92f3577b34da6a3ce929d0e0e4736");
  EXPECT_EQ(TraceparentOf(&trace, Stage::kAdmit), "") << "it has not begun";
  std::string admit;
  {
    const StageTimer timer(&trace, Stage::kAdmit);
    admit = TraceparentOf(&trace, Stage::kAdmit);
  }
  EXPECT_EQ(admit, tracing::FormatTraceparent(trace.ContextOf(Stage::kAdmit)));
  EXPECT_EQ(TraceparentOf(&trace, Stage::kAdmit), "") << "only the first run is measured";
  const int64_t first_end_us = trace.of(Stage::kAdmit).end_us;
  {
    const StageTimer again(&trace, Stage::kAdmit);
  }
  EXPECT_EQ(trace.of(Stage::kAdmit).end_us, first_end_us);
  EndTrace(request, {.status = 200}, &endpoint_);
  auto spans = Exported();
  ASSERT_EQ(spans.size(), 2u);
  const auto& root = spans["POST /v1/chat/completions"];
  EXPECT_EQ(root.parent_span_id(), std::string("\x00\xf0\x67\xaa\x0b\xa9\x02\xb7", 8));
  EXPECT_EQ(spans["admit"].parent_span_id(), root.span_id());
  EXPECT_EQ(spans["admit"].trace_id(), root.trace_id());
}

TEST_F(RequestTraceTest, WhatIsNotSampledIsExportedOnlyWhenItFails) {
  Start(0);
  HttpRequest good = MakeRequest({});
  BeginTrace(good);
  EndTrace(good, {.status = 200}, &endpoint_);
  HttpRequest bad = MakeRequest({});
  BeginTrace(bad);
  {
    const StageTimer timer(TraceOf(bad), Stage::kAdmit);
  }
  NoteFailure(bad, {.id = ErrorId::kRateLimited, .reason = Reason::kRequests});
  EndTrace(bad, {.status = 429}, &endpoint_);
  auto spans = Exported();
  ASSERT_EQ(spans.size(), 2u);
  const auto& root = spans["POST /v1/chat/completions"];
  EXPECT_EQ(root.trace_id(), bad.id.ToBytes()) << "the trace begins here";
  EXPECT_EQ(root.parent_span_id(), "");
  EXPECT_EQ(TextOf(root, "error.type"), "rate_limited");
  EXPECT_EQ(TextOf(root, "tollgate.reason"), "requests");
  EXPECT_EQ(TextOf(spans["admit"], "error.type"), "rate_limited");
  EXPECT_NE(root.status().code(), otlp::v1::STATUS_CODE_ERROR) << "the caller's fault";
}

TEST_F(RequestTraceTest, OneRefusedByItsHeadHasASpanToo) {
  Start(0);
  HttpRequest request = MakeRequest();
  EndTrace(request, {.status = 401, .duration_us = 5, .framing_error = true}, &endpoint_);
  EndTrace(request, {.status = 400, .framing_error = true}, nullptr);  // not a valid request
  EXPECT_EQ(Exported().size(), 1u);
}

TEST_F(RequestTraceTest, AnUnmatchedMethodAndPathAreNotInTheSpan) {
  Start(1);
  HttpRequest request = MakeRequest();
  request.method = "SECRET";
  request.path = "/secret";
  BeginTrace(request);
  EndTrace(request, {.status = 404}, nullptr);
  EXPECT_EQ(Exported().count("HTTP"), 1u);
  EXPECT_EQ(collector_.bytes().find("SECRET"), std::string::npos);
  EXPECT_EQ(collector_.bytes().find("secret"), std::string::npos);
}

TEST_F(RequestTraceTest, SeveralTraceparentsAreNone) {
  Start(1);
  HttpRequest request = MakeRequest({{"traceparent", kParent}, {"traceparent", kParent}});
  BeginTrace(request);
  EXPECT_EQ(TraceOf(request)->parent, 0u);
  EXPECT_EQ(TraceOf(request)->context.trace_id, request.id.bytes());
}

TEST_F(RequestTraceTest, ATracestateIsKeptOnlyWithATraceparent) {
  Start(1);
  HttpRequest with = MakeRequest({{"tracestate", "a=1"}, {"traceparent", kParent}});
  BeginTrace(with);
  EXPECT_EQ(TraceOf(with)->tracestate, "a=1");
  HttpRequest without = MakeRequest({{"tracestate", "a=1"}});
  BeginTrace(without);
  EXPECT_EQ(TraceOf(without)->tracestate, "");
}

}  // namespace
}  // namespace tollgate::gateway
