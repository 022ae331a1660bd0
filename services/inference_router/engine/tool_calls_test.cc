#include "services/inference_router/engine/tool_calls.h"

#include <gtest/gtest.h>

namespace tollgate::inference_router {
namespace {

// Feeds tool_calls arrays, one per delta. Returns the normalized calls as "index|id|name|arguments"
// lines.
std::string Feed(const std::vector<std::string>& deltas, ToolCalls* keep = nullptr) {
  ToolCalls own;
  ToolCalls& calls = keep ? *keep : own;
  std::string out;
  for (const std::string& text : deltas) {
    auto document = json::Document::Parse(text, {.allow_lone_surrogates = true});
    EXPECT_TRUE(document.ok()) << text;
    if (!document.ok()) return out;
    inference::v1::Delta delta;
    ByteBudget budget(1 << 20);
    EXPECT_EQ(calls.Read(document->root(), delta, budget), AnswerLimit::kNone);
    for (const auto& call : delta.tool_calls()) {
      out += std::to_string(call.index()) + "|" + call.id_json() + "|" + call.name_json() + "|" +
             call.arguments_json() + "\n";
    }
  }
  return out;
}

TEST(ToolCalls, IdAndNameOnceThenFragments) {
  EXPECT_EQ(
      Feed({R"([{"index":0,"id":"a","type":"function","function":{"name":"f","arguments":""}}])",
            R"([{"index":0,"function":{"arguments":"{\"x\""}}])",
            R"([{"index":0,"function":{"arguments":":1}"}}])"}),
      "0|a|f|\n0|||{\\\"x\\\"\n0|||:1}\n");
}

TEST(ToolCalls, InterleavedCallsKeepTheirIndex) {
  EXPECT_EQ(Feed({R"([{"index":0,"id":"a","function":{"name":"f","arguments":"1"}},
                      {"index":1,"id":"b","function":{"name":"g","arguments":"2"}}])",
                  R"([{"index":1,"function":{"arguments":"3"}}])",
                  R"([{"index":0,"function":{"arguments":"4"}}])"}),
            "0|a|f|1\n1|b|g|2\n1|||3\n0|||4\n");
}

TEST(ToolCalls, OneCallInsteadOfAList) {
  EXPECT_EQ(Feed({R"({"index":0,"id":"a","function":{"name":"f","arguments":"{"}})",
                  R"({"index":0,"id":"","function":{"name":null,"arguments":"}"}})"}),
            "0|a|f|{\n0|||}\n");
}

TEST(ToolCalls, WithoutIdsANameAfterACompleteCallStartsAnother) {
  ToolCalls calls;
  Feed({R"([{"function":{"name":"f","arguments":"{"}}])",
        R"([{"function":{"name":"f","arguments":"}"}}])", R"([{"function":{"name":"f"}}])"},
       &calls);
  const std::string second = Feed({R"([{"function":{"name":"f","arguments":"{}"}}])"}, &calls);
  EXPECT_EQ(second.substr(0, 2), "1|") << second;
  EXPECT_TRUE(second.ends_with("|f|{}\n")) << second;
}

// Agents answer a call by its id, and would answer one of two equal ids twice.
TEST(ToolCalls, EscapedArgumentsBeginACallToo) {
  const std::string one = R"([{"index":0,"function":{"name":"f","arguments":"{}"}}])";
  const std::string other = R"([{"index":0,"function":{"name":"g","arguments":" \u007b\u007D"}}])";
  const std::string calls = Feed({one, other});
  EXPECT_NE(calls.find("\n1|call_"), std::string::npos) << calls;
}

TEST(ToolCalls, NoTwoCallsHaveTheSameId) {
  const std::string one = R"({"index":0,"id":"a","function":{"name":"f","arguments":"{}"}})";
  const std::string other = R"({"index":1,"id":"a","function":{"name":"g","arguments":"{\"x\""}})";
  const std::string bare = R"({"id":"a","function":{"name":"f","arguments":"{}"}})";
  const std::vector<std::vector<std::string>> forms = {
      {"[" + one + "," + other + "]", R"([{"index":1,"function":{"arguments":":1}"}}])"},
      {"[" + one + "]", "[" + other + "]",
       R"([{"index":1,"id":"a","function":{"arguments":":1}"}}])"},
      {"[" + bare + "," + bare + "]"},
      {"[" + bare + "]", "[" + bare + "]"},
      {"[" + one + "]", "[" + one + "]"}};
  for (const auto& deltas : forms) {
    const std::string calls = Feed(deltas);
    EXPECT_TRUE(calls.starts_with("0|a|f|{}\n1|call_")) << calls;
    EXPECT_EQ(calls.find("|a|", 4), std::string::npos) << calls;
    EXPECT_EQ(calls.find("\n2|"), std::string::npos) << calls;
  }
}

// Some engines repeat the id in each piece of a call.
TEST(ToolCalls, ARepeatedIdOfTheSameCallStartsNone) {
  EXPECT_EQ(Feed({R"([{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}])",
                  R"([{"index":0,"id":"a","function":{"name":"f","arguments":"}"}}])",
                  R"([{"index":0,"id":"a","function":{"name":"f","arguments":""}}])"}),
            "0|a|f|{\n0|||}\n");
}

TEST(ToolCalls, ASplitSurrogatePairIsSentInOnePiece) {
  EXPECT_EQ(Feed({R"([{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":\"\ud83d"}}])",
                  R"([{"index":0,"function":{"arguments":"\ude00\"}"}}])"}),
            "0|a|f|{\\\"x\\\":\\\"\n0|||\\ud83d\\ude00\\\"}\n");
}

