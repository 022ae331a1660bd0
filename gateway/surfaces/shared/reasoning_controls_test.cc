// The member `reasoning` of chat requests. See docs/design/wire.md 2.6.
#include "gateway/surfaces/shared/reasoning_controls.h"

#include <gtest/gtest.h>

#include "gateway/surfaces/chat_completions/testing/parse.h"

namespace tollgate::gateway {
namespace {

using namespace testing;  // NOLINT: request builders

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

// The settings that the router gets, such as "on high". None of them is in the engine members.
std::string Said(const std::string& members) {
  const CanonicalRequest request = Parsed(members);
  for (const char* name : {"reasoning", "enable_thinking"}) {
    EXPECT_EQ(request.members_json.find(name), std::string::npos) << request.members_json;
  }
  const inference::v1::Reasoning& said = request.reasoning;
  EXPECT_EQ(SaysReasoning(request), said.ByteSizeLong() > 0);
  std::string text;
  if (said.thinking() == inference::v1::REASONING_SWITCH_ON) text = "on";
  if (said.thinking() == inference::v1::REASONING_SWITCH_OFF) text = "off";
  if (!said.effort().empty()) text += (text.empty() ? "" : " ") + said.effort();
  return text;
}

TEST(ReasoningControls, BecomeWhatTheRouterIsTold) {
  const struct {
    const char* reasoning;
    const char* said;
  } kCases[] = {
      {"{}", ""},
      {"null", ""},
      {R"({"summary":"auto","other":1})", ""},
      {R"({"exclude":true})", ""},
      {R"({"enabled":true})", "on"},
      {R"({"enabled":false})", "off"},
      {R"({"enabled":null,"effort":null,"max_tokens":null,"exclude":null})", ""},
      {R"({"effort":"high"})", "on high"},
      {R"({"effort":"high","enabled":true})", "on high"},
      {R"({"effort":"none"})", "off none"},
      {R"({"max_tokens":0})", "off"},
      {R"({"max_tokens":4095})", "on low"},
      {R"({"max_tokens":4096.0})", "on medium"},
      {R"({"max_tokens":1e5,"enabled":true})", "on high"},
  };
  for (const auto& c : kCases) {
    EXPECT_EQ(Said(R"("reasoning":)" + std::string(c.reasoning)), c.said) << c.reasoning;
  }
}

TEST(ReasoningControls, ABudgetGoesToEnginesThatBoundTheReasoning) {
  const CanonicalRequest request = Parsed(R"("reasoning":{"max_tokens":700})", true);
  EXPECT_EQ(request.reasoning_budget, 700);
  EXPECT_EQ(request.members_json, kMessages);
  EXPECT_EQ(request.reasoning.thinking(), inference::v1::REASONING_SWITCH_ON);
  EXPECT_EQ(request.reasoning.effort(), "");
  EXPECT_EQ(Parsed(R"("reasoning":{"max_tokens":700})").reasoning_budget, 0);
}

TEST(ReasoningControls, TheCallersOwnTemplateArgumentsTakePrecedence) {
  const CanonicalRequest request =
      Parsed(R"("chat_template_kwargs":{"enable_thinking":false},"reasoning":{"enabled":true})");
  EXPECT_EQ(request.members_json,
            kMessages + R"(,"chat_template_kwargs":{"enable_thinking":false})");
  EXPECT_TRUE(request.reasoning.own_template_arguments());
  EXPECT_FALSE(Parsed(R"("chat_template_kwargs":null,"reasoning":{"enabled":true})")
                   .reasoning.own_template_arguments());
}

TEST(ReasoningControls, TheEffortAloneTurnsNothingOn) {
  EXPECT_EQ(Said(R"("reasoning_effort":"low")"), "low");
  EXPECT_EQ(Said(R"("reasoning_effort":"low","reasoning":{"effort":"low"})"), "on low");
  EXPECT_EQ(Said(R"("reasoning_effort":"low","reasoning":{"enabled":true})"), "on low");
  EXPECT_EQ(Said(R"("reasoning_effort":null)"), "");
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
