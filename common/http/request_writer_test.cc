#include "common/http/request_writer.h"

#include <gtest/gtest.h>

#include <string>

namespace tollgate::http {
namespace {

TEST(RequestWriter, WritesTheHeadWithTheHostAndTheLengthOfTheBody) {
  ClientRequest request;
  request.method = "POST";
  request.origin = {"engine", 8000};
  request.target = "/v1/chat/completions?a=b";
  request.headers = {{"content-type", "application/json"}, {"x-a", "1"}, {"X-A", "2"}};
  request.body = "{}";
  EXPECT_EQ(WriteRequestHead(request),
            "POST /v1/chat/completions?a=b HTTP/1.1\r\nhost: engine:8000\r\n"
            "content-type: application/json\r\nx-a: 1\r\nX-A: 2\r\ncontent-length: 2\r\n\r\n");
  // A method that usually has a body gets a length even without one.
  request.method = "DELETE";
  request.body.clear();
  request.headers.clear();
  EXPECT_EQ(WriteRequestHead(request),
            "DELETE /v1/chat/completions?a=b HTTP/1.1\r\nhost: engine:8000\r\n"
            "content-length: 0\r\n\r\n");
}

TEST(RequestWriter, NamesThePortUnlessItIsTheDefaultOfTheScheme) {
  const auto host = [](Origin origin) {
    ClientRequest request;
    request.origin = std::move(origin);
    return WriteRequestHead(request);
  };
  EXPECT_EQ(host({"a", 80}), "GET / HTTP/1.1\r\nhost: a\r\n\r\n");
  EXPECT_EQ(host({"a", 443}), "GET / HTTP/1.1\r\nhost: a:443\r\n\r\n");
  EXPECT_EQ(host({"a", 443, true}), "GET / HTTP/1.1\r\nhost: a\r\n\r\n");
  EXPECT_EQ(host({"::1", 81}), "GET / HTTP/1.1\r\nhost: [::1]:81\r\n\r\n");
}

TEST(RequestWriter, AValueCannotInjectAHeader) {
  ClientRequest request;
  request.origin = {"a", 80};
  request.headers = {{"x", "1\r\nauthorization: y"},
                     {"z", std::string("1\0"
                                       "2",
                                       3)}};
  EXPECT_EQ(WriteRequestHead(request),
            "GET / HTTP/1.1\r\nhost: a\r\nx: 1  authorization: y\r\nz: 1 2\r\n\r\n");
}

TEST(RequestWriter, AHeaderThatDoesNotFitIsAnErrorAndNotACrash) {
  ClientRequest request;
  request.origin = {"a", 80};
  request.headers = {{"x", std::string(65'000, 'a')}};
  EXPECT_GT(WriteRequestHead(request).size(), 65'000u);
  request.headers = {{"x", std::string(70'000, 'a')}};
  EXPECT_EQ(WriteRequestHead(request), "");
}

}  // namespace
}  // namespace tollgate::http
