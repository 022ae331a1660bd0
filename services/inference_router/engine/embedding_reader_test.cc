// Embedding responses of engines, whole and split at every byte. See docs/design/wire.md 4,
// decision 9.
#include "services/inference_router/engine/embedding_reader.h"

#include <gtest/gtest.h>

namespace tollgate::inference_router {
namespace {

using Vectors = std::vector<std::pair<int, std::string>>;

struct ReadVectors {
  Vectors vectors;
  bool good = false;
  EngineFailure failure;
  std::optional<EngineUsage> usage;
};

// Feeds the body in two pieces; the second starts at `cut`.
ReadVectors ReadIt(std::string_view body, int inputs, size_t cut = std::string_view::npos,
                   int64_t max_bytes = 1 << 20) {
  EmbeddingReader reader({.inputs = inputs, .window = 512, .max_bytes = max_bytes});
  std::vector<inference::v1::Event> events;
  ReadVectors read;
  read.good = reader.Feed(body.substr(0, cut), events);
  if (read.good && cut < body.size()) read.good = reader.Feed(body.substr(cut), events);
  read.good = read.good && reader.End();
  for (const auto& event : events) {
    read.vectors.emplace_back(event.delta().choice(), event.delta().embedding_json());
  }
  read.failure = reader.failure();
  read.usage = reader.usage();
  return read;
}

std::string Answer(const std::string& data,
                   const std::string& usage = R"({"prompt_tokens":7,"total_tokens":7})") {
  return R"({"id":"embd-1","object":"list","created":1,"model":"sim/\"data\"","data":)" + data +
         R"(,"usage":)" + usage + "}";
}

TEST(EmbeddingReader, BothFormsSplitAtEveryByte) {
  const std::string body = Answer(R"([{"object":"embedding","index":0,"embedding":[0.5, -2e-3]}, )"
                                  R"({"embedding":"AAAAPwAAAMA=","index":1,"note":"[{\"}"}])");
  const Vectors expected = {{0, "[0.5, -2e-3]"}, {1, "\"AAAAPwAAAMA=\""}};
  for (size_t cut = 0; cut <= body.size(); ++cut) {
    const ReadVectors read = ReadIt(body, 2, cut);
    ASSERT_TRUE(read.good) << cut << read.failure.error.internal;
    EXPECT_EQ(read.vectors, expected) << cut;
    ASSERT_TRUE(read.usage.has_value());
    EXPECT_EQ(read.usage->prompt_tokens, 7);
    EXPECT_FALSE(read.usage->completion_tokens.has_value());
  }
}

TEST(EmbeddingReader, AnyOrderOfInputsAndMembers) {
  const ReadVectors read =
      ReadIt(R"({"usage":{"total_tokens":3},"x":{"data":[1]},"data":[{"index":1,"embedding":[1]},)"
             R"({"index":0,"embedding":[2]}],"y":["data",[{}]]})",
             2);
  ASSERT_TRUE(read.good) << read.failure.error.internal;
  EXPECT_EQ(read.vectors, (Vectors{{1, "[1]"}, {0, "[2]"}}));
  EXPECT_EQ(read.usage->prompt_tokens, 3);
}

TEST(EmbeddingReader, WithoutAnIndexTheOrderDecides) {
  EXPECT_EQ(ReadIt(Answer(R"([{"embedding":[1]},{"embedding":[2]}])"), 2).vectors,
            (Vectors{{0, "[1]"}, {1, "[2]"}}));
}

TEST(EmbeddingReader, AnEscapedSlashIsASlash) {
  EXPECT_EQ(ReadIt(Answer(R"([{"embedding":"\/\/8\/Pw=="}])"), 1).vectors,
            (Vectors{{0, "\"//8/Pw==\""}}));
}

TEST(EmbeddingReader, UsageMayBeMissing) {
  const ReadVectors read = ReadIt(R"({"data":[{"embedding":[1]}]})", 1);
  EXPECT_TRUE(read.good);
  EXPECT_FALSE(read.usage.has_value());
}

TEST(EmbeddingReader, NumbersAreFiniteFloats) {
  for (const char* good : {"[1e38]", "[1e-60]", "[-0.0]", "[3.4028234663852886e38]"}) {
    EXPECT_TRUE(ReadIt(Answer("[{\"embedding\":" + std::string(good) + "}]"), 1).good) << good;
  }
  // Infinity and NaN are refused in base64, too.
  for (const char* bad :
       {"[1e39]", "[-1e400]", "[NaN]", "[null]", "[\"1\"]", "[[1]]", "[]", "{}", "null", "5",
        "\"\"", "\"AACAfw==\"", "\"AADAfw==\"", "\"AAAA\"", "\"AAAAPw\"", "\"not base64\""}) {
    const ReadVectors read = ReadIt(Answer("[{\"embedding\":" + std::string(bad) + "}]"), 1);
    EXPECT_FALSE(read.good) << bad;
    EXPECT_EQ(read.failure.error.id, ErrorId::kUpstreamError) << bad;
    EXPECT_TRUE(read.vectors.empty()) << bad;
  }
}

TEST(EmbeddingReader, AnInvalidResponseIsAnUpstreamError) {
  for (const std::string& bad :
       {std::string(), std::string("null"), std::string("[]"), std::string("<html>"),
        std::string("]]}}"), std::string(R"({"data":[{"embedding":[1]})"),
        std::string(R"({"data":[{"embedding":[1]}]}x)"), Answer("[]"), Answer("[5]"),
        Answer("null"), Answer(R"([{"embedding":[1]},{"embedding":[1]}])"),
        Answer(R"([{"index":0,"embedding":[1]},{"index":0,"embedding":[1]}])"),
        Answer(R"([{"index":1,"embedding":[1]}])"), Answer(R"([{"index":-1,"embedding":[1]}])"),
        Answer(R"([{"index":0.5,"embedding":[1]}])"), Answer(R"([{"index":0}])")}) {
    const ReadVectors read = ReadIt(bad, 1);
    EXPECT_FALSE(read.good) << bad;
    EXPECT_EQ(read.failure.error.id, ErrorId::kUpstreamError) << bad;
  }
}

TEST(EmbeddingReader, AnErrorObjectUnderStatus200) {
  const ReadVectors read = ReadIt(
      R"({"error":{"message":"This model's maximum context length is 512 tokens. However, your )"
      R"(request has 600 input tokens.","type":"BadRequestError","code":400}})",
      1);
  EXPECT_FALSE(read.good);
  EXPECT_EQ(read.failure.error.id, ErrorId::kContextLengthExceeded);
}

