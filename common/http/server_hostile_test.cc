// Hostile framing, row by row of docs/design/hostile-inputs.md. Every row is sent over a real
// socket, in one write and byte by byte. A rejected request is followed by a well-formed one, which
// must not be handled.
#include <gtest/gtest.h>

#include <atomic>
#include <string>
#include <vector>

#include "common/http/testing/raw_client.h"
#include "common/http/testing/server_fixture.h"

namespace tollgate::http {
namespace {

using testing::TestClient;
using testing::TestServer;

class HostileFraming : public testing::TransportTest {};
INSTANTIATE_TEST_SUITE_P(Transports, HostileFraming, testing::kTransports, testing::TransportName);

struct Row {
  const char* name;
  std::string bytes;
};

std::string Head(const std::string& fields, const std::string& line = "POST /echo HTTP/1.1") {
  return line + "\r\nHost: t\r\n" + fields + "\r\n";
}
std::string Chunked(const std::string& body) {
  return Head("Transfer-Encoding: chunked\r\n") + body;
}
std::string HostileGet(const std::string& target) {
  return "GET " + target + " HTTP/1.1\r\nHost: t\r\n\r\n";
}
std::string Repeat(const std::string& text, size_t times) {
  std::string out;
  for (size_t i = 0; i < times; ++i) out += text;
  return out;
}
std::string Bytes(std::initializer_list<int> bytes) {
  std::string out;
  for (int byte : bytes) out.push_back(static_cast<char>(byte));
  return out;
}

// Sent after a rejected request; it must not be handled.
const std::string kSmuggled = "GET /smuggled HTTP/1.1\r\nHost: t\r\n\r\n";

const std::vector<Row>& RejectedRows() {
  static const std::vector<Row> rows = {
      {"H1 CL then TE", Head("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n") + "0\r\n\r\n"},
      {"H1 TE then CL", Head("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n") + "0\r\n\r\n"},
      {"H2 TE identity", Head("Transfer-Encoding: identity\r\n")},
      {"H2 TE xchunked", Head("Transfer-Encoding: xchunked\r\n")},
      {"H2 TE chunked, identity", Head("Transfer-Encoding: chunked, identity\r\n")},
      {"H3 TE gzip, chunked", Head("Transfer-Encoding: gzip, chunked\r\n") + "0\r\n\r\n"},
      {"H4 TE twice",
       Head("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n") + "0\r\n\r\n"},
      {"H5 TE on 1.0", Head("Transfer-Encoding: chunked\r\n", "POST /echo HTTP/1.0") + "0\r\n\r\n"},
      {"H6 TE folded", Head("Transfer-Encoding:\r\n chunked\r\n") + "0\r\n\r\n"},
      {"H7 TE with VT", Head("Transfer-Encoding: \x0b"
                             "chunked\r\n") +
                            "0\r\n\r\n"},
      {"H7 TE with NBSP", Head("Transfer-Encoding: \xa0"
                               "chunked\r\n") +
                              "0\r\n\r\n"},
      {"H7 TE quoted", Head("Transfer-Encoding: \"chunked\"\r\n") + "0\r\n\r\n"},
      {"H7 TE empty", Head("Transfer-Encoding:\r\n")},
      {"H8 CL same twice", Head("Content-Length: 1\r\nContent-Length: 1\r\n") + "x"},
      {"H8 CL different", Head("Content-Length: 1\r\nContent-Length: 2\r\n") + "xx"},
      {"H8 CL list", Head("Content-Length: 1, 1\r\n") + "x"},
      {"H9 CL +1", Head("Content-Length: +1\r\n") + "x"},
      {"H9 CL -1", Head("Content-Length: -1\r\n") + "x"},
      {"H9 CL 0x1", Head("Content-Length: 0x1\r\n") + "x"},
      {"H9 CL 1_0", Head("Content-Length: 1_0\r\n") + "x"},
      {"H9 CL 01", Head("Content-Length: 01\r\n") + "x"},
      {"H9 CL empty", Head("Content-Length:\r\n")},
      {"H9 CL inner space", Head("Content-Length: 1 0\r\n") + "x"},
      {"H10 CL 2^64-1", Head("Content-Length: 18446744073709551615\r\n")},
      {"H10 CL 2^64+1", Head("Content-Length: 18446744073709551617\r\n") + "x"},
      {"H10 CL 30 digits", Head("Content-Length: 123456789012345678901234567890\r\n")},
      {"H10 CL over the limit", Head("Content-Length: 16777217\r\n")},
      {"H11 size 0x1", Chunked("0x1\r\nx\r\n0\r\n\r\n")},
      {"H11 size +1", Chunked("+1\r\nx\r\n0\r\n\r\n")},
      {"H11 size -1", Chunked("-1\r\nx\r\n0\r\n\r\n")},
      {"H11 size empty", Chunked("\r\nx\r\n0\r\n\r\n")},
      {"H11 size spaced", Chunked(" 1\r\nx\r\n0\r\n\r\n")},
      {"H11 size padded", Chunked("1 \r\nx\r\n0\r\n\r\n")},
      {"H11 size 17 digits", Chunked("00000000000000001\r\nx\r\n0\r\n\r\n")},
      {"H11 size 2^64", Chunked("10000000000000000\r\nx\r\n0\r\n\r\n")},
      {"H11 size over the limit", Chunked("1000001\r\n")},
      {"H12 size line with LF", Chunked("1\nx\r\n0\r\n\r\n")},
      {"H12 size line with CR CR LF", Chunked("1\r\r\nx\r\n0\r\n\r\n")},
      {"H12 last line with LF", Chunked("1\r\nx\r\n0\r\n\n")},
      {"H13 data without CRLF", Chunked("1\r\nxy\r\n0\r\n\r\n")},
      {"H13 data with LF", Chunked("1\r\nx\n0\r\n\r\n")},
      {"H14 long extension", Chunked("1;" + std::string(5000, 'e') + "\r\nx\r\n0\r\n\r\n")},
      {"H14 many extensions",
       Chunked(Repeat("1;" + std::string(100, 'e') + "\r\nx\r\n", 50) + "0\r\n\r\n")},
      {"H14 control in extension", Chunked("1;a\x01\r\nx\r\n0\r\n\r\n")},
      {"H16 long trailers",
       Chunked("1\r\nx\r\n0\r\n" + Repeat("T: " + std::string(100, 't') + "\r\n", 90) + "\r\n")},
      {"H16 bad trailer", Chunked("1\r\nx\r\n0\r\nT: a\nb\r\n\r\n")},
      {"H16 folded trailer", Chunked("1\r\nx\r\n0\r\n T: a\r\n\r\n")},
      {"H16 trailer without a colon", Chunked("1\r\nx\r\n0\r\nTrailer\r\n\r\n")},
      {"H16 trailer with a space before the colon", Chunked("1\r\nx\r\n0\r\nT : a\r\n\r\n")},
      {"H16 trailer with an empty name", Chunked("1\r\nx\r\n0\r\n: a\r\n\r\n")},
      {"H17 bare LF", "GET /echo HTTP/1.1\nHost: t\n\n"},
      {"H17 one bare LF", "GET /echo HTTP/1.1\r\nHost: t\nA: b\r\n\r\n"},
      {"H17 bare LF at the end", "GET /echo HTTP/1.1\r\nHost: t\r\n\n"},
      {"H17 bare CR", "GET /echo HTTP/1.1\r\nHost: t\rA: b\r\n\r\n"},
      {"H17 CR in the line", "GET /echo\r HTTP/1.1\r\nHost: t\r\n\r\n"},
      {"H18 NUL in value", Head("A: b" + Bytes({0}) + "c\r\n")},
      {"H18 NUL in name", Head("A" + Bytes({0}) + ": b\r\n")},
      {"H18 0x01 in value", Head("A: b\x01"
                                 "c\r\n")},
      {"H18 DEL in value", Head("A: b\x7f\r\n")},
      {"H18 DEL in name", Head("A\x7f: b\r\n")},
      {"H18 non-ASCII name", Head("A\xc3\xa9: b\r\n")},
      {"H19 space before colon", Head("Content-Length : 1\r\n") + "x"},
      {"H19 tab before colon", Head("Content-Length\t: 1\r\n") + "x"},
      {"H19 leading space", "GET /echo HTTP/1.1\r\n Host: t\r\n\r\n"},
      {"H19 no colon", Head("Nonsense\r\n")},
      {"H19 empty name", Head(": value\r\n")},
      {"H20 folded header", Head("A: b\r\n c\r\n")},
      {"H20 folded with tab", Head("A: b\r\n\tc\r\n")},
      {"H21 no Host", "GET /echo HTTP/1.1\r\nA: b\r\n\r\n"},
      {"H21 two Hosts", Head("Host: t\r\n")},
      {"H21 empty Host", "GET /echo HTTP/1.1\r\nHost:\r\n\r\n"},
      {"H21 list in Host", "GET /echo HTTP/1.1\r\nHost: a, b\r\n\r\n"},
      {"H21 userinfo in Host", "GET /echo HTTP/1.1\r\nHost: a@b\r\n\r\n"},
      {"H22 too many fields", Head(Repeat("a: b\r\n", 101))},
      {"H22 8,000 tiny fields", Head(Repeat("a:\r\n", 8000))},
      {"H23 64 KiB head", Head("A: " + std::string(64 * 1024, 'a') + "\r\n")},
      {"H23 64 KiB head without an end", Head("A: " + std::string(64 * 1024, 'a'))},
      {"H24 9 KiB target", HostileGet("/" + std::string(9 * 1024, 'a'))},
      {"H24 9 KiB target without an end", "GET /" + std::string(9 * 1024, 'a')},
      {"H25 absolute form", HostileGet("http://t/echo")},
      {"H25 star", HostileGet("*")},
      {"H25 exclamation mark", HostileGet("!")},
      {"H25 fragment", HostileGet("/echo#fragment")},
      {"H25 byte above 0x7f", HostileGet("/echo\xc3\xa9")},
      {"H25 control", HostileGet("/echo\x01")},
      {"H25 tab", HostileGet("/echo\tx")},
      {"H25 DEL", HostileGet("/echo\x7f")},
      {"H25 two spaces", "GET  /echo HTTP/1.1\r\nHost: t\r\n\r\n"},
      {"H25 space at the end", "GET /echo HTTP/1.1 \r\nHost: t\r\n\r\n"},
      {"H27 CONNECT", "CONNECT t:443 HTTP/1.1\r\nHost: t\r\n\r\n"},
      {"H27 method with colon", "GE:T /echo HTTP/1.1\r\nHost: t\r\n\r\n"},
      {"H28 HTTP/0.9", "GET /echo\r\n"},
      {"H28 HTTP/1.2", "GET /echo HTTP/1.2\r\nHost: t\r\n\r\n"},
      {"H28 HTTP/2.0", "GET /echo HTTP/2.0\r\nHost: t\r\n\r\n"},
      {"H28 http/1.1", "GET /echo http/1.1\r\nHost: t\r\n\r\n"},
      {"H28 HTTP/01.1", "GET /echo HTTP/01.1\r\nHost: t\r\n\r\n"},
      {"H28 h2 preface", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"},
      {"H28 TLS hello", Bytes({0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00, 0x0a, 0x01})},
      {"H30 Expect and oversize", Head("Content-Length: 99999999\r\nExpect: 100-continue\r\n")},
      {"H30 unknown Expect", Head("Content-Length: 1\r\nExpect: 200-maybe\r\n") + "x"},
      {"two Content-Types",
       Head("Content-Type: a/b\r\nContent-Type: a/b\r\nContent-Length: 0\r\n")},
      {"two X-Request-Ids", Head("X-Request-Id: a\r\nX-Request-Id: b\r\nContent-Length: 0\r\n")},
      {"empty line first", "\r\nGET /echo HTTP/1.1\r\nHost: t\r\n\r\n"},
  };
  return rows;
}

void ExpectRejected(const Row& row, bool byte_by_byte, TestServer& server) {
  SCOPED_TRACE(std::string(row.name) + (byte_by_byte ? ", byte by byte" : ""));
  int handled = server.handled();
  TestClient client(server);
  ASSERT_TRUE(client.connected());
  if (byte_by_byte) {
    client.WriteByteByByte(row.bytes + kSmuggled);
  } else {
    client.Write(row.bytes + kSmuggled);
  }
  const std::string& response = client.ReadToEnd();
  EXPECT_TRUE(client.closed());
  EXPECT_TRUE(response.starts_with("HTTP/1.1 400 Bad Request\r\n")) << response.substr(0, 200);
  EXPECT_EQ(testing::Count(response, "HTTP/1.1 "), 1) << response;
  EXPECT_NE(response.find("\r\nconnection: close\r\n"), std::string::npos) << response;
  EXPECT_NE(response.find("\r\nx-request-id: "), std::string::npos);
  EXPECT_NE(response.find("\r\nrequest-id: "), std::string::npos);
  EXPECT_EQ(server.handled(), handled);
}

TEST_P(HostileFraming, RejectedInOneWrite) {
  TestServer server(GetParam());
  for (const Row& row : RejectedRows()) ExpectRejected(row, false, server);
}

TEST_P(HostileFraming, RejectedByteByByte) {
  TestServer server(GetParam());
  for (const Row& row : RejectedRows()) {
    // Longer rows would take too long byte by byte.
    if (row.bytes.size() < 20'000) ExpectRejected(row, true, server);
  }
}

struct Accepted {
  const char* name;
  std::string bytes;
  std::string body;  // the body that the handler echoed
};

TEST_P(HostileFraming, AcceptedForms) {
  const std::vector<Accepted> rows = {
      {"counted", Head("Content-Length: 3\r\n") + "abc", "abc"},
      {"chunked in any case", Head("Transfer-Encoding: ChunKed\r\n") + "1\r\nx\r\n0\r\n\r\n", "x"},
      {"chunked", Chunked("3\r\nabc\r\n2\r\nde\r\n0\r\n\r\n"), "abcde"},
      {"H13 sizes in either case, zeros before",
       Chunked("00A\r\n0123456789\r\na\r\n0123456789\r\n0\r\n\r\n"), "01234567890123456789"},
      {"H14 short extension", Chunked("3;a=b;c=\"d e\"\r\nabc\r\n0;last\r\n\r\n"), "abc"},
      {"H15 trailers",
       Chunked("3\r\nabc\r\n0\r\nAuthorization: Bearer x\r\nHost: y\r\nContent-Length: 9\r\n\r\n"),
       "abc"},
      {"H29 upgrade ignored",
       Head("Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: "
            "x\r\nContent-Length: 1\r\n") +
           "u",
       "u"},
      {"H32 a request inside a body",
       Head("Content-Length: 37\r\n") + "GET /smuggled HTTP/1.1\r\nHost: t\r\n\r\nxx",
       "GET /smuggled HTTP/1.1\r\nHost: t\r\n\r\nxx"},
      {"space around values", Head("Content-Length: \t 3 \t\r\nA:b\r\n") + "abc", "abc"},
      {"obs-text in a value", Head("A: \xf0\x9f\x98\x80\r\nContent-Length: 1\r\n") + "x", "x"},
      {"no body", HostileGet("/echo?a=b|c[]"), ""},
      {"100 fields",
       "POST /echo HTTP/1.1\r\nHost: t\r\n" + Repeat("a: b\r\n", 98) + "Content-Length: 1\r\n\r\nx",
       "x"},
  };
  TestServer server(GetParam());
  for (const Accepted& row : rows) {
    for (bool byte_by_byte : {false, true}) {
      SCOPED_TRACE(row.name);
      TestClient client(server);
      if (byte_by_byte) {
        client.WriteByteByByte(row.bytes);
      } else {
        client.Write(row.bytes);
      }
      std::string end = "\r\n\r\n" + row.body;
      const std::string& response = client.ReadUntil(end);
      EXPECT_TRUE(response.starts_with("HTTP/1.1 200 OK\r\n")) << response;
      EXPECT_TRUE(response.ends_with(end)) << response;
      EXPECT_EQ(response.find("connection: close"), std::string::npos);
      // The connection is still usable.
      client.ClearReceived();
      client.Write(HostileGet("/stream"));
      EXPECT_TRUE(client.ReadUntil("0\r\n\r\n").ends_with("0\r\n\r\n"));
    }
  }
}

TEST_P(HostileFraming, TwoCredentialsAreJoinedH42) {
  TestServer server(GetParam());
  TestClient client(server);
  client.Write(Head("Authorization: Bearer a\r\nAuthorization: Bearer b\r\n",
                    "GET /authorization HTTP/1.1"));
  EXPECT_NE(client.ReadUntil("]").find("[Bearer a, Bearer b]"), std::string::npos);
}

TEST_P(HostileFraming, TrailersNeverAuthenticateH15) {
  TestServer server(GetParam());
  TestClient client(server);
  client.Write(Head("Transfer-Encoding: chunked\r\n", "POST /authorization HTTP/1.1") +
               "1\r\nx\r\n0\r\nAuthorization: Bearer a\r\n\r\n");
  EXPECT_NE(client.ReadUntil("]").find("\r\n\r\n[]"), std::string::npos);
}

// One of the two parsers accepts each form, but they read it differently.
TEST_P(HostileFraming, RefusesWhatTheGuardAndBeastUnderstandDifferently) {
  std::atomic<int> disagreements = 0;
  ServerOptions options;
  options.on_done = [&](const HttpRequest&, const RequestSummary& summary) {
    if (summary.parsers_disagreed) ++disagreements;
  };
  TestServer server(GetParam(), options);
  const std::vector<Row> rows = {
      {"close and keep-alive", Head("Connection: close, keep-alive\r\n", "GET /echo HTTP/1.0")},
      {"no list of tokens", Head("Connection: \"close\"\r\n", "GET /echo HTTP/1.1")},
  };
  for (const Row& row : rows) ExpectRejected(row, false, server);
  EXPECT_EQ(disagreements, static_cast<int>(rows.size()));
  ExpectRejected({"bad to both", Head("Content-Length: x\r\n")}, false, server);
  EXPECT_EQ(disagreements, static_cast<int>(rows.size()));
}

// Beast cannot hold such a field, whatever limit is configured for heads.
TEST_P(HostileFraming, RefusesAFieldOf64KiBAlsoWithALargerHeadH23) {
  ServerOptions options;
  options.max_head_bytes = 256 * 1024;
  TestServer server(GetParam(), options);
  ExpectRejected({"field of 66,000 bytes", Head("A: " + std::string(66'000, 'a') + "\r\n")}, false,
                 server);
}

TEST_P(HostileFraming, PathsAreNotNormalisedH26) {
  TestServer server(GetParam());
  for (const char* path :
       {"//echo", "/%65cho", "/x/../echo", "/echo%00", "/echo/", "/ECHO", "/echo/."}) {
    TestClient client(server);
    client.Write(HostileGet(path));
    EXPECT_TRUE(client.ReadUntil("no such path").starts_with("HTTP/1.1 404 ")) << path;
  }
}

TEST_P(HostileFraming, RespondsToManyPipelinedRequestsInOrderH31) {
  TestServer server(GetParam());
  TestClient client(server);
  std::string all;
  for (int i = 0; i < 1000; ++i) {
    std::string body = "<" + std::to_string(i) + ">";
    all += Head("Content-Length: " + std::to_string(body.size()) + "\r\n") + body;
  }
  // Written from another thread: the server reads only a part of it before it responds.
  std::thread writer([&] { client.Write(all); });
  const std::string& responses = client.ReadUntil("<999>");
  writer.join();
  size_t at = 0;
  for (int i = 0; i < 1000; ++i) {
    at = responses.find("<" + std::to_string(i) + ">", at);
    ASSERT_NE(at, std::string::npos) << i;
  }
  EXPECT_EQ(testing::Count(responses, "HTTP/1.1 200 OK"), 1000);
}

}  // namespace
}  // namespace tollgate::http
