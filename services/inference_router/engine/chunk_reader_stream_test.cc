// SSE reader and chunk reader together: the events do not depend on how the bytes are split.
#include <gtest/gtest.h>

#include "common/http/sse.h"
#include "services/inference_router/engine/chunk_reader.h"

namespace tollgate::inference_router {
namespace {

using inference::v1::Event;

struct Read {
  std::string events;
  std::string usage;
  bool done = false;
  bool failed = false;
  friend bool operator==(const Read&, const Read&) = default;
};

Read ReadPieces(const std::vector<std::string_view>& pieces) {
  http::SseReader sse;
  ChunkReader reader(ChunkReader::Options{.choices = 2});
  Read read;
  std::vector<Event> events;
  for (std::string_view piece : pieces) {
    // A separate buffer, as in a socket read: nothing may point into it later.
    const std::string bytes(piece);
    sse.Feed(bytes);
    http::SseReader::Event event;
    while (sse.Next(&event) == http::SseReader::Status::kEvent) {
      const auto status = reader.Read(event.data, events);
      read.done = read.done || status == ChunkReader::Status::kDone;
      read.failed = read.failed || status == ChunkReader::Status::kError;
      if (reader.usage()) read.usage += std::to_string(*reader.usage()->completion_tokens) + ";";
    }
  }
  for (const Event& event : events) read.events += event.SerializeAsString() + "|";
  return read;
}

std::string Stream(const std::string& end_of_line) {
  const char* lines[] = {
      ": a comment",
      "",
      R"(data: {"choices":[{"index":0,"delta":{"role":"assistant","content":""}}]})",
      "",
      R"(data: {"choices":[{"index":0,"delta":{"reasoning":"think \u00e9"}}],"usage":{"prompt_tokens":5,"completion_tokens":1}})",
      "",
      R"(data: {"choices":[{"index":1,"delta":{"content":"caf)"
      "\xc3\xa9"
      R"( \ud83d\ude00"}}]})",
      "",
      R"(data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\""}},{"index":1,"id":"b","function":{"name":"g","arguments":""}}]}}]})",
      "",
      R"(data: {"choices":[{"index":0,"delta":{"tool_calls":[{"index":1,"function":{"arguments":"{}"}},)",
      R"(data: {"index":0,"function":{"arguments":":1}"}}]}}]})",
      "",
      R"(data: {"choices":[{"index":0,"delta":{},"finish_reason":"tool_calls"},{"index":1,"delta":{},"finish_reason":"length"}]})",
      "",
      R"(data: {"choices":[],"usage":{"prompt_tokens":5,"completion_tokens":9}})",
      "",
      "data: [DONE]",
      "",
  };
  std::string stream;
  for (const char* line : lines) stream += line + end_of_line;
  return stream;
}

TEST(ChunkReaderStream, EventsAreTheSameForASplitAtEveryByte) {
  const Read whole = ReadPieces({Stream("\n")});
  EXPECT_TRUE(whole.done);
  EXPECT_FALSE(whole.failed);
  EXPECT_EQ(whole.usage, "1;9;");
  for (const char* end_of_line : {"\n", "\r\n", "\r"}) {
    const std::string stream = Stream(end_of_line);
    for (size_t cut = 0; cut <= stream.size(); ++cut) {
      const std::string_view view = stream;
      ASSERT_EQ(ReadPieces({view.substr(0, cut), view.substr(cut)}), whole) << cut;
    }
    std::vector<std::string_view> bytes;
    for (size_t i = 0; i < stream.size(); ++i)
      bytes.push_back(std::string_view(stream).substr(i, 1));
    EXPECT_EQ(ReadPieces(bytes), whole);
  }
}

TEST(ChunkReaderStream, ATruncatedStreamYieldsAPrefixOfTheEvents) {
  const std::string stream = Stream("\n");
  const Read whole = ReadPieces({stream});
  for (size_t length = 0; length < stream.size(); ++length) {
    const Read part = ReadPieces({std::string_view(stream).substr(0, length)});
    EXPECT_EQ(whole.events.substr(0, part.events.size()), part.events) << length;
    EXPECT_FALSE(part.failed) << length;
    EXPECT_FALSE(part.done) << length;
  }
}

}  // namespace
}  // namespace tollgate::inference_router
