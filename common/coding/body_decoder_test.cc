#include "common/coding/body_decoder.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "common/coding/testing/encode.h"

namespace tollgate::coding {
namespace {

using Status = BodyDecoder::Status;
using testing::Encode;
using testing::Gzip;
using testing::Zstd;

struct Outcome {
  Status status = Status::kMore;
  std::string text;
};

// step: number of further bytes that each call allows.
Outcome Decode(Coding coding, const std::string& coded, DecodeLimits limits = {},
               size_t step = SIZE_MAX) {
  BodyDecoder decoder(coding, coded, limits);
  Outcome outcome;
  for (size_t most = step; outcome.status == Status::kMore; most += step) {
    outcome.status = decoder.Decode(outcome.text, most);
    EXPECT_LE(outcome.text.size(), std::min(most, limits.max_bytes));
    if (step == SIZE_MAX) break;
  }
  return outcome;
}

// Text that is barely compressible.
std::string Noise(size_t size) {
  std::string text;
  for (uint64_t state = 1; text.size() < size;) {
    state = state * 6364136223846793005 + 1442695040888963407;
    text += static_cast<char>(state >> 56);
  }
  return text;
}

class BodyDecoderTest : public ::testing::TestWithParam<Coding> {};
INSTANTIATE_TEST_SUITE_P(Codings, BodyDecoderTest,
                         ::testing::Values(Coding::kGzip, Coding::kZstd, Coding::kBrotli),
                         [](const auto& info) { return std::string(CodingName(info.param)); });

TEST(Coding, NamesAreOfOneCodingInAnyCase) {
  EXPECT_EQ(ParseCoding("gzip"), Coding::kGzip);
  EXPECT_EQ(ParseCoding("X-GZip"), Coding::kGzip);
  EXPECT_EQ(ParseCoding("ZSTD"), Coding::kZstd);
  EXPECT_EQ(ParseCoding("br"), Coding::kBrotli);
  for (const char* other :
       {"", "identity", "deflate", "compress", "gzip, br", "gzip,gzip", "gzi", "gzip ", "brotli"}) {
    EXPECT_FALSE(ParseCoding(other)) << other;
  }
}

TEST_P(BodyDecoderTest, DecodesWholeBodiesInAnySteps) {
  for (const std::string& text :
       {std::string(), std::string("{}"), Noise(300'000), std::string(700'000, 'a')}) {
    const std::string coded = Encode(GetParam(), text);
    for (const size_t step : {SIZE_MAX, size_t{1'000}, size_t{65'536}, text.size() + 1}) {
      const Outcome outcome = Decode(GetParam(), coded, {}, step);
      EXPECT_EQ(outcome.status, Status::kDone) << text.size() << " in steps of " << step;
      EXPECT_TRUE(outcome.text == text);
    }
  }
}

// A body ends where its coding says, not where the input stops.
TEST_P(BodyDecoderTest, EveryTruncationIsBroken) {
  const std::string coded = Encode(GetParam(), "{\"model\":\"ns/model\",\"messages\":[]}");
  for (size_t size = 0; size < coded.size(); ++size) {
    EXPECT_EQ(Decode(GetParam(), coded.substr(0, size)).status, Status::kBroken) << size;
  }
  const std::string large = Encode(GetParam(), Noise(200'000));
  EXPECT_EQ(Decode(GetParam(), large.substr(0, large.size() / 2), {}, 10'000).status,
            Status::kBroken);
}

TEST_P(BodyDecoderTest, OtherBytesAreBroken) {
  const std::string coded = Encode(GetParam(), "{}");
  EXPECT_EQ(Decode(GetParam(), coded + "x").status, Status::kBroken);
  EXPECT_EQ(Decode(GetParam(), "{\"model\":\"ns/model\"}").status, Status::kBroken);
  for (const Coding other : {Coding::kGzip, Coding::kZstd, Coding::kBrotli}) {
    if (other == GetParam()) continue;
    EXPECT_EQ(Decode(GetParam(), Encode(other, Noise(1000))).status, Status::kBroken);
  }
}

TEST_P(BodyDecoderTest, TheDecodedSizeIsBounded) {
  const std::string text = Noise(100'000);
  const std::string coded = Encode(GetParam(), text);
  EXPECT_EQ(Decode(GetParam(), coded, {.max_bytes = 100'000}).status, Status::kDone);
  for (const size_t step : {SIZE_MAX, size_t{1'000}}) {
    const Outcome outcome = Decode(GetParam(), coded, {.max_bytes = 99'999}, step);
    EXPECT_EQ(outcome.status, Status::kTooLarge);
    EXPECT_EQ(outcome.text.size(), 99'999U);
  }
}

// A bomb is rejected soon after it exceeds the ratio, not at the size limit.
TEST_P(BodyDecoderTest, TheRatioIsBounded) {
  const DecodeLimits limits = {
      .max_bytes = size_t{1} << 30, .max_ratio = 100, .ratio_from_bytes = 100'000};
  const std::string bomb = Encode(GetParam(), std::string(50 << 20, '\0'));
  ASSERT_LT(bomb.size(), size_t{60'000});
  const Outcome outcome = Decode(GetParam(), bomb, limits);
  EXPECT_EQ(outcome.status, Status::kBomb);
  EXPECT_LT(outcome.text.size(), std::max<size_t>(bomb.size() * 100, 100'000) + 100'000);
  // Small bodies may be arbitrarily repetitive.
  EXPECT_EQ(Decode(GetParam(), Encode(GetParam(), std::string(100'000, 'a')), limits).status,
            Status::kDone);
}

TEST(BodyDecoder, PartsAreJoined) {
  EXPECT_EQ(Decode(Coding::kGzip, Gzip("{\"a\"") + Gzip("") + Gzip(":1}")).text, "{\"a\":1}");
  EXPECT_EQ(Decode(Coding::kZstd, Zstd("{\"a\"") + Zstd("") + Zstd(":1}")).text, "{\"a\":1}");
}

// Empty parts produce no output, so neither size nor ratio bounds them.
TEST(BodyDecoder, TheNumberOfPartsIsBounded) {
  for (const auto& [coding, part] :
       {std::pair(Coding::kGzip, Gzip("")), {Coding::kZstd, Zstd("")}}) {
    std::string many;
    for (int i = 0; i < 1000; ++i) many += part;
    EXPECT_EQ(Decode(coding, many).status, Status::kDone);
    EXPECT_EQ(Decode(coding, many + part).status, Status::kBroken);
  }
}

TEST(BodyDecoder, ChecksumsAreChecked) {
  std::string gzip = Gzip(Noise(1000)), zstd = Zstd(Noise(1000));
  gzip[gzip.size() - 6] ^= 1;
  zstd[zstd.size() - 1] ^= 1;
  EXPECT_EQ(Decode(Coding::kGzip, gzip).status, Status::kBroken);
  EXPECT_EQ(Decode(Coding::kZstd, zstd).status, Status::kBroken);
}

// A frame may declare a window of gigabytes, which a decoder would have to allocate.
TEST(BodyDecoder, WindowsOfZstdAreBounded) {
  const std::string text = Noise(100'000);
  EXPECT_EQ(Decode(Coding::kZstd, Zstd(text, 23)).status, Status::kDone);
  EXPECT_EQ(Decode(Coding::kZstd, Zstd(text, 24)).status, Status::kBroken);
}

}  // namespace
}  // namespace tollgate::coding
