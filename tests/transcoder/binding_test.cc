// Requests from body, path and query (docs/design/transcoder.md). The comparison with a real
// grpc-gateway covers much more; these tests run without it.
#include "services/dashboard/transcode/binding.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "services/dashboard/transcode/headers.h"
#include "services/dashboard/transcode/transcoder.h"
#include "tollgate/testing/v1/everything.pb.h"

namespace tollgate::transcode {
namespace {

using ::testing::HasSubstr;
using tollgate::testing::v1::Everything;
using tollgate::testing::v1::TypedPath;
using tollgate::testing::v1::UpdateRequest;

class BindingTest : public ::testing::Test {
 protected:
  BindingTest() : table_(*RouteTable::Make(ServicesOf("tollgate.testing.v1"))) {}

  // Returns "" when the request was bound.
  std::string Failure(const std::string& method, const std::string& path,
                      google::protobuf::Message& message, const std::string& query = "",
                      const std::string& body = "") {
    auto found = table_.Find(method, SplitPath(path), false);
    if (found.kind != RouteTable::Found::Kind::kRoute) return "no route";
    message.Clear();
    const grpc::Status status = Bind(
        *found.route, {.body = body, .values = std::move(found.values), .query = query}, message);
    return status.ok() ? "" : std::to_string(status.error_code()) + " " + status.error_message();
  }
  std::string Query(const std::string& query) {
    return Failure("GET", "/testing/v1/query", everything_, query);
  }

