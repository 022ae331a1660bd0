// A batched call has one server span for each traced item.
#include "common/tracing/call_spans.h"

#include <gtest/gtest.h>

#include "common/tracing/testing/fake_collector.h"
#include "tollgate/config/v1/config.pb.h"

namespace tollgate::tracing {
namespace {

constexpr CallName kName{"tollgate.test", "tollgate.test.v1.TestService/Do"};

struct Item {
  std::string text;
  const std::string& traceparent() const { return text; }
};

TEST(CallSpans, EachTracedItemGetsASpanUnderItsCaller) {
  FakeCollector collector;
  config::v1::TracingConfig config;
  config.set_otlp_endpoint(collector.address());
  ASSERT_TRUE(Start(config, {"test", "1"}).ok());
  const std::string a = "00-0000000000000000000000000000000a-000000000000000a-01";
  const std::string b = "00-0000000000000000000000000000000b-000000000000000b-01";
  EXPECT_EQ(BeginCall(kName, std::vector<Item>{{""}, {""}}), nullptr) << "nothing to do";
  EXPECT_EQ(BeginCall(kName, std::vector<Item>{{"rubbish"}, {a.substr(0, 53) + "00"}}), nullptr);
  EndCall(nullptr);
  EndCall(BeginCall(kName, std::vector<Item>{{a}, {""}, {b}}), "service_unavailable");
  Stop(5'000);
  const auto spans = collector.spans();
  ASSERT_EQ(spans.size(), 2u);
  for (const auto& span : spans) {
    EXPECT_EQ(span.name(), kName.method);
    EXPECT_EQ(span.trace_id().back(), span.parent_span_id().back());
    EXPECT_NE(span.span_id(), span.parent_span_id());
    EXPECT_EQ(span.status().code(), otlp::v1::STATUS_CODE_ERROR);
    EXPECT_EQ(span.attributes(3).value().int_value(), 3) << "the items of the call";
  }
  EXPECT_NE(spans[0].trace_id(), spans[1].trace_id());
}

}  // namespace
}  // namespace tollgate::tracing
