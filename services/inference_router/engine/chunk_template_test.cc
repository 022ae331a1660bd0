// Chunks that are similar to the last one are not parsed; the events are the same.
#include "services/inference_router/engine/chunk_template.h"

#include <gtest/gtest.h>

#include <random>

#include "services/inference_router/engine/chunk_reader.h"

namespace tollgate::inference_router {
namespace {

using inference::v1::Event;

// Everything that a reader reports about a chunk.
std::string Told(ChunkReader& reader, const std::string& chunk) {
  std::vector<Event> events;
  const auto status = reader.Read(chunk, events);
  std::string told = std::to_string(static_cast<int>(status)) + (reader.finished() ? "f" : "");
  for (Event& event : events) {
    // Ids are random if the engine sends none.
    for (auto& call : *event.mutable_delta()->mutable_tool_calls()) call.clear_id_json();
    told += "|" + event.SerializeAsString();
  }
  if (const auto& usage = reader.usage()) {
    told += "|" + std::to_string(usage->prompt_tokens.value_or(-1)) + "," +
            std::to_string(usage->completion_tokens.value_or(-1)) + "," +
            std::to_string(usage->cached_tokens) + "," + std::to_string(usage->cache_write_tokens) +
            "," + std::to_string(usage->reasoning_tokens) + "," + std::to_string(usage->choice);
  }
  return told;
}

std::string Chunk(const std::string& text, int completion, const std::string& member = "content") {
  return R"({"id":"x","choices":[{"index":0,"delta":{")" + member + R"(":")" + text +
         R"("},"finish_reason":null}],"usage":{"prompt_tokens":7,"total_tokens":)" +
         std::to_string(completion + 7) + R"(,"completion_tokens":)" + std::to_string(completion) +
         R"(,"prompt_tokens_details":{"cached_tokens":3}}})";
}

TEST(ChunkTemplate, MatchesAChunkWithAnotherTextAndOtherCounts) {
  const std::string first = Chunk("Hello", 1);
  const auto document = json::Document::ParseView(first);
  ASSERT_TRUE(document.ok());
  const json::Value root = document->root();
  const json::Value text = (*root.Find("choices").begin()).Find("delta").Find("content");
  ChunkTemplate chunk;
  EngineUsage usage{.prompt_tokens = 7, .completion_tokens = 1, .cached_tokens = 3, .choice = 0};
  chunk.Learn(first, text, root.Find("usage"), usage);
  const std::string second = Chunk("caf\xc3\xa9 \\n", 12);
  const auto values = chunk.Match(second);
  ASSERT_TRUE(values);
  EXPECT_EQ(values->text, "caf\xc3\xa9 \\n");
  EXPECT_EQ(values->usage->completion_tokens, 12);
  EXPECT_EQ(values->usage->prompt_tokens, 7);
  EXPECT_EQ(values->usage->cached_tokens, 3);
  for (const char* text_that_needs_a_parser : {"", "\\u00e9", "\\x", "a\tb", "\xff", "\\"}) {
    EXPECT_FALSE(chunk.Match(Chunk(text_that_needs_a_parser, 2))) << text_that_needs_a_parser;
  }
  EXPECT_FALSE(chunk.Match(second + " "));
  EXPECT_FALSE(chunk.Match(second.substr(0, second.size() - 1)));
  EXPECT_FALSE(chunk.Match(Chunk("a", 1, "reasoning")));
  EXPECT_FALSE(chunk.Match(R"({"id":"x"})"));
}

TEST(ChunkTemplate, CountsArePlainWholeNumbersOnly) {
  ChunkReader similar({}), parsed({.templates = false});
  const auto with = [](const std::string& count) {
    return R"({"choices":[{"index":0,"delta":{"content":"a"}}],"usage":{"completion_tokens":)" +
           count + "}}";
  };
  for (const char* count : {"1", "2", "03", "2.0", "2e1", "-1", "1234567890123456", "9", "null",
                            "10", "999999999999999", "99999999999999999999", "11"}) {
    EXPECT_EQ(Told(similar, with(count)), Told(parsed, with(count))) << count;
    if (std::string(count) == "03") {  // not JSON, so the stream ends
      similar = ChunkReader({});
      parsed = ChunkReader({.templates = false});
    }
  }
}

TEST(ChunkTemplate, ReadsWhatTheParserReads) {
  const std::vector<std::string> texts = {
      "a",  " b",      "\\n", "\\\"", "caf\xc3\xa9", "\\ud83d", "\\ude00", "",
      "\\", "\\u0000", "{}",  "\xff", "\x01",        "\\q",     "\",",     "\\/\\b"};
  const std::vector<std::string> chunks = {
      R"({"choices":[{"index":0,"delta":{"content":"%"}}]})",
      R"({"choices":[{"index":1,"delta":{"content":"%"}}]})",
      R"({"choices":[{"index":0,"delta":{"reasoning_content":"%"}}]})",
      R"({"choices":[{"index":0,"delta":{"reasoning_content":"","reasoning":"%"}}]})",
      R"({"choices":[{"index":0,"delta":{"content":"%","refusal":"%"}}]})",
      R"({"choices":[{"index":0,"delta":{"content":"%","reasoning":"%"}}]})",
      R"({"choices":[{"index":0,"text":"%"}]})",
      R"({"usage":{"completion_tokens":#},"choices":[{"index":0,"delta":{"content":"%"}}]})",
      R"({"choices":[{"index":0,"delta":{"content":"%"}}],"usage":{"completion_tokens":#,)"
      R"("prompt_tokens":#,"completion_tokens_details":{"reasoning_tokens":#}}})",
      R"({"choices":[{"index":0,"delta":{"content":"%"},"logprobs":{"content":[#]}}]})",
      R"({"choices":[{"index":0,"delta":{"content":"%","tool_calls":[{"index":0,"id":"c","function":)"
      R"({"name":"f","arguments":"%"}}]}}]})",
      R"({"choices":[{"index":0,"delta":{"content":"%"},"finish_reason":"%"}]})",
      R"({"choices":[{"index":5,"delta":{"content":"%"}}]})",
      R"({"choices":[{"index":0,"delta":{"content":"%"}},{"index":1,"delta":{"content":"%"}}]})",
      R"({"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]})",
      R"({"error":{"message":"%"}})",
  };
  std::mt19937 random(5);
  const auto below = [&](size_t count) { return random() % count; };
  for (int stream = 0; stream < 3000; ++stream) {
    ChunkReader::Options options{.choices = 2};
    if (below(5) == 0) options.kind = inference::v1::REQUEST_KIND_COMPLETION;
    if (below(10) == 0) options.max_answer_bytes = 300;
    ChunkReader similar(options);
    options.templates = false;
    ChunkReader parsed(options);
    std::string pattern = chunks[0];
    for (int i = 0; i < 20; ++i) {
      if (below(4) == 0) pattern = chunks[below(chunks.size())];
      std::string chunk;
      for (const char c : pattern) {
        if (c == '%') {
          chunk += texts[below(4) > 0 ? below(5) : below(texts.size())];
        } else if (c == '#') {
          chunk += std::to_string(below(200));
        } else {
          chunk += c;
        }
      }
      if (below(10) == 0) chunk[below(chunk.size())] = static_cast<char>(below(256));
      if (below(20) == 0) chunk.erase(below(chunk.size()), 1 + below(3));
      const std::string told = Told(parsed, chunk);
      ASSERT_EQ(Told(similar, chunk), told) << "stream " << stream << ": " << chunk;
    }
  }
}

}  // namespace
}  // namespace tollgate::inference_router
