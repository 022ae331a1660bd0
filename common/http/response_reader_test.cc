#include "common/http/response_reader.h"

#include <gtest/gtest.h>

#include <cstring>
#include <string>
#include <vector>

namespace tollgate::http {
namespace {

using Framing = ResponseFraming::Body;
using Status = ResponseReader::Status;

struct ReaderOutcome {
  const char* wrong = nullptr;  // error in the head
  ResponseHead head;
  ResponseFraming framing;
  Status status = Status::kNeedMore;
  std::string body;
  size_t left = 0;  // bytes after the response
  bool ended_by_close = false;
};

// Reads the response with its body in steps, as a connection does.
ReaderOutcome Read(const std::string& response, size_t step = 1000, bool to_head_request = false) {
  ReaderOutcome out;
  ResponseReader reader;
  size_t searched = 0;
  const size_t size = FindHeadEnd(response, &searched);
  out.wrong = reader.ReadHead(response.substr(0, size), to_head_request, &out.head);
  out.framing = reader.framing();
  if (out.wrong != nullptr) return out;
  std::string held;
  size_t come = size;
  do {
    held.append(response.substr(come, step));
    come = std::min(come + step, response.size());
    const ResponseReader::Body body = reader.ReadBody(held.data(), held.size());
    out.status = body.status;
    out.body.append(body.payload);
    held.erase(0, body.consumed);
  } while (out.status == Status::kNeedMore && come < response.size());
  out.left = held.size() + response.size() - come;
  if (out.status == Status::kNeedMore) out.ended_by_close = reader.ReadEnd();
  return out;
}

TEST(ResponseReader, ReadsTheBodyThatTheHeadDescribes) {
  struct Row {
    std::string response;
    Framing framing;
    std::string body;
    bool keep_alive = true;
    bool ends_by_close = false;
    bool to_head_request = false;
  };
  const std::string chunked =
      "Transfer-Encoding: Chunked\r\n\r\n2  \r\nab\r\n1;x\r\nc\r\n0\r\n\r\n";
  const std::vector<Row> rows = {
      {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nabc", Framing::kFixedLength, "abc"},
      {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\ncontent-length: 3\r\n\r\nabc",
       Framing::kFixedLength, "abc"},
      {"HTTP/1.1 200\r\nContent-Length: 3\r\n\r\nabc", Framing::kFixedLength, "abc"},
      {"HTTP/1.1 200 \r\nContent-Length: 0\r\n\r\n", Framing::kNone, ""},
      {"HTTP/1.1 200 OK\r\n" + chunked, Framing::kChunked, "abc"},
      {"HTTP/1.1 200 OK\r\n\r\nabc", Framing::kUntilClose, "abc", false, true},
      {"HTTP/1.0 200 OK\r\n\r\n", Framing::kUntilClose, "", false, true},
      {"HTTP/1.0 200 OK\r\nContent-Length: 3\r\n\r\nabc", Framing::kFixedLength, "abc", false},
      {"HTTP/1.0 200 OK\r\nConnection: keep-alive\r\nContent-Length: 3\r\n\r\nabc",
       Framing::kFixedLength, "abc"},
      {"HTTP/1.1 200 OK\r\nConnection: x, CLOSE\r\nContent-Length: 3\r\n\r\nabc",
       Framing::kFixedLength, "abc", false},
      {"HTTP/1.1 200 OK\r\nConnection: close\r\nConnection: keep-alive\r\nContent-Length: 3\r\n"
       "\r\nabc",
       Framing::kFixedLength, "abc", false},
      {"HTTP/1.1 200 OK\r\nProxy-Connection: close\r\nContent-Length: 3\r\n\r\nabc",
       Framing::kFixedLength, "abc", false},
      // Forms that engines and proxies send.
      {"HTTP/1.1 200 D\xc3\xa9j\xc3\xa0 vu\r\nX: \xe9\r\nConnection:\r\nContent-Length: "
       "03\r\n\r\nabc",
       Framing::kFixedLength, "abc"},
      {"HTTP/1.1 200 OK\r\nConnection: Keep-Alive, ,Upgrade,\r\nContent-Length: 3\r\n\r\nabc",
       Framing::kFixedLength, "abc"},
      {"HTTP/1.1 204 No Content\r\n\r\n", Framing::kNone, ""},
      {"HTTP/1.1 204 No Content\r\nTransfer-Encoding: chunked\r\n\r\n", Framing::kNone, ""},
      {"HTTP/1.1 304 Not Modified\r\nContent-Length: 3\r\n\r\n", Framing::kNone, ""},
      {"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\n", Framing::kNone, "", true, false, true},
      {"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", Framing::kNone, "", true, false,
       true},
  };
  for (const Row& row : rows) {
    for (const size_t step : {1, 2, 1000}) {
      SCOPED_TRACE(row.response);
      const ReaderOutcome out = Read(row.response, step, row.to_head_request);
      EXPECT_STREQ(out.wrong, nullptr);
      EXPECT_EQ(out.framing.body, row.framing);
      EXPECT_EQ(out.framing.keep_alive, row.keep_alive);
      EXPECT_EQ(out.status, row.ends_by_close ? Status::kNeedMore : Status::kDone);
      EXPECT_EQ(out.ended_by_close, row.ends_by_close);
      EXPECT_EQ(out.body, row.body);
      EXPECT_EQ(out.left, 0u);
    }
  }
}

TEST(ResponseReader, RefusesHeadsThatCouldBeReadInTwoWays) {
  const std::vector<std::string> rows = {
      "ICY 200 OK\r\n\r\n",
      "HTTP/2.0 200 OK\r\n\r\n",
      "HTTP/1.1  200 OK\r\n\r\n",
      "HTTP/1.1 20 OK\r\n\r\n",
      "HTTP/1.1 2000 OK\r\n\r\n",
      "HTTP/1.1 099 OK\r\n\r\n",
      "HTTP/1.1 600 OK\r\n\r\n",
      "HTTP/1.1 200\tOK\r\n\r\n",
      "HTTP/1.1 200 O\x01K\r\n\r\n",
      "HTTP/1.1 200 OK\nA: b\r\n\r\n",
      "HTTP/1.1 200 OK\r\n: b\r\n\r\n",
      "HTTP/1.1 200 OK\r\nA\r\n\r\n",
      "HTTP/1.1 200 OK\r\nA : b\r\n\r\n",
      "HTTP/1.1 200 OK\r\n A: b\r\n\r\n",
      "HTTP/1.1 200 OK\r\nA: b\r\n c\r\n\r\n",
      "HTTP/1.1 200 OK\r\nA: b\nc: d\r\n\r\n",
      "HTTP/1.1 200 OK\r\nA: b\rc: d\r\n\r\n",
      std::string("HTTP/1.1 200 OK\r\nA: b\0\r\n\r\n", 26),
      "HTTP/1.1 200 OK\r\nA: b\x7f\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: +3\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 3, 3\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 0x3\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length:\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 9999999999999999999\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nContent-Length: 4\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: identity\r\n\r\n",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: xchunked\r\n\r\n",
      // Only Beast refuses these.
      "HTTP/1.1 200 OK\r\nConnection: clo se\r\nContent-Length: 0\r\n\r\n",
      "HTTP/1.1 200 OK\r\nConnection: \"close\"\r\nContent-Length: 0\r\n\r\n",
      "HTTP/1.1 200 OK\r\nA: " + std::string(65'000, 'a') + "\r\n\r\n",
  };
  for (const std::string& row : rows) {
    SCOPED_TRACE(row.substr(0, 80));
    EXPECT_NE(Read(row).wrong, nullptr);
  }
  std::string many = "HTTP/1.1 200 OK\r\n";
  for (int i = 0; i < 256; ++i) many += "A: b\r\n";
  EXPECT_EQ(Read(many + "\r\n").wrong, nullptr);
  EXPECT_NE(Read(many + "A: b\r\n\r\n").wrong, nullptr);
}

TEST(ResponseReader, HeadersKeepTheirOrderAndRepetitionsWithNamesInLowerCase) {
  const ReaderOutcome out =
      Read("HTTP/1.1 200 OK\r\nB: 1\r\nX-A:\t2 \r\nB: 3\r\nEmpty:\r\nContent-Length: 0\r\n\r\n");
  const Headers expected = {
      {"b", "1"}, {"b", "3"}, {"x-a", "2"}, {"empty", ""}, {"content-length", "0"}};
  EXPECT_EQ(out.head.status, 200);
  EXPECT_EQ(out.head.headers, expected);
}

TEST(ResponseReader, BytesBehindTheResponseAreLeft) {
  EXPECT_EQ(Read("HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nabc").left, 2u);
  EXPECT_EQ(
      Read("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\na\r\n0\r\n\r\nHTTP").left,
      4u);
}

TEST(ResponseReader, ThePayloadOfOneChunkIsNotMoved) {
  ResponseReader reader;
  ResponseHead head;
  ASSERT_EQ(reader.ReadHead("HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", false, &head),
            nullptr);
  std::string bytes = "3\r\nabc\r\n";
  const ResponseReader::Body one = reader.ReadBody(bytes.data(), bytes.size());
  EXPECT_EQ(one.payload.data(), bytes.data() + 3);
  EXPECT_EQ(one.payload, "abc");
  EXPECT_EQ(one.consumed, bytes.size());
  // The payload of several chunks is one piece.
  bytes = "3\r\nabc\r\n2\r\nde\r\n1\r\nf\r\n7";
  const ResponseReader::Body several = reader.ReadBody(bytes.data(), bytes.size());
  EXPECT_EQ(several.payload, "abcdef");
  EXPECT_EQ(several.consumed, bytes.size() - 1);
}

}  // namespace
}  // namespace tollgate::http