  const RouteTable table_;
  Everything everything_;
  UpdateRequest update_;
  TypedPath typed_;
};

TEST_F(BindingTest, QueryValues) {
  EXPECT_EQ(Query("int32_value=+5"), "3 parsing field \"int32_value\": invalid value \" 5\"");
  EXPECT_EQ(Query("int32_value=%2B5&boolValue=T&inner.text=a+b&nope=1&inner.nope=1"), "");
  EXPECT_EQ(everything_.int32_value(), 5);
  EXPECT_TRUE(everything_.bool_value());
  EXPECT_EQ(everything_.inner().text(), "a b");
  EXPECT_EQ(Query("strings=a&strings=b&string_map[k]=v&color=1&another-name=x"), "");
  EXPECT_EQ(everything_.strings_size(), 2);
  EXPECT_EQ(everything_.string_map().at("k"), "v");
  EXPECT_EQ(everything_.renamed(), "x");
  EXPECT_EQ(Query("mask=displayName,b_c"), "");
  EXPECT_EQ(everything_.mask().paths(0), "displayName");
}

TEST_F(BindingTest, QueryErrors) {
  EXPECT_EQ(Query("a;b"), "3 invalid semicolon separator in query");
  EXPECT_EQ(Query("x=%zz"), "3 invalid URL escape \"%zz\"");
  EXPECT_EQ(Query("name=1&name=2"), "3 too many values for field \"name\": 1, 2");
  EXPECT_EQ(Query("int32_value=1&int32Value=2"), "3 duplicate field \"int32_value\"");
  EXPECT_THAT(Query("int32s=1,2"), HasSubstr("parsing list \"int32s\": "));
  EXPECT_EQ(Query("inner=x"),
            "3 parsing field \"inner\": unsupported message type: \"tollgate.testing.v1.Inner\"");
  EXPECT_EQ(Query("name.x=1"), "3 invalid path: \"name\" is not a message");
  EXPECT_EQ(Query("choice_text=a&choice_number=1"), "3 field already set for oneof \"choice\"");
  EXPECT_EQ(Query("string_map=v"),
            "3 more than one value provided for key \"v\" in map "
            "\"tollgate.testing.v1.Everything.string_map\"");
  EXPECT_EQ(Query("color=NOPE"), "3 parsing field \"color\": \"NOPE\" is not a valid value");
  EXPECT_EQ(Query("name=%ff"), "3 a value of the path or of the query is not UTF-8");
  EXPECT_EQ(Query("bytes_value=/w=="), "");
}

TEST_F(BindingTest, PathVariables) {
  EXPECT_EQ(Failure("GET", "/testing/v1/typed/counts/1,2", typed_), "");
  EXPECT_EQ(typed_.counts_size(), 2);
  EXPECT_EQ(Failure("GET", "/testing/v1/typed/color/9", typed_),
            "3 type mismatch, parameter: color, error: 9 is not valid");
  EXPECT_THAT(Failure("GET", "/testing/v1/typed/flag/yes", typed_),
              HasSubstr("type mismatch, parameter: flag, error: "));
  EXPECT_EQ(Failure("GET", "/testing/v1/typed/inner/a/5", typed_, "inner.number=7&inner.text=b"),
            "");
  EXPECT_EQ(typed_.inner().number(), 5) << "the query must not set what the path has set";
  EXPECT_EQ(typed_.inner().text(), "b");
  EXPECT_EQ(typed_.inner().inner().text(), "a");
}

TEST_F(BindingTest, UpdatesGetTheirMaskFromTheBody) {
  const std::string path = "/testing/v1/everything/a";
  EXPECT_EQ(Failure("PATCH", path, update_, "request_id=r&everything.color=1",
                    R"({"name":"other","int32Value":1})"),
            "");
  EXPECT_EQ(update_.everything().name(), "everything/a");
  EXPECT_EQ(update_.everything().color(), 0);
  EXPECT_EQ(update_.request_id(), "r");
  ASSERT_EQ(update_.update_mask().paths_size(), 2);
  EXPECT_EQ(update_.update_mask().paths(0), "int32_value");
  EXPECT_EQ(Failure("PATCH", path, update_, "update_mask=a,b", R"({"int32Value":1})"), "");
  EXPECT_EQ(update_.update_mask().paths(0), "a");
  EXPECT_EQ(update_.update_mask().paths_size(), 2);
  EXPECT_EQ(Failure("PATCH", path, update_, "update_mask=a", R"({"nope":1})"),
            "3 could not find field \"nope\" in \"tollgate.testing.v1.Everything\"");
  EXPECT_EQ(Failure("PATCH", path, update_), "");
  EXPECT_TRUE(update_.has_update_mask());
  EXPECT_EQ(update_.update_mask().paths_size(), 0);
}

std::string Forwarded(http::Headers headers) {
  http::HttpRequest request{.headers = std::move(headers), .peer_address = "10.0.0.9"};
  const auto metadata = ForwardedMetadata(request);
  if (!metadata.ok()) return "error: " + metadata.error();
  std::string all;
  for (const auto& [key, value] : *metadata) all += key + "=" + value + ";";
  return all;
}

TEST(HeadersTest, WhatReachesTheService) {
  EXPECT_EQ(Forwarded({{"host", "h"}, {"accept", "a"}, {"x-custom", "b"}, {"te", "trailers"}}),
            "grpcgateway-accept=a;x-forwarded-host=h;x-forwarded-for=10.0.0.9;");
  EXPECT_EQ(Forwarded({{"x-forwarded-for", "1.1.1.1"}, {"grpc-metadata-a", "1"}}),
            "a=1;x-forwarded-for=1.1.1.1, 10.0.0.9;");
  EXPECT_EQ(Forwarded({{"grpc-metadata-x-bin", "QUI"}}), "x-bin=AB;x-forwarded-for=10.0.0.9;");
  EXPECT_THAT(Forwarded({{"grpc-metadata-x-bin", "!"}}),
              HasSubstr("invalid binary header Grpc-Metadata-X-Bin: "));
}

// The front removes credentials, and is the only source of the caller's identity.
TEST(HeadersTest, WhatDoesNot) {
  for (const char* name :
       {"authorization", "cookie", "grpc-metadata-authorization", "grpc-metadata-cookie",
        "grpc-metadata-tollgate-identity-bin", "grpc-metadata-tollgate-operator",
        "grpc-metadata-x-tollgate-x", "grpc-metadata-grpcgateway-cookie",
        "grpc-metadata-grpc-timeout", "grpc-metadata-te", "grpc-metadata-connection",
        "grpc-metadata-x-forwarded-for", "grpc-metadata-", "grpc-metadata-:path"}) {
    EXPECT_EQ(Forwarded({{name, "AAAA"}}), "x-forwarded-for=10.0.0.9;") << name;
  }
}

TEST(HeadersTest, Timeouts) {
  const auto timeout = [](const char* text) -> int64_t {
    const auto ns = TimeoutNs({.headers = {{"grpc-timeout", text}}});
    return ns.ok() ? *ns : -1;
  };
  EXPECT_EQ(timeout("5S"), 5'000'000'000);
  EXPECT_EQ(timeout("2H"), 7'200'000'000'000);
  EXPECT_EQ(timeout("7n"), 7);
  EXPECT_EQ(timeout("9999999999999H"), INT64_MAX);
  for (const char* bad : {"5", "S", "5s", "-5S", "+5S", "5 S", "99999999999999999999S"}) {
    EXPECT_EQ(timeout(bad), -1) << bad;
  }
}

}  // namespace
}  // namespace tollgate::transcode
