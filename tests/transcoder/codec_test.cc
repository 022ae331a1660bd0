// proto3 JSON like protojson: the cases where protobuf's own JSON differs
// (docs/design/transcoder.md).
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "services/dashboard/transcode/json_reader.h"
#include "services/dashboard/transcode/json_writer.h"
#include "services/dashboard/transcode/number_text.h"
#include "services/dashboard/transcode/update_mask.h"
#include "tollgate/testing/v1/everything.pb.h"

namespace tollgate::transcode {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tollgate::testing::v1::Everything;
using tollgate::testing::v1::Inner;

std::optional<Everything> FromJson(const std::string& text) {
  const auto document = ParseBody(text);
  if (!document.ok()) return std::nullopt;
  Everything message;
  if (!ReadMessage(document->root(), message).ok()) return std::nullopt;
  return message;
}

bool Accepts(const std::string& text) { return FromJson(text).has_value(); }

TEST(CodecTest, TheFirstValueOfABodyCounts) {
  for (const char* text : {"{}", " {} x", "{}{\"a\":1}", "{}}"}) EXPECT_TRUE(Accepts(text)) << text;
  for (const char* text : {"null", "[]", "1", "x{}", "\xEF\xBB\xBF{}", "{", "{\"a\":1,}", "{a:1}",
                           "{'a':1}", "// c\n{}", "{\"nope\":5.}", "{\"nope\":\"\x01\"}",
                           "{\"nope\":\"\\ud800\"}", "{\"nope\":\"\xFF\"}"}) {
    EXPECT_FALSE(Accepts(text)) << text;
  }
}

TEST(CodecTest, NestingIsLimited) {
  const auto nested = [](int depth) {
    return "{\"nope\":" + std::string(depth, '[') + std::string(depth, ']') + "}";
  };
  EXPECT_TRUE(Accepts(nested(9'000)));
  EXPECT_FALSE(Accepts(nested(12'000)));
  const auto messages = [](int depth) {
    std::string text;
    for (int i = 0; i < depth; ++i) text += "{\"child\":";
    return text + "{}" + std::string(static_cast<size_t>(depth), '}');
  };
  EXPECT_TRUE(Accepts(messages(120)));
  EXPECT_TRUE(Accepts(messages(900)));
  EXPECT_FALSE(Accepts(messages(1'100)));
  EXPECT_FALSE(Accepts("{\"value\":" + std::string(5'000, '[') + std::string(5'000, ']') + "}"));
}

TEST(CodecTest, AFieldStandsOnce) {
  EXPECT_FALSE(Accepts(R"({"int32_value":1,"int32_value":1})"));
  EXPECT_FALSE(Accepts(R"({"int32_value":1,"int32Value":1})"));
  EXPECT_FALSE(Accepts(R"({"int32_value":1,"int32Value":null})"));
  EXPECT_TRUE(Accepts(R"({"nope":1,"nope":2,"INT32_VALUE":3,"int32Value":4})"));
  EXPECT_FALSE(Accepts(R"({"choice_text":"a","choice_number":1})"));
  EXPECT_TRUE(Accepts(R"({"choice_text":null,"choice_number":1})"));
  EXPECT_FALSE(Accepts(R"({"string_map":{"a":"x","a":"y"}})"));
}

TEST(CodecTest, Integers) {
  for (const char* value : {"5", "5.0", "1e2", "150e-1", "-0", "0e5", "\"5\"", "\"5.0\"", "\"1e2\"",
                            "2147483647", "\"-2147483648\"", "null"}) {
    EXPECT_TRUE(Accepts(std::string("{\"int32_value\":") + value + "}")) << value;
  }
  for (const char* value : {"0.5", "2147483648", "1e99", "\"+5\"", "\"05\"", "\" 5\"", "\"5 \"",
                            "\"\"", "\"5x\"", "\"5,6\"", "true", "{}", "[]", "1e99999999999999"}) {
    EXPECT_FALSE(Accepts(std::string("{\"int32_value\":") + value + "}")) << value;
  }
  EXPECT_EQ(FromJson(R"({"uint64_value":"1844674407370955161.5e1"})")->uint64_value(), UINT64_MAX);
  EXPECT_TRUE(Accepts(R"({"uint64_value":"-0"})"));
  EXPECT_FALSE(Accepts(R"({"uint64_value":18446744073709551616})"));
}

TEST(CodecTest, ScalarsAreStrict) {
  for (const char* text :
       {R"({"bool_value":"true"})", R"({"bool_value":1})", R"({"double_value":".5"})",
        R"({"double_value":1e400})", R"({"float_value":1e39})", R"({"name":5})",
        R"({"bytes_value":"Y Q="})", R"({"strings":"a"})", R"({"strings":[null]})",
        R"({"string_map":{"a":null}})", R"({"bool_map":{"yes":0}})", R"({"int32s":[["1"]]})",
        R"({"int64_wrapper":{"value":5}})", R"({"color":"1.5"})"}) {
    EXPECT_EQ(Accepts(text), std::string(text).find("color") != std::string::npos) << text;
  }
  EXPECT_EQ(FromJson(R"({"bytes_value":"+/9="})")->bytes_value(), "\xFB\xFF");
  EXPECT_EQ(FromJson(R"({"bytes_value":"_-8"})")->bytes_value(), "\xFF\xEF");
  EXPECT_EQ(FromJson(R"({"color":77})")->color(), 77);
  EXPECT_EQ(FromJson(R"({"color":"NOPE"})")->color(), 0);
  EXPECT_EQ(FromJson(R"({"colors":["NOPE","COLOR_RED"]})")->colors_size(), 1);
}

TEST(CodecTest, WellKnownTypes) {
  EXPECT_EQ(FromJson(R"({"timestamp":"2026-01-31T12:00:00,5+01:00"})")->timestamp().nanos(),
            500'000'000);
  for (const char* value : {"2026-01-31T12:00:00.1234567890Z", "0000-12-31T23:59:59Z",
                            "2026-01-31t12:00:00z", "2026-02-30T12:00:00Z", "2026-01-31"}) {
    EXPECT_FALSE(Accepts(std::string("{\"timestamp\":\"") + value + "\"}")) << value;
  }
  EXPECT_FALSE(Accepts(R"({"timestamp":{"seconds":5}})"));
  EXPECT_EQ(FromJson(R"({"duration":"-.5s"})")->duration().nanos(), -500'000'000);
  for (const char* value : {"01s", "1", "1h", "315576000001s", "0.0000000001s", "s"}) {
    EXPECT_FALSE(Accepts(std::string("{\"duration\":\"") + value + "\"}")) << value;
  }
  EXPECT_THAT(FromJson(R"({"mask":"a,bC"})")->mask().paths(), ElementsAre("a", "b_c"));
  for (const char* value : {"a_b", "*", "a,", "a b"}) {
    EXPECT_FALSE(Accepts(std::string("{\"mask\":\"") + value + "\"}")) << value;
  }
  EXPECT_TRUE(FromJson(R"({"value":null})")->has_value());
  EXPECT_TRUE(FromJson(R"({"any":{"x":1}})")->any().type_url().empty());
  EXPECT_FALSE(Accepts(R"({"any":{"@type":"x/no.such.Type"}})"));
  EXPECT_EQ(
      FromJson(R"({"any":{"value":"1s","@type":"a/google.protobuf.Duration"}})")->any().value(),
      "\x08\x01");
}

TEST(CodecTest, EveryFieldIsWrittenInTheOrderOfDeclaration) {
  Everything message;
  message.mutable_inner()->set_text("<b>&\xE2\x80\xA8");
  const std::string json = *WriteMessage(message);
  EXPECT_THAT(json, ::testing::StartsWith(R"({"name":"","boolValue":false,"int32Value":0)"));
  EXPECT_THAT(json, HasSubstr("\"color\":\"COLOR_UNSPECIFIED\",\"child\":null,\"inner\":{\"text\":"
                              "\"<b>&\xE2\x80\xA8\",\"number\":\"0\",\"inner\":null,\"tags\":[]},"
                              "\"another-name\":\"\""));
  EXPECT_THAT(json, HasSubstr(R"("nullValue":null)"));
  EXPECT_EQ(json.find("optionalString"), std::string::npos);
  EXPECT_EQ(json.find("choiceText"), std::string::npos);
  EXPECT_EQ(EscapeForHtml("<>&\xE2\x80\xA8\xE2\x80\xA9"), "\\u003c\\u003e\\u0026\\u2028\\u2029");
}

TEST(CodecTest, Numbers) {
  const std::pair<double, const char*> doubles[] = {
      {1e-7, "1e-7"},   {1e-6, "0.000001"}, {1e20, "100000000000000000000"}, {1e21, "1e+21"},
      {-0.0, "-0"},     {0.1, "0.1"},       {1.5e300, "1.5e+300"},           {123, "123"},
      {-1.25, "-1.25"}, {5e-324, "5e-324"}};
  for (const auto& [value, text] : doubles) EXPECT_EQ(NumberText(value), text);
  EXPECT_EQ(NumberText(1234567.1F), "1234567.1");
  EXPECT_EQ(NumberText(std::numeric_limits<double>::quiet_NaN()), "\"NaN\"");
}

TEST(CodecTest, WhatJsonCannotHoldIsAnError) {
  Everything message;
  message.mutable_timestamp()->set_seconds(253'402'300'800);
  EXPECT_FALSE(WriteMessage(message).ok());
  message.Clear();
  message.mutable_duration()->set_seconds(1);
  message.mutable_duration()->set_nanos(-1);
  EXPECT_FALSE(WriteMessage(message).ok());
  message.Clear();
  message.mutable_mask()->add_paths("aB");
  EXPECT_FALSE(WriteMessage(message).ok());
  message.Clear();
  message.mutable_value()->set_number_value(std::numeric_limits<double>::infinity());
  EXPECT_FALSE(WriteMessage(message).ok());
  message.Clear();
  message.mutable_value();
  EXPECT_FALSE(WriteMessage(message).ok());
  message.Clear();
  message.mutable_any()->set_type_url("x/no.such.Type");
  EXPECT_FALSE(WriteMessage(message).ok());
}

TEST(CodecTest, WhatIsWrittenCanBeRead) {
  Everything message;
  message.set_double_value(1e300);
  message.set_choice_number(INT64_MIN);
  (*message.mutable_int32_map())[-5] = "a";
  (*message.mutable_bool_map())[true] = tollgate::testing::v1::COLOR_RED;
  message.mutable_timestamp()->set_seconds(-1);
  message.mutable_timestamp()->set_nanos(1'000);
  message.mutable_any()->PackFrom(message.timestamp());
  (*message.mutable_struct_()->mutable_fields())["a"].set_string_value("\"\\\n");
  message.add_int32_wrappers()->set_value(3);
  const std::string json = *WriteMessage(message);
  const auto back = FromJson(json);
  ASSERT_TRUE(back) << json;
  EXPECT_EQ(*WriteMessage(*back), json);
  EXPECT_EQ(back->choice_number(), INT64_MIN);
}

TEST(CodecTest, UpdateMasks) {
  const auto paths = [](const std::string& text) -> std::string {
    const auto document = ParseBody(text);
    const auto found = FieldPaths(document->root(), Everything::descriptor());
    if (!found.ok()) return "error: " + found.error();
    std::string all;
    for (const std::string& path : *found) all += path + ";";
    return all;
  };
  EXPECT_EQ(paths("{}"), ";");
  EXPECT_EQ(paths(R"({"int32Value":1,"inner":{"text":"a","inner":{}},"strings":[1]})"),
            "inner.inner;inner.text;int32_value;strings;");
  EXPECT_EQ(paths(R"({"struct":{"a":{"b":1},"c":{}},"string_map":{"x":"y"},"name":null})"),
            "name;string_map;struct.a.b;struct.c;");
  EXPECT_EQ(paths(R"({"inner":{"nope":1}})"),
            "error: could not find field \"nope\" in \"tollgate.testing.v1.Inner\"");
}

}  // namespace
}  // namespace tollgate::transcode
