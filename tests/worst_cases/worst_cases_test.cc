// The work for a request body must be proportional to its length: the test counts the bytes of
// string literals that the JSON reader and a surface read (not the time) for the worst bodies
// within the limits. No event loop does this work for a large body.
#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

#include "common/json/json.h"
#include "common/json/work.h"
#include "gateway/pipeline/surface.h"
#include "gateway/surfaces/chat_completions/chat_surface.h"
#include "gateway/surfaces/completions/completions_surface.h"
#include "gateway/surfaces/embeddings/embeddings_surface.h"
#include "gateway/surfaces/messages/messages_surface.h"
#include "gateway/surfaces/responses/responses_surface.h"
#include "gateway/testing/pipeline_fakes.h"

namespace tollgate::gateway {
namespace {

// "\u0061\u0062…": each character as an escape of six bytes.
std::string Escaped(std::string_view text) {
  static constexpr char kHex[] = "0123456789abcdef";
  std::string out;
  for (const unsigned char c : text) {
    out += "\\u00";
    out += kHex[c >> 4];
    out += kHex[c & 15];
  }
  return out;
}

std::string Repeated(int count, const std::string& item) {
  std::string out;
  for (int i = 0; i < count; ++i) out += (i > 0 ? "," : "") + item;
  return out;
}

// Members `"key N":1`, with all keys escaped.
std::string EscapedMembers(int count, const std::string& prefix, size_t characters) {
  std::string out;
  for (int i = 0; i < count; ++i) {
    std::string key = prefix + std::to_string(i);
    key.resize(std::max(characters, key.size()), 'x');
    out += ",\"" + Escaped(key) + "\":1";
  }
  return out;
}

struct Body {
  const char* name;
  // Members after `"model":"a/b"` in the object.
  std::string members;
};

std::vector<Body> Bodies() {
  const std::string user = "\"" + Escaped("user") + "\"";
  const std::string message = R"({"role":)" + user + R"(,"content":")" + Escaped("hi") + "\"}";
  const std::string part = R"({"type":")" + Escaped("text") + R"(","text":"x"})";
  const std::string tool = R"({"type":")" + Escaped("function") + R"(","function":{"name":"f")" +
                           EscapedMembers(15, "p", 12) + "}}";
  std::string deep = "1";
  for (int i = 0; i < 60; ++i) deep = "[" + deep + "]";
  const std::string hi =
      R"(,"messages":[{"role":"user","content":"hi"}],"input":"hi","prompt":"hi")";
  return {
      {"ManyEscapedKeys", EscapedMembers(9'900, "k", 260) + hi},
      {"ManyEscapedKeysLikeAField", EscapedMembers(9'900, "max_completion_token", 26) + hi},
      {"ManyShortEscapedKeys", EscapedMembers(9'900, "", 4) + hi},
      {"ManySmallObjects", R"(,"metadata":[)" +
                               Repeated(3'000, "{\"a\":1" + EscapedMembers(15, "k", 40) + "}") +
                               "]" + hi},
      {"ManySmallValues", R"(,"metadata":[)" + Repeated(900'000, "1") + "]" + hi},
      {"DeepArrays", R"(,"metadata":[)" + Repeated(5'000, deep) + "]" + hi},
      {"ManyMessages", R"(,"messages":[)" + Repeated(10'000, message) + R"(],"input":[)" +
                           Repeated(2'000, message) + R"(],"prompt":"x")"},
      {"ManyParts", R"(,"messages":[{"role":"user","content":[)" + Repeated(50'000, part) +
                        R"(]}],"input":[{"role":"user","content":[)" + Repeated(1'000, part) +
                        R"(]}],"prompt":"x")"},
      {"ManyTools", R"(,"tools":[)" + Repeated(1'000, tool) + "]" + hi},
      {"OneLongString", R"(,"messages":[{"role":"user","content":")" +
                            Escaped(std::string(500'000, 'a')) + R"("}],"input":")" +
                            Escaped(std::string(500'000, 'b')) + R"(","prompt":")" +
                            Escaped(std::string(500'000, 'c')) + "\""},
  };
}

// A surface compares each key with the names of its fields, and reads at least one escape.
constexpr uint64_t kMaxNames = 150, kEscapeBytes = 6, kMaxMembers = 10'000;

TEST(WorstCases, ABodyCostsWorkInProportionToItsLength) {
  const std::pair<const char*, const Surface*> surfaces[] = {
      {"chat completions", &ChatSurface()},    {"completions", &CompletionsSurface()},
      {"embeddings", &EmbeddingsSurface()},    {"messages", &MessagesSurface()},
      {"count_tokens", &CountTokensSurface()}, {"responses", &ResponsesSurface()},
  };
  for (const Body& body : Bodies()) {
    const std::string text = R"({"model":"a/b","max_tokens":5)" + body.members + "}";
    ASSERT_LT(text.size(), size_t{16} << 20) << body.name;
    const uint64_t before = json::internal::decoded_bytes;
    auto document = json::Document::ParseView(text);
    ASSERT_TRUE(document.ok()) << body.name << ": " << document.error().message;
    const uint64_t parsed = json::internal::decoded_bytes;
    EXPECT_LE(parsed - before, text.size()) << body.name << ": the reader";
    for (const auto& [name, surface] : surfaces) {
      const uint64_t from = json::internal::decoded_bytes;
      (void)surface->ParseRequest(*document);  // whether it is valid does not matter here
      EXPECT_LE(json::internal::decoded_bytes - from,
                3 * text.size() + kMaxNames * kEscapeBytes * kMaxMembers)
          << body.name << ": " << name;
    }
  }
}

struct Work {
  uint64_t parsed = 0, decoded = 0;
};

Work WorkOfLoop(testing::Rig& rig) {
  Work work;
  rig.RunOnLoop(
      [&](Loop&) { work = {json::internal::parsed_bytes, json::internal::decoded_bytes}; });
  return work;
}

// Other requests of the loop wait while it decodes a body.
TEST(WorstCases, NoLoopDecodesALargeBody) {
  const std::pair<const char*, const Surface*> surfaces[] = {
      {"chat completions", &ChatSurface()}, {"completions", &CompletionsSurface()},
      {"embeddings", &EmbeddingsSurface()}, {"messages", &MessagesSurface()},
      {"responses", &ResponsesSurface()},
  };
  std::vector<Body> bodies = Bodies();
  bodies.push_back({"Ordinary", R"(,"messages":[{"role":"user","content":")" +
                                    std::string(15'500'000, 'a') +
                                    R"("}],"input":"b","prompt":"c")"});
  testing::Rig rig;
  for (const Body& body : bodies) {
    const std::string text = R"({"model":"a/b","max_tokens":5)" + body.members + "}";
    ASSERT_GT(text.size(), kMaxBytesDecodedOnLoop) << body.name;
    for (const auto& [name, surface] : surfaces) {
      const Work before = WorkOfLoop(rig);
      const auto answer = rig.Run(*surface, rig.ChatRequest(text));
      const Work after = WorkOfLoop(rig);
      EXPECT_GE(answer->status, 400) << body.name << ": no such model";
      EXPECT_EQ(after.parsed - before.parsed, 0u) << body.name << ": " << name;
      EXPECT_EQ(after.decoded - before.decoded, 0u) << body.name << ": " << name;
    }
  }
  // A small body is decoded by the loop itself: it does not wake a thread.
  const std::string small = R"({"model":"a/b","messages":[{"role":"user","content":"hi"}]})";
  const Work before = WorkOfLoop(rig);
  rig.Run(ChatSurface(), rig.ChatRequest(small));
  EXPECT_EQ(WorkOfLoop(rig).parsed - before.parsed, small.size());
}

}  // namespace
}  // namespace tollgate::gateway