TEST(ToolCalls, IndicesStartAtZeroInOrderOfAppearance) {
  EXPECT_EQ(Feed({R"([{"index":5,"id":"a","function":{"name":"f","arguments":""}}])",
                  R"([{"index":2,"id":"b","function":{"name":"g","arguments":""}}])"}),
            "0|a|f|\n1|b|g|\n");
}

TEST(ToolCalls, ArgumentsAreHeldBackUntilTheName) {
  EXPECT_EQ(Feed({R"([{"index":0,"id":"a","function":{"arguments":"{"}}])",
                  R"([{"index":0,"function":{"arguments":"}"}}])",
                  R"([{"index":0,"function":{"name":"f"}}])"}),
            "0|a|f|{}\n");
}

TEST(ToolCalls, ACallWithoutANameIsNeverSent) {
  ToolCalls calls;
  EXPECT_EQ(Feed({R"([{"index":0,"id":"a","function":{"arguments":"{}"}}])"}, &calls), "");
  EXPECT_FALSE(calls.any());
}

TEST(ToolCalls, AnIdIsGeneratedIfTheEngineSendsNone) {
  const std::string out = Feed({R"([{"index":0,"function":{"name":"f","arguments":"{}"}}])"});
  ASSERT_EQ(out.substr(0, 7), "0|call_");
  EXPECT_EQ(out.size(), std::string("0|call_|f|{}\n").size() + 24);
}

TEST(ToolCalls, EveryIndexZeroWithCompleteArgumentsMeansNewCalls) {
  EXPECT_EQ(Feed({R"([{"index":0,"id":"a","function":{"name":"f","arguments":"{\"p\":\"}\"}"}}])",
                  R"([{"index":0,"id":"b","function":{"name":"f","arguments":"{}"}}])"}),
            "0|a|f|{\\\"p\\\":\\\"}\\\"}\n1|b|f|{}\n");
}

TEST(ToolCalls, ANewIdAndTheNameInEachDeltaIsOneCall) {
  EXPECT_EQ(Feed({R"([{"index":0,"id":"a","function":{"name":"f","arguments":"{\"x\":"}}])",
                  R"([{"index":0,"id":"b","function":{"name":"f","arguments":"1}"}}])"}),
            "0|a|f|{\\\"x\\\":\n0|||1}\n");
}

TEST(ToolCalls, WithoutAnIndexPositionAndIdDecide) {
  EXPECT_EQ(Feed({R"([{"id":"a","function":{"name":"f","arguments":"{}"}},
                      {"id":"b","function":{"name":"g","arguments":"{}"}}])"}),
            "0|a|f|{}\n1|b|g|{}\n");
}

TEST(ToolCalls, ArgumentsAsAnObjectBecomeText) {
  EXPECT_EQ(Feed({R"([{"index":0,"id":"a","function":{"name":"f","arguments":{"x":"y"}}}])"}),
            "0|a|f|{\\\"x\\\":\\\"y\\\"}\n");
}

// The limit that a delta exceeds (H75).
AnswerLimit LimitOf(ToolCalls& calls, const std::string& text, ByteBudget& budget) {
  const auto document = json::Document::Parse(text);
  EXPECT_TRUE(document.ok()) << text;
  inference::v1::Delta delta;
  return calls.Read(document->root(), delta, budget);
}

std::string Item(int index, const std::string& more) {
  return R"([{"index":)" + std::to_string(index) + "," + more + "}]";
}

TEST(ToolCalls, ManyCallsAreAFailure) {
  ToolCalls calls;
  ByteBudget budget(32 << 20);
  for (int i = 0; i < 256; ++i) {
    EXPECT_EQ(LimitOf(calls, Item(i, R"("id":"a","function":{"name":"f"})"), budget),
              AnswerLimit::kNone);
  }
  EXPECT_EQ(LimitOf(calls, Item(256, R"("id":"a","function":{"name":"f"})"), budget),
            AnswerLimit::kToolCalls);
}

TEST(ToolCalls, ArgumentsBeforeTheNameAreTakenFromTheBudget) {
  ToolCalls calls;
  ByteBudget budget(100'000);
  const std::string piece = R"("function":{"arguments":")" + std::string(10'000, 'x') + "\"}";
  for (int i = 0; i < 9; ++i) {
    EXPECT_EQ(LimitOf(calls, Item(0, piece), budget), AnswerLimit::kNone) << i;
  }
  EXPECT_EQ(LimitOf(calls, Item(0, piece), budget), AnswerLimit::kAnswerBytes);
}

TEST(ToolCalls, TheTextsOfOneCallAreBounded) {
  const std::string long_name(5'000, 'x');
  for (const std::string& text :
       {R"("id":")" + long_name + R"(","function":{"name":"f"})",
        R"("id":"a","function":{"name":")" + long_name + "\"}",
        R"("id":"a","function":{"name":"f","arguments":")" + std::string(9 << 20, 'x') + "\"}"}) {
    ToolCalls calls;
    ByteBudget budget(32 << 20);
    EXPECT_EQ(LimitOf(calls, Item(0, text), budget), AnswerLimit::kToolArguments);
  }
}

// An encoder that cannot interleave calls stores each piece separately.
TEST(ToolCalls, InterleavedPiecesCostMoreThanTheirBytes) {
  ToolCalls calls;
  ByteBudget budget(50'000);
  AnswerLimit limit = AnswerLimit::kNone;
  int pieces = 0;
  for (; limit == AnswerLimit::kNone && pieces < 50'000; ++pieces) {
    limit = LimitOf(calls, Item(pieces % 2, R"("function":{"arguments":"x"})"), budget);
  }
  EXPECT_EQ(limit, AnswerLimit::kAnswerBytes);
  EXPECT_LT(pieces, 1'000);
}

}  // namespace
}  // namespace tollgate::inference_router
