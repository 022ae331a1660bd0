#include "gateway/pipeline/admission/limits.h"

#include <gtest/gtest.h>

namespace tollgate::gateway {
namespace {

// The limiter is asked about everything that limits a request, and about nothing else.
TEST(Limits, AllSubjectsWithLimitsAreCollected) {
  auth::v1::Key key;
  catalog::v1::Model model;
  model.set_id("a/b");
  ratelimit::v1::AcquireItem none;
  EXPECT_FALSE(CollectLimits(key, &model, none));

  key.mutable_key_limits()->set_requests_per_minute(1);
  (*key.mutable_key_model_limits())["a/b"].set_requests_per_minute(2);
  (*key.mutable_key_model_limits())["c/d"].set_requests_per_minute(9);
  (*key.mutable_workspace_model_limits())["a/b"].set_tokens_per_minute(3);
  (*key.mutable_workspace_model_limits())["a/b"].set_shadow(true);
  model.mutable_capacity()->set_concurrent_requests(4);
  ratelimit::v1::AcquireItem item;
  EXPECT_TRUE(CollectLimits(key, &model, item));
  EXPECT_EQ(item.model(), "a/b");
  EXPECT_EQ(item.key_limits().requests_per_minute(), 1);
  EXPECT_FALSE(item.has_workspace_limits());
  EXPECT_EQ(item.key_model_limits().requests_per_minute(), 2);
  EXPECT_EQ(item.workspace_model_limits().tokens_per_minute(), 3);
  EXPECT_TRUE(item.workspace_model_limits().shadow());
  EXPECT_EQ(item.model_limits().concurrent_requests(), 4);

  // With another model, an unlisted one or none, limits of the model do not apply.
  for (const std::string& id : {std::string("e/f"), std::string()}) {
    catalog::v1::Model other;
    other.set_id(id);
    ratelimit::v1::AcquireItem plain;
    EXPECT_TRUE(CollectLimits(key, &other, plain));
    EXPECT_EQ(plain.model(), "");
    EXPECT_FALSE(plain.has_key_model_limits() || plain.has_model_limits());
  }
  ratelimit::v1::AcquireItem without;
  EXPECT_TRUE(CollectLimits(key, nullptr, without));
  EXPECT_FALSE(without.has_model_limits());
}

}  // namespace
}  // namespace tollgate::gateway
