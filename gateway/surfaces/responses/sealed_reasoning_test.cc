// Sealed reasoning (ADR 0017): who can unseal it, and for how long.
#include "gateway/surfaces/responses/sealed_reasoning.h"

#include <gtest/gtest.h>

#include "common/base/base64.h"

namespace tollgate::gateway {
namespace {

constexpr int64_t kNow = 1'800'000'000;

std::shared_ptr<const ReasoningKeys> Keys(const std::string& letters) {
  ReasoningKeys keys;
  for (const char letter : letters) keys.keys.emplace_back(32, letter);
  keys.lifetime_s = 100;
  return std::make_shared<const ReasoningKeys>(std::move(keys));
}

TEST(SealedReasoningTest, TheSameWorkspaceAndModelUnsealItUntilItExpires) {
  const ReasoningSeal seal(Keys("a"), "acme", "ns/m");
  const std::string text = R"(step \"one\"\nstep two é)";
  const std::string sealed = seal.Seal(text, kNow);
  EXPECT_EQ(sealed.find("step"), std::string::npos);
  EXPECT_EQ(sealed.find_first_of("\"\\\n"), std::string::npos) << "needs no escapes in JSON";
  EXPECT_NE(seal.Seal(text, kNow), sealed) << "equal texts give different results";
  EXPECT_EQ(seal.Unseal(sealed, kNow), text);
  EXPECT_EQ(seal.Unseal(sealed, kNow + 99), text);
  EXPECT_EQ(seal.Unseal(sealed, kNow + 100), std::nullopt);
  EXPECT_EQ(seal.Unseal(seal.Seal("", kNow), kNow), "");
}

TEST(SealedReasoningTest, AnotherWorkspaceModelOrKeyDoesNotUnsealIt) {
  const std::string sealed = ReasoningSeal(Keys("a"), "acme", "ns/m").Seal("text", kNow);
  EXPECT_EQ(ReasoningSeal(Keys("a"), "other", "ns/m").Unseal(sealed, kNow), std::nullopt);
  EXPECT_EQ(ReasoningSeal(Keys("a"), "acme", "ns/n").Unseal(sealed, kNow), std::nullopt);
  EXPECT_EQ(ReasoningSeal(Keys("b"), "acme", "ns/m").Unseal(sealed, kNow), std::nullopt);
  EXPECT_EQ(ReasoningSeal(nullptr, "acme", "ns/m").Unseal(sealed, kNow), std::nullopt);
  // A model name cannot continue a workspace name.
  EXPECT_EQ(ReasoningSeal(Keys("a"), "acm", "ens/m").Unseal(sealed, kNow), std::nullopt);
}

TEST(SealedReasoningTest, WhatWasSealedBeforeARotationIsUnsealed) {
  const std::string sealed = ReasoningSeal(Keys("a"), "acme", "ns/m").Seal("text", kNow);
  const ReasoningSeal rotated(Keys("ba"), "acme", "ns/m");
  EXPECT_EQ(rotated.Unseal(sealed, kNow), "text");
  EXPECT_EQ(ReasoningSeal(Keys("b"), "acme", "ns/m").Unseal(rotated.Seal("new", kNow), kNow),
            "new");
}

TEST(SealedReasoningTest, ChangedAndForeignTextsAreNotUnsealed) {
  const ReasoningSeal seal(Keys("a"), "acme", "ns/m");
  const std::string sealed = seal.Seal("text", kNow);
  for (size_t i = 0; i < sealed.size(); ++i) {
    std::string changed = sealed;
    changed[i] = changed[i] == 'A' ? 'B' : 'A';
    EXPECT_EQ(seal.Unseal(changed, kNow), std::nullopt) << i;
    EXPECT_EQ(seal.Unseal(sealed.substr(0, i), kNow), std::nullopt) << i;
  }
  EXPECT_EQ(seal.Unseal("gAAAAABo", kNow), std::nullopt);
  EXPECT_EQ(seal.Unseal("tgr1.", kNow), std::nullopt);
}

}  // namespace
}  // namespace tollgate::gateway
