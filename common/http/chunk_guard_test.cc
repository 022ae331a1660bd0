#include "common/http/chunk_guard.h"

#include <gtest/gtest.h>

#include <boost/beast/http/parser.hpp>
#include <boost/beast/http/string_body.hpp>
#include <string>
#include <vector>

namespace tollgate::http {
namespace {

namespace beast_http = boost::beast::http;
using GuardKind = ChunkGuard::Kind;
using Parser = beast_http::response_parser<beast_http::string_body>;

constexpr std::string_view kHead = "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n";

bool Put(Parser& parser, std::string_view bytes) {
  boost::system::error_code error;
  while (!bytes.empty()) {
    const size_t used = parser.put(boost::asio::buffer(bytes.data(), bytes.size()), error);
    if (error && error != beast_http::error::need_more) return false;
    if (used == 0) return false;
    bytes.remove_prefix(used);
  }
  return true;
}

struct GuardOutcome {
  GuardKind kind = GuardKind::kNeedMore;  // of the last piece
  std::string body;                       // as parsed by Beast
  size_t consumed = 0;
  bool done = false;
  int fields = 0;
};

// Passes the body to the guard in steps, keeps unconsumed bytes as a connection does, and passes
// the pieces to Beast. Checks that both agree on each piece.
GuardOutcome Read(std::string_view body, const ChunkLimits& limits, size_t step) {
  Parser parser;
  parser.body_limit(boost::none);
  EXPECT_TRUE(Put(parser, kHead));
  ChunkGuard guard(limits);
  GuardOutcome out;
  std::string held;
  size_t come = 0;
  bool open = true;
  while (open && come < body.size()) {
    held.append(body.substr(come, step));
    come = std::min(come + step, body.size());
    ChunkGuard::Piece piece;
    do {
      const size_t before = parser.get().body().size();
      piece = guard.Next(held);
      out.kind = piece.kind;
      EXPECT_TRUE(Put(parser, piece.feed)) << body;
      const size_t produced = parser.get().body().size() - before;
      EXPECT_EQ(produced, piece.kind == GuardKind::kPayload ? piece.feed.size() : 0u) << body;
      EXPECT_EQ(parser.is_done(), piece.kind == GuardKind::kEnd) << body;
      out.consumed += piece.consumed;
      held.erase(0, piece.consumed);
      open = piece.kind == GuardKind::kLine || piece.kind == GuardKind::kPayload;
    } while (open);
    open = piece.kind == GuardKind::kNeedMore;
  }
  EXPECT_EQ(guard.payload_bytes(), parser.get().body().size());
  out.body = parser.get().body();
  out.done = parser.is_done();
  for (const auto& field : parser.get()) out.fields += field.name_string().empty() ? 0 : 1;
  return out;
}

const ChunkLimits kPadded = {.max_padding_bytes = 64};

TEST(ChunkGuard, GuardAndParserReadTheSamePayloadHoweverTheBytesArrive) {
  struct Row {
    std::string body;
    std::string payload;
    ChunkLimits limits = {};
  };
  const std::vector<Row> rows = {
      {"0\r\n\r\n", ""},
      {"5\r\nhello\r\n0\r\n\r\n", "hello"},
      {"5\r\nhello\r\n00A\r\n, worlds!!\r\n0\r\n\r\n", "hello, worlds!!"},
      {"00000000000000f\r\n123456789abcdef\r\n000\r\n\r\n", "123456789abcdef"},
      {"2;a=b;c=\"d\te\"\r\n\r\n\r\n0;x\r\n\r\n", "\r\n"},
      {"3  \r\nabc\r\n2 \t;x\r\nde\r\n0 \r\n\r\n", "abcde", kPadded},
      {"1\r\na\r\n0\r\nA: b\r\nEmpty:\r\n\r\n", "a"},
      // A trailer becomes neither a header nor the next response.
      {"1\r\na\r\n0\r\nAuthorization: Bearer x\r\nContent-Length: 7\r\nTransfer-Encoding: "
       "identity\r\nConnection: close\r\n\r\n",
       "a"},
  };
  for (const Row& row : rows) {
    for (const size_t step : {1, 2, 3, 7, 1000}) {
      SCOPED_TRACE(row.body + " in steps of " + std::to_string(step));
      const GuardOutcome out = Read(row.body, row.limits, step);
      EXPECT_EQ(out.kind, GuardKind::kEnd);
      EXPECT_TRUE(out.done);
      EXPECT_EQ(out.body, row.payload);
      EXPECT_EQ(out.consumed, row.body.size());
      EXPECT_EQ(out.fields, 1);
    }
  }
}

TEST(ChunkGuard, TheBytesAfterTheBodyAreNotConsumed) {
  const std::string body = "1\r\na\r\n0\r\nT: x\r\n\r\n";
  const GuardOutcome out = Read(body + "HTTP/1.1 200 OK\r\n", {}, 1000);
  EXPECT_EQ(out.kind, GuardKind::kEnd);
  EXPECT_EQ(out.consumed, body.size());
}

TEST(ChunkGuard, RefusesAtTheFirstByteThatCannotBeRight) {
  // The last byte of each row is wrong.
  const std::vector<std::string> rows = {
      "g",
      "+",
      "-",
      " ",
      "\t",
      ";",
      "\r",
      "\n",
      "0x",
      "1 ",
      "1\t",
      "1,",
      "1\n",
      "1\rx",
      "1\r\r",
      std::string("1\0", 2),
      std::string(16, '0'),
      "fffffffffffffff0",
      "1;a\n",
      "1;\x01",
      "1;\x7f",
      std::string("1;\0", 3),
      "1;a\r;",
      "1;" + std::string(4096, 'a'),
      "1\r\nab",
      "1\r\na\n",
      "1\r\na\r\r",
      "1\r\na\rx",
      "1\r\na\r\n\r",
      "0\r\n\n",
      "0\r\n\rx",
      "0\r\n:",
      "0\r\n ",
      "0\r\n\t",
      "0\r\nA\r",
      "0\r\nA\n",
      "0\r\nA ",
      "0\r\nA\t",
      "0\r\n(",
      "0\r\n\xe4",
      "0\r\nA: b\r\n ",
      "0\r\nA: b\r\n\t",
      "0\r\nA: \x01",
      "0\r\nA: b\n",
      "0\r\nA: b\rx",
      std::string("0\r\nA: \0", 7),
      "0\r\nA:" + std::string(8191 - 2, 'b'),
      "0\r\nA:" + std::string(5000 - 4, 'b') + "\r\n" + std::string(3192 - 1, 'b'),
  };
  for (const std::string& row : rows) {
    for (const size_t step : {size_t{1}, row.size()}) {
      SCOPED_TRACE(row.substr(0, 40) + " in steps of " + std::to_string(step));
      EXPECT_EQ(Read(row, {}, step).kind, GuardKind::kBad);
      // Without its last byte the row is only incomplete.
      EXPECT_NE(Read(row.substr(0, row.size() - 1), {}, step).kind, GuardKind::kBad);
    }
  }
}

TEST(ChunkGuard, ExtensionsAreLimitedOverAllChunks) {
  std::string body;
  for (int i = 0; i < 40; ++i) body += "1;" + std::string(99, 'x') + "\r\na\r\n";
  EXPECT_EQ(Read(body + "0\r\n\r\n", {}, 1000).kind, GuardKind::kEnd);
  for (int i = 0; i < 2; ++i) body += "1;" + std::string(99, 'x') + "\r\na\r\n";
  EXPECT_EQ(Read(body + "0\r\n\r\n", {}, 1000).kind, GuardKind::kBad);
}

TEST(ChunkGuard, PaddingIsLimitedInOneLineAndNotInALongAnswer) {
  std::string body;
  for (int i = 0; i < 20'000; ++i) body += "1" + std::string(7, ' ') + "\r\na\r\n";
  const GuardOutcome out = Read(body + "0       \r\n\r\n", kPadded, 8192);
  EXPECT_EQ(out.kind, GuardKind::kEnd);
  EXPECT_EQ(out.body.size(), 20'000u);
  EXPECT_EQ(Read("1" + std::string(64, ' ') + "\r\na\r\n0\r\n\r\n", kPadded, 1).kind,
            GuardKind::kEnd);
  EXPECT_EQ(Read("1" + std::string(65, ' '), kPadded, 1).kind, GuardKind::kBad);
  EXPECT_EQ(Read("1 x", kPadded, 1).kind, GuardKind::kBad);
  EXPECT_EQ(Read(" 1", kPadded, 1).kind, GuardKind::kBad);
}

TEST(ChunkGuard, TheBodyIsLimitedBeforeItsBytesArrive) {
  const ChunkLimits limits = {.max_body_bytes = 10};
  EXPECT_EQ(Read("5\r\nhello\r\n5\r\nworld\r\n0\r\n\r\n", limits, 1).kind, GuardKind::kEnd);
  EXPECT_EQ(Read("5\r\nhello\r\n6\r\n", limits, 1).kind, GuardKind::kTooLarge);
  EXPECT_EQ(Read("fffffffffffffff\r\n", limits, 1).kind, GuardKind::kTooLarge);
  // Sums do not overflow.
  std::string huge = "1\r\na\r\n";
  EXPECT_EQ(Read(huge + "fffffffffffffff\r\n", {.max_body_bytes = (1ull << 60) - 1}, 1).kind,
            GuardKind::kTooLarge);
}

}  // namespace
}  // namespace tollgate::http