TEST(EmbeddingReader, AResponseThatIsTooLargeAsksForFewerInputs) {
  const ReadVectors read = ReadIt(Answer(R"([{"embedding":[1]}])"), 1, 20, 60);
  EXPECT_FALSE(read.good);
  EXPECT_EQ(read.failure.error.id, ErrorId::kBadRequest);
  EXPECT_EQ(read.failure.error.param, "input");
}

TEST(EmbeddingReader, UnboundedMembersFail) {
  const std::string long_text(3 << 20, 'a');
  EXPECT_FALSE(ReadIt(Answer("[{\"x\":\"" + long_text), 1, 100, 1 << 30).good);
  EXPECT_FALSE(ReadIt("{\"x\":\"" + long_text, 1, 100, 1 << 30).good);
  EXPECT_FALSE(ReadIt(std::string(2 << 20, '['), 1, 100, 1 << 30).good);
}

TEST(EmbeddingReader, TheBytesOfAnAnswerGrowWithItsInputsOnly) {  // H75
  EmbeddingReader reader({.inputs = 1});
  std::vector<inference::v1::Event> events;
  ASSERT_TRUE(reader.Feed("{\"data\":[", events));
  const std::string commas(1 << 20, ',');
  EXPECT_TRUE(reader.Feed(commas, events));
  EXPECT_TRUE(reader.Feed(commas, events));
  EXPECT_FALSE(reader.Feed(commas, events)) << "above 3 MiB for one input";
  EXPECT_EQ(reader.failure().limit, AnswerLimit::kAnswerBytes);
  EXPECT_EQ(reader.failure().error.id, ErrorId::kUpstreamError) << "not the client's fault";
}

TEST(EmbeddingReader, TheNumbersOfAVectorAreBounded) {  // H75
  std::string vector = "[0";
  for (int i = 0; i < 65'535; ++i) vector += ",0";
  EXPECT_TRUE(ReadIt(Answer("[{\"embedding\":" + vector + "]}]"), 1).good);
  const ReadVectors read = ReadIt(Answer("[{\"embedding\":" + vector + ",0]}]"), 1);
  EXPECT_FALSE(read.good);
  EXPECT_EQ(read.failure.limit, AnswerLimit::kAnswerBytes);
}

}  // namespace
}  // namespace tollgate::inference_router
