// Text that an engine cannot take. See decision 38.
#include "services/inference_router/engine/engine_text.h"

#include <gtest/gtest.h>

#include "services/inference_router/engine/engine_request.h"

namespace tollgate::inference_router {
namespace {

using namespace catalog::v1;  // NOLINT: engine kinds

constexpr EngineKind kTaking[] = {ENGINE_KIND_VLLM, ENGINE_KIND_SGLANG, ENGINE_KIND_TGI};
constexpr EngineKind kNotTaking[] = {ENGINE_KIND_LLAMACPP, ENGINE_KIND_OLLAMA, ENGINE_KIND_OPENAI,
                                     ENGINE_KIND_UNSPECIFIED};

std::string Fitted(EngineKind kind, const std::string& members) {
  return FitText(kind, members).value_or("unchanged");
}

std::string Call(const std::string& arguments) {
  return R"("messages":[{"role":"assistant","tool_calls":[{"id":"i","function":{"name":"f",)"
         R"("arguments":")" +
         arguments + R"("}}]}])";
}

TEST(EngineText, NulIsReplacedWhereTheKindCannotTakeIt) {
  const std::string members =
      R"("messages":[{"role":"user","content":"a\u0000b\u0000"}],"stop":"\u0000")";
  for (const EngineKind kind : kTaking) EXPECT_EQ(Fitted(kind, members), "unchanged");
  for (const EngineKind kind : kNotTaking) {
    EXPECT_EQ(Fitted(kind, members),
              R"("messages":[{"role":"user","content":"a\ufffdb\ufffd"}],"stop":"\ufffd")");
  }
}

TEST(EngineText, OnlyEscapesOfNulAreReplaced) {
  for (const char* same : {"", R"("content":"a")", R"("content":"\\u0000")", R"("a":"\\\\u0000")",
                           R"("a":"u0000")", R"("a":"\u0001")", R"("a":"\ud83d\ude00")"}) {
    EXPECT_EQ(Fitted(ENGINE_KIND_LLAMACPP, same), "unchanged") << same;
  }
  EXPECT_EQ(Fitted(ENGINE_KIND_LLAMACPP, R"("a":"\\\u0000\\u0000\u0000")"),
            R"("a":"\\\ufffd\\u0000\ufffd")");
  EXPECT_EQ(Fitted(ENGINE_KIND_LLAMACPP, R"({"\u0000":1})"), R"({"\ufffd":1})");
}

// Engines parse the arguments of a call in the history again.
TEST(EngineText, ArgumentsOfToolCallsAreFittedToo) {
  const std::string nul = Call(R"({\"a\":\"x\\u0000\"})");
  const std::string fitted = Call(R"({\"a\":\"x\\ufffd\"})");
  EXPECT_EQ(Fitted(ENGINE_KIND_VLLM, nul), "unchanged");
  EXPECT_EQ(Fitted(ENGINE_KIND_LLAMACPP, nul), fitted);
  // No engine accepts half a surrogate pair.
  for (const EngineKind kind : {ENGINE_KIND_VLLM, ENGINE_KIND_LLAMACPP}) {
    EXPECT_EQ(Fitted(kind, Call(R"({\"a\":\"x\\ud83d\"})")), fitted);
    EXPECT_EQ(Fitted(kind, Call(R"({\"a\":\"x\\uDE00\"})")), fitted);
    EXPECT_EQ(Fitted(kind, Call(R"({\"a\":\"\\ud83d\\ude00\"})")), "unchanged");
    EXPECT_EQ(Fitted(kind, Call(R"({\"a\":\"\\\\ud83d\"})")), "unchanged") << "a text about it";
  }
  // The inner escape may itself be written with escapes.
  for (const char* written : {R"(\\\u00750000)", R"(\\u\u003000\u0030)", R"(\u005cu0000)",
                              R"(\u005C\u0075\u0030\u0030\u0030\u0030)"}) {
    EXPECT_EQ(Fitted(ENGINE_KIND_LLAMACPP, Call(R"({\"a\":\"x)" + std::string(written) + R"(\"})")),
              fitted)
        << written;
  }
  // Arguments that are not JSON, and the old function_call form.
  EXPECT_EQ(Fitted(ENGINE_KIND_OLLAMA, Call(R"({\"a\":\"\\u0000)")), Call(R"({\"a\":\"\\ufffd)"));
  EXPECT_EQ(Fitted(ENGINE_KIND_OLLAMA,
                   R"("messages":[{"function_call":{"arguments":"[\"\\u0000\"]"}}],"a":"\u0000")"),
            R"("messages":[{"function_call":{"arguments":"[\"\\ufffd\"]"}}],"a":"\ufffd")");
}

// Text that only looks like an escape costs no copy and no parse.
TEST(EngineText, OnlyWhatMayBeReplacedIsLookedAt) {
  for (const char* cheap :
       {R"("C:\\udev")", R"("\\u00e4")", R"("\\ud8")", R"("\\udzzz")", R"("\ud83d")",
        R"("\\ud83d\\ude00")", R"("\\ud83d\\ude00\\ud83d\\ude00")"}) {
    EXPECT_FALSE(MayHoldInnerEscape(cheap, true)) << cheap;
  }
  for (const char* found : {R"("\\ud83d")", R"("\\uDE00")", R"("\\ud83d\\ud83d")",
                            R"("\\\\ud83d\\ude00")", R"("\\ud83d\\ude00\\ude00")"}) {
    EXPECT_TRUE(MayHoldInnerEscape(found, false)) << found;
  }
  EXPECT_TRUE(MayHoldInnerEscape(R"("\\u0000")", true));
  EXPECT_FALSE(MayHoldInnerEscape(R"("\\u0000")", false));
}

TEST(EngineText, TheBodyOfTheEngineIsFitted) {
  inference::v1::GenerateRequest request;
  request.set_members_json(R"("messages":"\u0000")");
  EXPECT_NE(BuildEngineBody(request, ENGINE_KIND_VLLM, "m", EngineAnswer::kStreamed)
                .find(R"("messages":"\u0000")"),
            std::string::npos);
  EXPECT_NE(BuildEngineBody(request, ENGINE_KIND_OLLAMA, "m", EngineAnswer::kStreamed)
                .find(R"("messages":"\ufffd")"),
            std::string::npos);
}

}  // namespace
}  // namespace tollgate::inference_router
