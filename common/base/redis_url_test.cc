#include "common/base/redis_url.h"

#include <gtest/gtest.h>

namespace tollgate::redis {
namespace {

TEST(RedisUrl, ReadsTheThreeForms) {
  const auto single = ParseRedisUrl("redis://cache:7000/3");
  ASSERT_TRUE(single);
  EXPECT_EQ(single->kind, RedisUrl::Kind::kSingle);
  EXPECT_EQ(single->endpoints, (std::vector<Endpoint>{{"cache", "7000"}}));
  EXPECT_EQ(single->database, 3);
  EXPECT_FALSE(single->tls);

  const auto sentinel = ParseRedisUrl("rediss-sentinel://a,b:26380,[::1]:9/limits");
  ASSERT_TRUE(sentinel);
  EXPECT_EQ(sentinel->kind, RedisUrl::Kind::kSentinel);
  EXPECT_TRUE(sentinel->tls);
  EXPECT_EQ(sentinel->endpoints,
            (std::vector<Endpoint>{{"a", "26379"}, {"b", "26380"}, {"::1", "9"}}));
  EXPECT_EQ(sentinel->master_name, "limits");

  const auto cluster = ParseRedisUrl("redis-cluster://a:1,b:2");
  ASSERT_TRUE(cluster);
  EXPECT_EQ(cluster->kind, RedisUrl::Kind::kCluster);
  EXPECT_EQ(cluster->endpoints.size(), 2u);
}

TEST(RedisUrl, RefusesWhatItCannotUse) {
  for (const char* text :
       {"", "cache:6379", "http://cache", "redis-other://a", "redis://", "redis://a:b",
        "redis://a:0", "redis://a:70000", "redis://a,b", "redis://a/x", "redis://a/-1",
        "redis-sentinel://a", "redis-sentinel://a/", "redis-cluster://a/1", "redis://[::1",
        "redis://user:secret@host", "redis-cluster://a,,b"}) {
    const auto url = ParseRedisUrl(text);
    ASSERT_FALSE(url.ok()) << text;
    EXPECT_EQ(url.error().find("secret"), std::string::npos);
  }
}

// The examples of Redis Cluster's specification and of `CLUSTER KEYSLOT`.
TEST(RedisUrl, SlotsAreThoseOfRedisCluster) {
  EXPECT_EQ(SlotOf("123456789"), 0x31C3 % 16384);
  EXPECT_EQ(SlotOf("foo"), 12182);
  EXPECT_EQ(SlotOf(""), 0);
}

}  // namespace
}  // namespace tollgate::redis
