#include "services/ratelimit/redis/redis_client.h"

#include <gtest/gtest.h>

#include <atomic>
#include <future>
#include <thread>

#include "common/base/testing/certificate.h"
#include "services/ratelimit/redis/redis_store.h"
#include "services/ratelimit/redis/scripts.h"
#include "tests/support/redis.h"

namespace tollgate::ratelimit {
namespace {

using testing::TestCertificate;
using testing::TestRedis;

// Whether a client with these options gets an answer; leaves time for the connection.
bool Answers(RedisOptions options, int64_t wait_ms = 60'000) {
  options.timeout_us = 500'000;
  auto client = RedisClient::Make(std::move(options));
  EXPECT_TRUE(client) << (client ? "" : client.error());
  if (!client) return false;
  (*client)->Start();
  RedisStore store(**client, "redis", 9'000'000);
  const bool answered = test::Within(
      [&] {
        auto promise = std::make_shared<std::promise<bool>>();
        auto answer = promise->get_future();
        store.Present("test", 1'000'000, [promise](auto count) { promise->set_value(count.ok()); });
        return answer.get();
      },
      wait_ms, 20);
  (*client)->Stop();
  return answered;
}

TEST(RedisClient, TlsChecksTheServersCertificateAndName) {
  const test::TempDir folder;
  const std::string base = folder.path() + "/";
  const TestCertificate authority("authority"), stranger("stranger");
  const TestCertificate server("redis", "IP:127.0.0.1", &authority);
  authority.WriteCertificate(base + "authority.pem");
  stranger.WriteCertificate(base + "stranger.pem");
  server.Write(base + "redis.pem", base + "redis.key");
  const test::TestPort tls_port;
  const int port = tls_port.number();
  const auto redis = TestRedis::Start(
      {.lines = {"tls-port " + std::to_string(port), "tls-cert-file " + base + "redis.pem",
                 "tls-key-file " + base + "redis.key", "tls-ca-cert-file " + base + "authority.pem",
                 "tls-auth-clients no"}});
  ASSERT_NE(redis, nullptr);
  const std::string address = "127.0.0.1:" + std::to_string(port);
  EXPECT_TRUE(Answers(
      {.url = *ParseRedisUrl("rediss://" + address), .authority_file = base + "authority.pem"}));
  EXPECT_FALSE(Answers(
      {.url = *ParseRedisUrl("rediss://" + address), .authority_file = base + "stranger.pem"},
      500));
  EXPECT_FALSE(Answers({.url = *ParseRedisUrl("rediss://localhost:" + std::to_string(port)),
                        .authority_file = base + "authority.pem"},
                       500))
      << "the certificate is for another name";
  EXPECT_FALSE(Answers({.url = *ParseRedisUrl("redis://" + address)}, 500)) << "plain text";
  EXPECT_FALSE(RedisClient::Make({.url = *ParseRedisUrl("rediss://" + address),
                                  .authority_file = base + "none-such.pem"})
                   .ok());
}

TEST(RedisClient, UserPasswordAndDatabase) {
  const auto redis = TestRedis::Start(
      {.lines = {"user limits on >a-password ~tollgate:* -@all +eval +evalsha +info +role "
                 "+select +cluster|slots +get +set +del +hmget +hset +pttl "
                 "+pexpire +zadd +zrem +zcard +zremrangebyscore +time",
                 "user default on nopass ~* +@all"}});
  ASSERT_NE(redis, nullptr);
  RedisOptions options{
      .url = *ParseRedisUrl(redis->url() + "/5"), .user = "limits", .password = "a-password"};
  EXPECT_TRUE(Answers(options));
  EXPECT_EQ(redis->Command({"DBSIZE"}), "0") << "another database";
  options.password = "wrong";
  EXPECT_FALSE(Answers(options, 500));
}

TEST(RedisClient, AReplicaIsNotWrittenTo) {
  const auto master = TestRedis::Start();
  ASSERT_NE(master, nullptr);
  const auto replica =
      TestRedis::Start({.lines = {"replicaof 127.0.0.1 " + std::to_string(master->port())}});
  ASSERT_NE(replica, nullptr);
  EXPECT_FALSE(Answers({.url = *ParseRedisUrl(replica->url())}, 500));
}

// A call must be answered even if the client is stopped at the same time.
TEST(RedisClient, EachCallIsAnsweredOnceWhenTheClientStops) {
  for (int round = 0; round < 300; ++round) {
    auto client =
        RedisClient::Make({.url = *ParseRedisUrl("redis://" + test::TestPort().address())});
    ASSERT_TRUE(client);
    (*client)->Start();
    std::atomic<int> asked = 0, answered = 0;
    std::atomic<bool> stopping = false;
    std::vector<std::thread> callers;
    for (int i = 0; i < 4; ++i) {
      callers.emplace_back([&] {
        for (int after = 0; after < 20; after += stopping ? 1 : 0) {
          ++asked;
          (*client)->Eval(PresenceScript(), "replicas", {"a", "0"}, [&](auto) { ++answered; });
        }
      });
    }
    stopping = true;
    (*client)->Stop();
    for (std::thread& caller : callers) caller.join();
    ASSERT_EQ(answered, asked) << "round " << round;
  }
}

}  // namespace
}  // namespace tollgate::ratelimit
