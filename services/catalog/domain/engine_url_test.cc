#include "services/catalog/domain/engine_url.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace tollgate::catalog {
namespace {

using ::testing::HasSubstr;

TEST(EngineUrl, OnlySchemeHostAndPort) {
  for (const char* good :
       {"http://127.0.0.1:8000", "https://gpu.example.com:443", "https://gpu.example.com",
        "https://[::1]", "http://[::1]:8000", "http://engine_1:8000"}) {
    EXPECT_EQ(EngineUrlProblem(good), "") << good;
  }
  EXPECT_THAT(EngineUrlProblem("http://h:8000/v1"), HasSubstr("without /v1"));
  for (const char* bad :
       {"", "h:8000", "ftp://h:8000", "http://h", "http://[::1]", "https://h:", "http://h:0",
        "http://h:65536", "http://:8000", "http://h:8000/", "http://h:8000/path",
        "http://u:p@h:8000", "http://h:8000?x", "http://h:80 ", "http://h\r\n:80", "http://[::1:80",
        "http://h:-1", "HTTP://h:1"}) {
    EXPECT_NE(EngineUrlProblem(bad), "") << bad;
  }
}

}  // namespace
}  // namespace tollgate::catalog
