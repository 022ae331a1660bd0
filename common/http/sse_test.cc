#include "common/http/sse.h"

#include <gtest/gtest.h>

#include <string>
#include <vector>

namespace tollgate::http {
namespace {

using Events = std::vector<std::string>;  // "name|id|data"

void Drain(SseReader& reader, Events* events) {
  SseReader::Event event;
  while (reader.Next(&event) == SseReader::Status::kEvent) {
    events->push_back(std::string(event.name) + "|" + std::string(event.id) + "|" +
                      std::string(event.data));
  }
}

Events ReadInPieces(const std::string& text, const std::vector<size_t>& cuts) {
  SseReader reader;
  Events events;
  size_t begin = 0;
  for (size_t i = 0; i <= cuts.size(); ++i) {
    size_t end = i < cuts.size() ? cuts[i] : text.size();
    // A copy that is destroyed after use: ASan detects views that are kept too long.
    std::string piece = text.substr(begin, end - begin);
    reader.Feed(piece);
    Drain(reader, &events);
    begin = end;
  }
  return events;
}

struct Case {
  const char* name;
  std::string text;
  Events events;
};

const std::vector<Case>& Cases() {
  static const std::vector<Case> cases = {
      {"plain", "data: {\"a\":1}\n\ndata: [DONE]\n\n", {"||{\"a\":1}", "||[DONE]"}},
      {"crlf", "event: x\r\ndata: 1\r\n\r\ndata: 2\r\n\r\n", {"x||1", "||2"}},
      {"cr", "event: x\rdata: 1\r\rdata: 2\r\r", {"x||1", "||2"}},
      {"mixed ends", "data: 1\r\n\rdata: 2\n\r\ndata: 3\r\n\n", {"||1", "||2", "||3"}},
      {"several lines", "data: a\ndata:b\ndata\ndata:  c\n\n", {"||a\nb\n\n c"}},
      {"comments", ": hello\n\n:\ndata: 1\n: in between\n\n: end\n\n", {"||1"}},
      {"byte order mark",
       "\xEF\xBB\xBF"
       "data: 1\n\n",
       {"||1"}},
      {"no data, no event", "event: ping\n\nid: 4\n\ndata: 1\n\n", {"||1"}},
      {"empty data", "data:\n\ndata\n\n", {"||", "||"}},
      {"id and name", "id: 7\nevent: e\ndata: 1\nretry: 10\nother: x\n\n", {"e|7|1"}},
      {"unfinished", "data: 1\n\ndata: 2\n", {"||1"}},
      {"colon in value", "data: a: b\n\n", {"||a: b"}},
  };
  return cases;
}

TEST(SseReader, ReadsInOnePiece) {
  for (const Case& c : Cases()) EXPECT_EQ(ReadInPieces(c.text, {}), c.events) << c.name;
}

TEST(SseReader, SplitAtEveryPairOfPositions) {
  for (const Case& c : Cases()) {
    for (size_t first = 0; first <= c.text.size(); ++first) {
      for (size_t second = first; second <= c.text.size(); ++second) {
        ASSERT_EQ(ReadInPieces(c.text, {first, second}), c.events)
            << c.name << " split at " << first << " and " << second;
      }
    }
  }
}

TEST(SseReader, ByteByByte) {
  for (const Case& c : Cases()) {
    std::vector<size_t> cuts;
    for (size_t i = 1; i < c.text.size(); ++i) cuts.push_back(i);
    EXPECT_EQ(ReadInPieces(c.text, cuts), c.events) << c.name;
  }
}

TEST(SseReader, RejectsAnEventAboveTheLimit) {
  SseReader whole(100);
  SseReader::Event event;
  std::string big = "data: " + std::string(200, 'x') + "\n\n";
  whole.Feed(big);
  EXPECT_EQ(whole.Next(&event), SseReader::Status::kTooLarge);

  SseReader endless(100);
  std::string some(40, 'x');
  endless.Feed("data: ");
  SseReader::Status status = endless.Next(&event);
  for (int i = 0; i < 3 && status == SseReader::Status::kNeedMore; ++i) {
    endless.Feed(some);
    status = endless.Next(&event);
  }
  EXPECT_EQ(status, SseReader::Status::kTooLarge);
}

TEST(SseReader, TheLimitIsPerEvent) {
  SseReader reader(64);
  Events events;
  std::string text;
  for (int i = 0; i < 100; ++i) text += ": keep-alive\n\ndata: 0123456789\n\n";
  reader.Feed(text);
  Drain(reader, &events);
  EXPECT_EQ(events.size(), 100u);
  EXPECT_FALSE(reader.has_partial());
}

TEST(SseReader, DetectsAnIncompleteEvent) {
  SseReader reader;
  SseReader::Event event;
  EXPECT_FALSE(reader.has_partial());
  reader.Feed("data: 1\n");
  EXPECT_EQ(reader.Next(&event), SseReader::Status::kNeedMore);
  EXPECT_TRUE(reader.has_partial());
  reader.Feed("\n");
  EXPECT_EQ(reader.Next(&event), SseReader::Status::kEvent);
  EXPECT_EQ(reader.Next(&event), SseReader::Status::kNeedMore);
  EXPECT_FALSE(reader.has_partial());
}

TEST(SseWriter, RoundTrips) {
  std::string out;
  AppendSseComment(out, "keep-alive");
  AppendSseData(out, "{}");
  AppendSseEvent(out, "ping", "{\"type\":\"ping\"}");
  EXPECT_EQ(out, ": keep-alive\n\ndata: {}\n\nevent: ping\ndata: {\"type\":\"ping\"}\n\n");
  EXPECT_EQ(ReadInPieces(out, {}), (Events{"||{}", "ping||{\"type\":\"ping\"}"}));
}

}  // namespace
}  // namespace tollgate::http
