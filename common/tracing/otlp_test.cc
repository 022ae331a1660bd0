// Tests the wire format of spans. tests/tracing has a receiver with OpenTelemetry's own protos.
#include "common/tracing/otlp.h"

#include <gtest/gtest.h>

namespace tollgate::tracing {
namespace {

Span MakeSpan() {
  Span span;
  span.scope = "tollgate.gateway";
  span.name = "POST /v1/chat/completions";
  span.kind = SpanKind::kServer;
  span.context = *ParseTraceparent("00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01");
  span.parent = 0x0102030405060708;
  span.start_us = 1'700'000'000'000'001;
  span.end_us = 1'700'000'000'000'009;
  span.failed = true;
  span.attributes = {{"text", std::string("x")},
                     {"flag", true},
                     {"number", int64_t{7}},
                     {"list", std::vector<std::string>{"a", "b"}}};
  span.events = {{"first token", 1'700'000'000'000'004}};
  return span;
}

TEST(Otlp, ASpanHasTheFormOfTheProtocol) {
  Span other = MakeSpan();
  other.scope = "tollgate.billing";
  const auto message = ToOtlp({"gateway", "i1"}, {MakeSpan(), other, MakeSpan()});
  ASSERT_EQ(message.resource_spans_size(), 1);
  const auto& all = message.resource_spans(0);
  EXPECT_EQ(all.resource().attributes(0).key(), "service.name");
  EXPECT_EQ(all.resource().attributes(0).value().string_value(), "tollgate-gateway");
  ASSERT_EQ(all.scope_spans_size(), 2);
  EXPECT_EQ(all.scope_spans(0).scope().name(), "tollgate.gateway");
  ASSERT_EQ(all.scope_spans(0).spans_size(), 2);
  const auto& span = all.scope_spans(0).spans(0);
  EXPECT_EQ(span.trace_id(),
            std::string("\x4b\xf9\x2f\x35\x77\xb3\x4d\xa6\xa3\xce\x92\x9d\x0e\x0e\x47\x36"));
  EXPECT_EQ(span.span_id(), std::string("\x00\xf0\x67\xaa\x0b\xa9\x02\xb7", 8));
  EXPECT_EQ(span.parent_span_id(), std::string("\x01\x02\x03\x04\x05\x06\x07\x08"));
  EXPECT_EQ(span.kind(), otlp::v1::SPAN_KIND_SERVER);
  EXPECT_EQ(span.start_time_unix_nano(), 1'700'000'000'000'001'000u);
  EXPECT_EQ(span.end_time_unix_nano(), 1'700'000'000'000'009'000u);
  EXPECT_EQ(span.attributes(2).value().int_value(), 7);
  EXPECT_EQ(span.attributes(3).value().array_value().values(1).string_value(), "b");
  EXPECT_EQ(span.events(0).name(), "first token");
  EXPECT_EQ(span.status().code(), otlp::v1::STATUS_CODE_ERROR);
  EXPECT_EQ(span.flags(), 0x301u);
}

TEST(Otlp, ARootHasNoParent) {
  Span span = MakeSpan();
  span.parent = 0;
  span.failed = false;
  const auto message = ToOtlp({"gateway", "i1"}, {span});
  const auto& root = message.resource_spans(0).scope_spans(0).spans(0);
  EXPECT_EQ(root.parent_span_id(), "");
  EXPECT_FALSE(root.has_status());
  EXPECT_EQ(root.flags(), 0x101u);
}

}  // namespace
}  // namespace tollgate::tracing
