#include "gateway/pipeline/checks/content_type.h"

#include <gtest/gtest.h>

namespace tollgate::gateway {
namespace {

TEST(ContentType, AcceptsUtf8JsonOnly) {  // H72
  const auto ok = [](std::string name, std::string value) {
    HttpRequest request;
    request.headers = {{std::move(name), std::move(value)}};
    return CheckContentType(request).ok();
  };
  EXPECT_TRUE(CheckContentType(HttpRequest{}).ok());
  EXPECT_TRUE(ok("content-type", "application/json"));
  EXPECT_TRUE(ok("content-type", "Application/JSON ; charset=\"UTF-8\""));
  EXPECT_TRUE(ok("content-type", "application/problem+json"));
  EXPECT_FALSE(ok("content-type", "application/jsonx"));
  EXPECT_FALSE(ok("content-type", "multipart/form-data; boundary=application/json"));
  EXPECT_FALSE(ok("content-type", "application/json; charset=utf-16le"));
}

}  // namespace
}  // namespace tollgate::gateway
