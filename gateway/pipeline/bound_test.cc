// spec: decisions.md 18, reliability.md 1.4.
#include <gtest/gtest.h>

#include "gateway/pipeline/testing.h"
#include "gateway/surfaces/chat_completions/chat_surface.h"

namespace tollgate::gateway {
namespace {

using testing::FakeExchange;
using testing::Rig;

struct Asked {
  int64_t text_bytes = 100;
  std::optional<int64_t> max_tokens;
  int32_t samples = 1;
  int64_t media = 0;
};

class Bound : public ::testing::Test {
 protected:
  Result<TokenBounds> Of(const Asked& asked, PipelineOptions options = {}) {
    Rig rig(options);  // window 1000, cap 400
    Result<TokenBounds> result = TokenBounds{};
    rig.On([&](Loop& loop) {
      FakeExchange exchange(loop, rig.ChatRequest(""));
      RequestContext context(*rig.worker, exchange, rig.endpoint, ChatSurface());
      context.model = context.catalog->Find("ns/model");
      context.canonical.prompt = {asked.text_bytes, 2, asked.media};
      context.canonical.max_tokens = asked.max_tokens;
      context.canonical.samples = asked.samples;
      const auto done = BoundTokens(context);
      result =
          done.ok() ? Result<TokenBounds>(context.bounds) : Result<TokenBounds>(Fail{done.error()});
    });
    return result;
  }
};

TEST_F(Bound, PromptIsBoundedByItsBytesAndTheWindow) {
  const auto small = Of({.text_bytes = 100});
  ASSERT_TRUE(small.ok());
  EXPECT_EQ(small->prompt_upper, 100 + 2 * 16);
  EXPECT_EQ(small->prompt_estimate, 25 + 2 * 4);
  EXPECT_EQ(small->prompt_lower, 2);
  EXPECT_EQ(Of({.text_bytes = 1'000'000})->prompt_upper, 1000);
  EXPECT_EQ(Of({.text_bytes = 1, .media = 1})->prompt_upper, 1000);
}

TEST_F(Bound, WithoutAWishTheCapIsSentOnlyWhereItSurelyFits) {
  EXPECT_EQ(Of({.text_bytes = 100})->max_tokens, 400);
  EXPECT_EQ(Of({.text_bytes = 900})->max_tokens, 0);
  EXPECT_EQ(Of({.text_bytes = 900})->output_upper, 400);
}

TEST_F(Bound, AWishIsLoweredToTheCapOrRefused) {
  EXPECT_EQ(Of({.max_tokens = 50})->max_tokens, 50);
  EXPECT_EQ(Of({.max_tokens = 400})->max_tokens, 400);
  EXPECT_EQ(Of({.max_tokens = 998})->max_tokens, 400);
  PipelineOptions strict;
  strict.refuse_large_max_tokens = true;
  EXPECT_EQ(Of({.max_tokens = 400}, strict)->max_tokens, 400);
  const auto refused = Of({.max_tokens = 401}, strict);
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().id, ErrorId::kBadRequest);
  EXPECT_EQ(refused.error().param, "max_tokens");
}

TEST_F(Bound, OnlyWhatCanNotFitIsRefused) {  // H59
  // The bytes might be a few tokens only, so a long prompt is left to the engine.
  EXPECT_TRUE(Of({.text_bytes = 1'000'000, .max_tokens = 998}).ok());
  for (const int64_t asked : {int64_t{999}, int64_t{1'000'000}, INT64_MAX}) {
    const auto refused = Of({.max_tokens = asked});
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().id, ErrorId::kContextLengthExceeded);
  }
}

TEST_F(Bound, SamplesMultiplyTheOutput) {  // H62
  EXPECT_EQ(Of({.max_tokens = 50, .samples = 128})->output_upper, 128 * 50);
  EXPECT_EQ(Of({.samples = 3})->output_upper, 3 * 400);
  EXPECT_EQ(Of({.max_tokens = 0})->output_upper, 0);
}

}  // namespace
}  // namespace tollgate::gateway
