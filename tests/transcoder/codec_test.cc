// proto3 JSON like protojson: the cases where protobuf's own JSON differs
// (docs/design/transcoder.md).
#include <gmock/gmock.h>
#include <google/protobuf/wrappers.pb.h>
#include <google/rpc/error_details.pb.h>
#include <google/rpc/status.pb.h>
#include <gtest/gtest.h>

#include "services/dashboard/transcode/json_reader.h"
#include "services/dashboard/transcode/json_writer.h"
#include "services/dashboard/transcode/update_mask.h"
#include "tollgate/testing/v1/everything.pb.h"

namespace tollgate::transcode {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using tollgate::testing::v1::Everything;
using tollgate::testing::v1::Span;

template <typename Message = Everything>
std::optional<Message> FromJson(const std::string& text) {
  const auto document = ParseBody(text);
  if (!document.ok()) return std::nullopt;
  Message message;
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
}

TEST(CodecTest, AFieldStandsOnce) {
  EXPECT_FALSE(Accepts(R"({"int32_value":1,"int32_value":1})"));
  EXPECT_FALSE(Accepts(R"({"int32_value":1,"int32Value":1})"));
  EXPECT_FALSE(Accepts(R"({"int32_value":1,"int32Value":null})"));
  EXPECT_TRUE(Accepts(R"({"nope":1,"nope":2,"INT32_VALUE":3,"int32Value":4})"));
  EXPECT_FALSE(Accepts(R"({"choice_text":"a","choice_number":1})"));
  EXPECT_TRUE(Accepts(R"({"choice_text":null,"choice_number":1})"));
  EXPECT_FALSE(Accepts(R"({"string_map":{"a":"x","a":"y"}})"));
  EXPECT_TRUE(Accepts(R"({"color_map":{"a":"NOPE","a":"COLOR_RED"}})")) << "the first is dropped";
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
       {R"({"bool_value":"true"})", R"({"bool_value":1})", R"({"name":5})",
        R"({"bytes_value":"Y Q="})", R"({"strings":"a"})", R"({"strings":[null]})",
        R"({"string_map":{"a":null}})", R"({"int32s":[["1"]]})", R"({"color":"1.5"})"}) {
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
  EXPECT_EQ(FromJson<Span>(R"({"duration":"-.5s"})")->duration().nanos(), -500'000'000);
  for (const char* value : {"01s", "1", "1h", "315576000001s", "0.0000000001s", "s"}) {
    EXPECT_FALSE(FromJson<Span>(std::string("{\"duration\":\"") + value + "\"}")) << value;
  }
  EXPECT_THAT(FromJson(R"({"mask":"a,bC"})")->mask().paths(), ElementsAre("a", "b_c"));
  for (const char* value : {"a_b", "*", "a,", "a b"}) {
    EXPECT_FALSE(Accepts(std::string("{\"mask\":\"") + value + "\"}")) << value;
  }
}

TEST(CodecTest, EveryFieldIsWrittenInTheOrderOfDeclaration) {
  Everything message;
  message.mutable_inner()->set_text("<b>&\xE2\x80\xA8");
  const std::string json = *WriteMessage(message);
  EXPECT_THAT(json, ::testing::StartsWith(R"({"name":"","boolValue":false,"int32Value":0)"));
  EXPECT_THAT(json, HasSubstr("\"color\":\"COLOR_UNSPECIFIED\",\"child\":null,\"inner\":{\"text\":"
                              "\"<b>&\xE2\x80\xA8\",\"number\":\"0\",\"inner\":null,\"tags\":[]},"
                              "\"another-name\":\"\""));
  EXPECT_EQ(json.find("optionalString"), std::string::npos);
  EXPECT_EQ(json.find("choiceText"), std::string::npos);
  EXPECT_EQ(EscapeForHtml("<>&\xE2\x80\xA8\xE2\x80\xA9"), "\\u003c\\u003e\\u0026\\u2028\\u2029");
}

TEST(CodecTest, WhatJsonCannotHoldIsAnError) {
  Everything message;
  message.mutable_timestamp()->set_seconds(253'402'300'800);
  EXPECT_FALSE(WriteMessage(message).ok());
  Span span;
  span.mutable_duration()->set_seconds(1);
  span.mutable_duration()->set_nanos(-1);
  EXPECT_FALSE(WriteMessage(span).ok());
  message.Clear();
  message.mutable_mask()->add_paths("aB");
  EXPECT_FALSE(WriteMessage(message).ok());
  google::rpc::Status status;
  status.add_details()->set_type_url("x/no.such.Type");
  EXPECT_FALSE(WriteMessage(status).ok());
  status.mutable_details(0)->PackFrom(google::protobuf::Int32Value());
  EXPECT_FALSE(WriteMessage(status).ok()) << "a type with a form that is not known";
}

TEST(CodecTest, DetailsOfErrorsNameTheirType) {
  google::rpc::Status status;
  google::rpc::ErrorInfo info;
  info.set_reason("R");
  (*info.mutable_metadata())["b"] = "2";
  (*info.mutable_metadata())["a"] = "1";
  status.add_details()->PackFrom(info);
  google::protobuf::Duration duration;
  duration.set_seconds(1);
  status.add_details()->PackFrom(duration);
  status.add_details();
  EXPECT_EQ(*WriteMessage(status),
            R"({"code":0,"message":"","details":[)"
            R"({"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"R","domain":"",)"
            R"("metadata":{"a":"1","b":"2"}},)"
            R"({"@type":"type.googleapis.com/google.protobuf.Duration","value":"1s"},{}]})");
}

TEST(CodecTest, WhatIsWrittenCanBeRead) {
  Everything message;
  message.set_choice_number(INT64_MIN);
  (*message.mutable_int64_map())["\"\\\n"] = -5;
  (*message.mutable_color_map())["a"] = tollgate::testing::v1::COLOR_RED;
  message.mutable_timestamp()->set_seconds(-1);
  message.mutable_timestamp()->set_nanos(1'000);
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
  EXPECT_EQ(paths(R"({"string_map":{"x":"y"},"name":null})"), "name;string_map;");
  EXPECT_EQ(paths(R"({"inner":{"nope":1}})"),
            "error: could not find field \"nope\" in \"tollgate.testing.v1.Inner\"");
}

}  // namespace
}  // namespace tollgate::transcode
