// The member `reasoning` of chat requests. See docs/design/wire.md 2.6.
#include "gateway/surfaces/shared/reasoning_controls.h"

#include <gtest/gtest.h>

#include "gateway/surfaces/chat_completions/testing/parse.h"

namespace tollgate::gateway {
namespace {

using namespace testing;  // NOLINT: request builders

constexpr char kOn[] = R"("chat_template_kwargs":{"enable_thinking":true,"thinking":true})";
constexpr char kOff[] = R"("chat_template_kwargs":{"enable_thinking":false,"thinking":false})";

CanonicalRequest Parsed(const std::string& members, bool bounds_reasoning = false) {
  const std::string body = Body(members);
  const auto document = json::Document::ParseView(body);
  const ParseContext context{.traits_of = [=](const std::string&) {
    return ModelTraits{.bounds_reasoning = bounds_reasoning};
  }};
  auto request = ParseChatRequest(*document, context);
  EXPECT_TRUE(request.ok()) << members << (request.ok() ? "" : request.error().ToString());
  return request.ok() ? std::move(*request) : CanonicalRequest{};
}

// The members for the engine besides the messages.
std::string Sent(const std::string& members, bool bounds_reasoning = false) {
  const std::string all = Parsed(members, bounds_reasoning).members_json;
  return all == kMessages ? "" : all.substr(kMessages.size() + 1);
}

TEST(ReasoningControls, BecomeWhatEnginesUnderstand) {
  const struct {
    const char* reasoning;
    std::string sent;
  } kCases[] = {
      {"{}", ""},
      {"null", ""},
      {R"({"summary":"auto","other":1})", ""},
      {R"({"exclude":true})", ""},
      {R"({"enabled":true})", kOn},
      {R"({"enabled":false})", kOff},
      {R"({"enabled":null,"effort":null,"max_tokens":null,"exclude":null})", ""},
      {R"({"effort":"high"})", std::string(kOn) + R"(,"reasoning_effort":"high")"},
      {R"({"effort":"high","enabled":true})", std::string(kOn) + R"(,"reasoning_effort":"high")"},
      {R"({"effort":"none"})", std::string(kOff) + R"(,"reasoning_effort":"none")"},
      {R"({"max_tokens":0})", kOff},
      {R"({"max_tokens":4095})", std::string(kOn) + R"(,"reasoning_effort":"low")"},
      {R"({"max_tokens":4096.0})", std::string(kOn) + R"(,"reasoning_effort":"medium")"},
      {R"({"max_tokens":1e5,"enabled":true})", std::string(kOn) + R"(,"reasoning_effort":"high")"},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(Sent(R"("reasoning":)" + std::string(c.reasoning)), c.sent) << c.reasoning;
  }
}

TEST(ReasoningControls, ABudgetGoesToEnginesThatBoundTheReasoning) {
  const CanonicalRequest request = Parsed(R"("reasoning":{"max_tokens":700})", true);
  EXPECT_EQ(request.reasoning_budget, 700);
  EXPECT_EQ(request.members_json, kMessages + "," + kOn);
  EXPECT_EQ(Parsed(R"("reasoning":{"max_tokens":700})").reasoning_budget, 0);
}

TEST(ReasoningControls, TheCallersOwnTemplateArgumentsTakePrecedence) {
  EXPECT_EQ(
      Sent(R"("chat_template_kwargs":{"enable_thinking":false},"reasoning":{"enabled":true})"),
      R"("chat_template_kwargs":{"enable_thinking":false})");
}

TEST(ReasoningControls, TheSameEffortTwiceIsSentOnce) {
  EXPECT_EQ(Sent(R"("reasoning_effort":"low","reasoning":{"effort":"low"})"),
            R"("reasoning_effort":"low",)" + std::string(kOn));
}

TEST(ReasoningControls, ReasoningIsHiddenOnRequest) {
  EXPECT_TRUE(Parsed(R"("reasoning":{"exclude":true})").hides_reasoning);
  EXPECT_FALSE(Parsed(R"("reasoning":{"exclude":false})").hides_reasoning);
  EXPECT_FALSE(Parsed("").hides_reasoning);
  EXPECT_TRUE(Parsed(R"("include_reasoning":false)").hides_reasoning);
  EXPECT_FALSE(Parsed(R"("include_reasoning":true)").hides_reasoning);
  EXPECT_TRUE(Parsed(R"("include_reasoning":false,"reasoning":{"effort":"low"})").hides_reasoning);
}

TEST(ReasoningControls, WrongValuesAreNamed) {
  const struct {
    const char *members, *param;
  } kCases[] = {
      {R"("reasoning":"high")", "reasoning"},
      {R"("reasoning":[])", "reasoning"},
      {R"("include_reasoning":"no")", "include_reasoning"},
      {R"("reasoning":{"enabled":1})", "reasoning.enabled"},
      {R"("reasoning":{"effort":"huge"})", "reasoning.effort"},
      {R"("reasoning":{"effort":3})", "reasoning.effort"},
      {R"("reasoning":{"max_tokens":-1})", "reasoning.max_tokens"},
      {R"("reasoning":{"max_tokens":1.5})", "reasoning.max_tokens"},
      {R"("reasoning":{"max_tokens":"1"})", "reasoning.max_tokens"},
      {R"("reasoning":{"exclude":"yes"})", "reasoning.exclude"},
  };
  for (const auto& c : kCases) EXPECT_EQ(Refused(Body(c.members)), c.param) << c.members;
}

TEST(ReasoningControls, ContradictionsAreNamed) {
  const struct {
    const char *members, *param;
  } kCases[] = {
      {R"("reasoning":{"effort":"low","max_tokens":5})", "reasoning.max_tokens"},
      {R"("reasoning":{"max_tokens":5},"reasoning_effort":"low")", "reasoning.max_tokens"},
      {R"("reasoning":{"effort":"low"},"reasoning_effort":"high")", "reasoning.effort"},
      {R"("reasoning":{"enabled":false,"effort":"low"})", "reasoning.effort"},
      {R"("reasoning":{"enabled":true,"effort":"none"})", "reasoning.effort"},
      {R"("reasoning":{"enabled":false,"max_tokens":5})", "reasoning.max_tokens"},
      {R"("reasoning":{"enabled":true,"max_tokens":0})", "reasoning.max_tokens"},
      {R"("reasoning":{"enabled":false},"reasoning_effort":"low")", "reasoning.enabled"},
      {R"("reasoning":{"enabled":true},"reasoning_effort":"none")", "reasoning.enabled"},
  };
  for (const auto& c : kCases) EXPECT_EQ(Refused(Body(c.members)), c.param) << c.members;
}

}  // namespace
}  // namespace tollgate::gateway
