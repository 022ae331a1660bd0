#include "services/auth/domain/limit_set.h"

#include <gtest/gtest.h>

namespace tollgate::auth {
namespace {

TEST(LimitSet, WhatIsStoredIsReadBack) {
  LimitSet limits;
  limits.key = {.requests_per_minute = 1};
  limits.workspace = {.tokens_per_minute = 1'000'000'000'000};
  limits.key_models["a/b"] = {1, 2, 3};
  limits.workspace_models["a/b"] = {.concurrent_requests = 9};
  limits.workspace_models["c/none"] = {};  // an empty entry is not stored
  const LimitSet read = ParseLimits(FormatLimits(limits));
  EXPECT_EQ(FormatLimits(read), FormatLimits(limits));
  EXPECT_EQ(read.key_models.at("a/b").tokens_per_minute, 2);
  EXPECT_EQ(read.workspace.tokens_per_minute, 1'000'000'000'000);
  EXPECT_FALSE(read.workspace_models.contains("c/none"));
  EXPECT_EQ(FormatLimits(ParseLimits("")), "");
}

TEST(LimitSet, OwnLimitsReplaceThoseOfThePlan) {
  EXPECT_TRUE(Choose({}, {5, 0, 0}).of_plan);
  EXPECT_EQ(Choose({}, {5, 0, 0}).limits.requests_per_minute, 5);
  EXPECT_EQ(Choose({0, 7, 0}, {5, 0, 0}).limits.requests_per_minute, 0);
  const auto models =
      Choose(ModelLimits{{"a/b", {1, 0, 0}}}, ModelLimits{{"a/b", {5, 0, 0}}, {"c/d", {6, 0, 0}}});
  EXPECT_EQ(models.at("a/b").limits.requests_per_minute, 1);
  EXPECT_FALSE(models.at("a/b").of_plan);
  EXPECT_EQ(models.at("c/d").limits.requests_per_minute, 6);
  EXPECT_TRUE(models.at("c/d").of_plan);
}

TEST(LimitSet, BadEntriesAreRefusedByField) {
  EXPECT_TRUE(CheckModelLimits({{"a/b", {1, 1, 1}}}, "f"));
  EXPECT_EQ(CheckModelLimits({{"nonsense", {1, 1, 1}}}, "f").error().param, "f");
  EXPECT_FALSE(CheckModelLimits({{"a/b", {-1, 0, 0}}}, "f"));
  EXPECT_FALSE(CheckModelLimits({{"a/*", {1, 1, 1}}}, "f")) << "no exact id";
  ModelLimits many;
  for (int i = 0; i < 201; ++i) many["a/" + std::to_string(i)] = {1, 0, 0};
  EXPECT_FALSE(CheckModelLimits(many, "f"));
  EXPECT_FALSE(CheckPlanId("Gold Plan"));
  EXPECT_TRUE(CheckPlanId("gold"));
}

}  // namespace
}  // namespace tollgate::auth
