// See decision 18, docs/design/ledger.md 4.
#include "gateway/pipeline/checks/bound.h"

#include <gtest/gtest.h>

#include "gateway/surfaces/chat_completions/chat_surface.h"
#include "gateway/testing/pipeline_fakes.h"

namespace tollgate::gateway {
namespace {

using testing::FakeExchange;
using testing::Rig;

struct Case {
  int64_t text_bytes = 100;
  std::optional<int64_t> max_tokens;
  int32_t samples = 1;
  int64_t media = 0;
  // Number of prompts, token ids of all prompts, and token ids of the longest one.
  int64_t prompts = 1;
  int64_t tokens = 0;
  int64_t longest = 0;
  int64_t messages = 2;
  int64_t longest_text = 0;
  inference::v1::RequestKind kind = inference::v1::REQUEST_KIND_CHAT;
};

class Bound : public ::testing::Test {
 protected:
  Result<TokenBounds> Of(const Case& request, PipelineOptions options = {}) {
    Rig rig(options);  // context window 1000, model max_output_tokens 400
    Result<TokenBounds> result = TokenBounds{};
    rig.RunOnLoop([&](Loop& loop) {
      FakeExchange exchange(loop, rig.ChatRequest(""));
      RequestContext context(*rig.worker, exchange, rig.endpoint, ChatSurface());
      context.model = context.catalog->Find("ns/model");
      context.canonical.kind = request.kind;
      context.canonical.prompt = {.text_bytes = request.text_bytes,
                                  .messages = request.messages,
                                  .media_parts = request.media,
                                  .tokens = request.tokens,
                                  .longest_tokens = request.longest,
                                  .longest_text_bytes = request.longest_text,
                                  .prompts = request.prompts};
      context.canonical.max_tokens = request.max_tokens;
      context.canonical.samples = request.samples;
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

TEST_F(Bound, TheDefaultCapIsSentOnlyIfItFitsForCertain) {
  EXPECT_EQ(Of({.text_bytes = 100})->max_tokens, 400);
  EXPECT_EQ(Of({.text_bytes = 900})->max_tokens, 0);
  EXPECT_EQ(Of({.text_bytes = 900})->output_upper, 400);
}

TEST_F(Bound, MaxTokensIsLoweredToTheCapOrRefused) {
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

TEST_F(Bound, RefusesOnlyWhatCannotFit) {  // H59
  // Many bytes may still be few tokens, so the engine decides whether a long prompt fits.
  EXPECT_TRUE(Of({.text_bytes = 1'000'000, .max_tokens = 998}).ok());
  for (const int64_t max_tokens : {int64_t{999}, int64_t{1'000'000}, INT64_MAX}) {
    const auto refused = Of({.max_tokens = max_tokens});
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().id, ErrorId::kContextLengthExceeded);
  }
}

TEST_F(Bound, SamplesMultiplyTheOutputBound) {  // H62
  EXPECT_EQ(Of({.max_tokens = 50, .samples = 128})->output_upper, 128 * 50);
  EXPECT_EQ(Of({.samples = 3})->output_upper, 3 * 400);
  EXPECT_EQ(Of({.max_tokens = 0})->output_upper, 0);
}

TEST_F(Bound, TokenIdsAreCountedExactly) {
  const auto exact =
      Of({.text_bytes = 0, .max_tokens = 16, .tokens = 900, .longest = 900, .messages = 0});
  ASSERT_TRUE(exact.ok());
  EXPECT_EQ(exact->prompt_lower, 900);
  EXPECT_EQ(exact->prompt_upper, 900);
  EXPECT_EQ(exact->prompt_estimate, 900);
  const Case fits = {
      .text_bytes = 0, .max_tokens = 100, .tokens = 900, .longest = 900, .messages = 0};
  EXPECT_TRUE(Of(fits).ok());
  Case above = fits;
  above.max_tokens = 101;
  EXPECT_EQ(Of(above).error().id, ErrorId::kContextLengthExceeded);
}

TEST_F(Bound, EachPromptHasItsOwnWindow) {
  const auto several =
      Of({.text_bytes = 2500, .max_tokens = 300, .samples = 6, .prompts = 3, .messages = 3});
  ASSERT_TRUE(several.ok());
  EXPECT_EQ(several->prompt_upper, 2500 + 3 * 16) << "above one window, below three";
  EXPECT_EQ(several->output_upper, 6 * 300);
  EXPECT_EQ(Of({.text_bytes = 1'000'000, .prompts = 3, .messages = 3})->prompt_upper, 3000);
  // max_tokens must fit next to the longest prompt.
  Case tokens = {.text_bytes = 0,
                 .max_tokens = 300,
                 .prompts = 2,
                 .tokens = 1400,
                 .longest = 700,
                 .messages = 0};
  EXPECT_TRUE(Of(tokens).ok());
  tokens.longest = 701;
  EXPECT_EQ(Of(tokens).error().id, ErrorId::kContextLengthExceeded);
}

TEST_F(Bound, EmbeddingsHaveNoOutput) {
  const auto bounds = Of({.text_bytes = 100, .kind = inference::v1::REQUEST_KIND_EMBEDDING});
  ASSERT_TRUE(bounds.ok());
  EXPECT_EQ(bounds->prompt_upper, 100 + 2 * 16);
  EXPECT_EQ(bounds->output_upper, 0);
  EXPECT_EQ(bounds->max_tokens, 0);
}

// The window is 1000 tokens; a message may add 16.
TEST_F(Bound, APromptIsCountedOnlyIfItsBytesCanExceedTheWindow) {  // decision 44
  EXPECT_FALSE(Of({.text_bytes = 968})->needs_count);
  EXPECT_TRUE(Of({.text_bytes = 969})->needs_count);
  EXPECT_FALSE(Of({.text_bytes = 868, .max_tokens = 100})->needs_count);
  EXPECT_TRUE(Of({.text_bytes = 869, .max_tokens = 100})->needs_count);
  EXPECT_FALSE(Of({.text_bytes = 900, .media = 1})->needs_count) << "media is not counted";
  EXPECT_TRUE(Of({.text_bytes = 969, .media = 1})->needs_count) << "its text is counted";
  constexpr auto kEmbedding = inference::v1::REQUEST_KIND_EMBEDDING;
  EXPECT_FALSE(Of({.text_bytes = 984, .messages = 1, .kind = kEmbedding})->needs_count);
  EXPECT_TRUE(Of({.text_bytes = 985, .messages = 1, .kind = kEmbedding})->needs_count);
  const Case several = {.text_bytes = 3000, .prompts = 4, .messages = 4, .longest_text = 984};
  EXPECT_FALSE(Of(several)->needs_count) << "each has a window of its own";
  Case long_one = several;
  long_one.longest_text = 985;
  EXPECT_TRUE(Of(long_one)->needs_count);
}

TEST_F(Bound, TokenIdsAboveTheWindowAreRefusedWithoutValueing) {
  for (const auto kind :
       {inference::v1::REQUEST_KIND_COMPLETION, inference::v1::REQUEST_KIND_EMBEDDING}) {
    Case ids = {.text_bytes = 0, .tokens = 1000, .longest = 1000, .messages = 0, .kind = kind};
    ASSERT_TRUE(Of(ids).ok());
    EXPECT_FALSE(Of(ids)->needs_count);
    ids.tokens = ids.longest = 1001;
    const auto refused = Of(ids);
    ASSERT_FALSE(refused.ok());
    EXPECT_EQ(refused.error().id, ErrorId::kContextLengthExceeded);
    EXPECT_EQ(refused.error().param, "messages") << "the field with the prompt";
    EXPECT_EQ(refused.error().message,
              "This model's maximum context length is 1000 tokens. However, your input has 1001 "
              "tokens.");
  }
}

}  // namespace
}  // namespace tollgate::gateway
