#include "services/ratelimit/redis/redis_store.h"

#include <gtest/gtest.h>

#include <future>
#include <random>
#include <sstream>

#include "services/ratelimit/storage/memory_store.h"
#include "tests/support/redis.h"

namespace tollgate::ratelimit {
namespace {

constexpr int64_t kSlotLifeUs = 9'000'000;

// Runs one call and waits for its answer.
template <typename T, typename Body>
BasicResult<T, StoreError> Wait(const Body& body) {
  auto promise = std::make_shared<std::promise<BasicResult<T, StoreError>>>();
  auto answer = promise->get_future();
  body([promise](BasicResult<T, StoreError> result) { promise->set_value(std::move(result)); });
  if (answer.wait_for(std::chrono::seconds(60)) != std::future_status::ready) {
    return Fail{StoreError("no answer")};
  }
  return answer.get();
}

std::string Text(const Status& status) {
  return std::to_string(status.limit) + "/" + std::to_string(status.remaining) + "/" +
         std::to_string(status.reset_ms);
}
std::string Text(const BasicResult<AcquireOutcome, StoreError>& outcome) {
  if (!outcome) return "error " + outcome.error();
  std::string text = std::to_string(static_cast<int>(outcome->denied_by)) + " by " +
                     std::to_string(static_cast<int>(outcome->denied_subject)) + " retry " +
                     std::to_string(outcome->retry_after_ms) + " requests " +
                     Text(outcome->requests) + " tokens " + Text(outcome->tokens) + " shadow";
  for (const Kind kind : outcome->shadow_refusals) {
    text += " " + std::to_string(static_cast<int>(kind));
  }
  return text;
}
std::string Text(const BasicResult<PeekOutcome, StoreError>& outcome) {
  if (!outcome) return "error " + outcome.error();
  return Text(outcome->requests) + " " + Text(outcome->tokens) + " " + Text(outcome->concurrency);
}
std::string Text(const BasicResult<UseAnswer, StoreError>& answer) {
  if (!answer) return "error " + answer.error();
  std::ostringstream text;
  text << answer->now_us << " " << answer->minutes_known;
  for (const UseAnswer::Of& of : answer->subjects) {
    text << "\n"
         << of.reading.requests_ns << " " << of.reading.tokens_ns << " " << of.reading.running;
    for (const MinuteUse& use : of.minutes) {
      text << "\n  " << use.minute << ": " << use.requests << " " << use.tokens << " peaks "
           << use.requests_peak_us << " " << use.tokens_peak_us << " " << use.running_peak
           << " refused " << use.refused_requests << " " << use.refused_concurrency << " "
           << use.refused_tokens;
    }
  }
  return text.str();
}
template <typename T>
std::string Text(const BasicResult<T, StoreError>& value) {
  return value ? std::to_string(static_cast<int>(*value)) : "error " + value.error();
}

class RedisStoreTest : public ::testing::Test {
 protected:
  void SetUp() override {
    server_ = testing::TestRedis::Start();
    ASSERT_NE(server_, nullptr);
    client_ = Connect();
  }
  std::unique_ptr<RedisClient> Connect() {
    auto client =
        RedisClient::Make({.url = *ParseRedisUrl(server_->url()), .timeout_us = 30'000'000});
    EXPECT_TRUE(client);
    (*client)->Start();
    RedisStore probe(**client, "probe", kSlotLifeUs);
    EXPECT_TRUE(test::WaitUntil(
        [&] { return Wait<int64_t>([&](auto done) { probe.Present("t", 0, done); }).ok(); },
        10'000));
    return std::move(*client);
  }
  std::unique_ptr<testing::TestRedis> server_;
  std::unique_ptr<RedisClient> client_;
};

class History {
 public:
  explicit History(uint64_t seed) : random_(seed) {}
  int64_t Number(int64_t below) {
    return static_cast<int64_t>(random_() % static_cast<uint64_t>(below));
  }
  // Mostly small numbers, sometimes the extremes.
  int64_t Limit() {
    switch (Number(8)) {
      case 0:
        return 0;
      case 1:
        return 1;
      case 2:
        return 1'000'000'000'000;  // the largest that can be set
      case 3:
        return 7'777'777;
      default:
        return 1 + Number(120);
    }
  }
  Limits SomeLimits() {
    return {.requests_per_minute = Limit(),
            .tokens_per_minute = Number(2) == 0 ? Limit() : 1 + Number(100'000),
            .concurrent_requests = Number(2) == 0 ? 0 : 1 + Number(5),
            .shadow = Number(6) == 0};
  }
  int64_t Tokens() {
    return Number(10) == 0 ? Number(int64_t{1} << 60) : Number(3) == 0 ? 0 : Number(50'000);
  }
  Claim SomeClaim() {
    static constexpr const char* kNames[] = {"all", "key:a", "key:b", "key:a:model:x/y",
                                             "model:x/y"};
    Claim claim{.slot = Id::Make(1, 0, static_cast<uint64_t>(1 + Number(12))),
                .scope = Number(2) == 0 ? "w:one" : "w:two",
                .tokens = Tokens()};
    for (const char* name : kNames) {
      if (Number(2) == 0)
        claim.subjects.push_back(
            {static_cast<Who>(1 + Number(5)), name, Number(3) == 0 ? SomeLimits() : fixed_});
    }
    return claim;
  }
  int64_t Pause() {
    switch (Number(6)) {
      case 0:
        return 0;
      case 1:
        return Number(10'000'000);
      case 2:
        return Number(60) == 0 ? 700'000'000 : 9'000'000;
      default:
        return Number(500'000);
    }
  }

 private:
  std::mt19937_64 random_;
  const Limits fixed_{
      .requests_per_minute = 20, .tokens_per_minute = 90'000, .concurrent_requests = 3};
};

// Both stores give the same answers to the same calls at the same times, to the millisecond and the
// unit.
TEST_F(RedisStoreTest, AnswersAsTheStoreInMemoryInAnyHistory) {
  for (uint64_t seed = 1; seed <= 12; ++seed) {
    ASSERT_EQ(server_->Command({"FLUSHALL"}), "OK");
    ManualClock clock;
    MemoryStore memory(clock, kSlotLifeUs);
    RedisStore redis(*client_, "redis", kSlotLifeUs, {.test_clock = &clock});
    History history(seed);
    int refused = 0;
    for (int step = 0; step < 1500; ++step) {
      clock.Advance(history.Pause());
      const Claim claim = history.SomeClaim();
      const std::string at = "seed " + std::to_string(seed) + " step " + std::to_string(step);
      switch (history.Number(9)) {
        case 8: {
          UseQuery query{.scope = claim.scope};
          for (const SubjectClaim& subject : claim.subjects) {
            query.subjects.push_back(subject.name);
          }
          ASSERT_EQ(Text(Wait<UseAnswer>([&](auto done) { redis.ReadUse(query, done); })),
                    Text(Wait<UseAnswer>([&](auto done) { memory.ReadUse(query, done); })))
              << at;
          break;
        }
        case 0: {
          ASSERT_EQ(Text(Wait<Limiter::Renewal>([&](auto done) { redis.Renew(claim, done); })),
                    Text(Wait<Limiter::Renewal>([&](auto done) { memory.Renew(claim, done); })))
              << at;
          break;
        }
        case 1: {
          ASSERT_EQ(Text(Wait<PeekOutcome>([&](auto done) { redis.Peek(claim, done); })),
                    Text(Wait<PeekOutcome>([&](auto done) { memory.Peek(claim, done); })))
              << at;
          break;
        }
        case 2:
        case 3:
        case 4: {
          const int64_t tokens = history.Tokens();
          const bool refund = history.Number(3) == 0;
          const auto release = [&](LimiterStore& store) {
            return Text(Wait<bool>(
                [&](auto done) { store.Release(claim.scope, claim.slot, tokens, refund, done); }));
          };
          ASSERT_EQ(release(redis), release(memory)) << at;
          break;
        }
        default: {
          const auto acquire = [&](LimiterStore& store) {
            return Wait<AcquireOutcome>([&](auto done) { store.Acquire(claim, done); });
          };
          const auto outcome = acquire(redis);
          ASSERT_EQ(Text(outcome), Text(acquire(memory))) << at;
          refused += outcome->granted() ? 0 : 1;
        }
      }
    }
    EXPECT_GT(refused, 50) << "a history that nothing refuses tests nothing";
  }
}

// Use is known from the first Watch on, until Redis loses its data.
TEST_F(RedisStoreTest, UseIsCountedSinceRedisHasItsData) {
  ManualClock clock;
  clock.Advance(1'000'000);
  RedisStore store(*client_, "redis", kSlotLifeUs, {.test_clock = &clock});
  const auto counted_us = [&] {
    const auto answer = Wait<UseAnswer>([&](auto done) { store.ReadUse({.scope = "w:a"}, done); });
    return answer ? answer->counted_us : -1;
  };
  EXPECT_EQ(counted_us(), 0);
  ASSERT_TRUE(Wait<int64_t>([&](auto done) { store.Watch(done); }));
  clock.Advance(5'000'000);
  ASSERT_TRUE(Wait<int64_t>([&](auto done) { store.Watch(done); }));
  EXPECT_EQ(counted_us(), 5'000'000);
  ASSERT_EQ(server_->Command({"FLUSHALL"}), "OK");
  EXPECT_EQ(counted_us(), 0);
}

// An hour after the last use, Redis holds nothing of it.
TEST_F(RedisStoreTest, UseLeavesRedisByItself) {
  RedisStore store(*client_, "redis", kSlotLifeUs);
  const Claim claim{.slot = Id::New(),
                    .scope = "w:a",
                    .subjects = {{Who::kKey, "key:k", {.requests_per_minute = 5}}}};
  ASSERT_TRUE(Wait<AcquireOutcome>([&](auto done) { store.Acquire(claim, done); }));
  const std::string key = "tollgate:{" + RedisStore::TagOf("w:a") + "}:w:a:u:key:k";
  const int64_t left_ms = std::stoll(server_->Command({"PTTL", key}));
  EXPECT_GT(left_ms, 3'600'000);
  EXPECT_LE(left_ms, 3'660'000);
}

// Several processes on one Redis together admit exactly the limit.
TEST_F(RedisStoreTest, ThreeProcessesAdmitTheLimitOnce) {
  const auto second = Connect();
  const auto third = Connect();
  RedisClient* clients[] = {client_.get(), second.get(), third.get()};
  std::atomic<int> granted{0}, answered{0};
  constexpr int kCalls = 900;
  for (int i = 0; i < kCalls; ++i) {
    RedisStore store(*clients[i % 3], "redis", kSlotLifeUs);
    const Claim claim{.slot = Id::New(),
                      .scope = "w:a",
                      .subjects = {{Who::kWorkspace, "all", {.concurrent_requests = 100}}}};
    store.Acquire(claim, [&](auto outcome) {
      if (outcome.ok() && outcome->granted()) ++granted;
      ++answered;
    });
  }
  ASSERT_TRUE(test::WaitUntil([&] { return answered == kCalls; }, 20'000));
  EXPECT_EQ(granted, 100);
}

// While Redis does not know the running requests, granting slots could exceed the limit. Rates are
// not affected. See docs/design/limits.md 4.
class UnsettledTest : public RedisStoreTest {
 protected:
  static constexpr int64_t kGap = 3'000'000, kQuietMs = 4'000;
  void SetUp() override {
    RedisStoreTest::SetUp();
    store_ = Store(*client_);
    Pass(kQuietMs / 1000);  // the state before the start is unknown
  }
  std::unique_ptr<RedisStore> Store(RedisClient& client) {
    return std::make_unique<RedisStore>(client, "redis", kSlotLifeUs,
                                        RedisStore::Options{.gap_us = kGap, .test_clock = &clock_});
  }
  // Lets this many seconds pass while a process is alive.
  void Pass(int64_t seconds) {
    for (int64_t i = 0; i <= seconds; ++i) {
      EXPECT_TRUE(Wait<int64_t>([&](auto done) { store_->Watch(done); }).ok());
      if (i < seconds) clock_.Advance(1'000'000);
    }
  }
  Claim Slot(uint64_t slot) const {
    return {.slot = Id::Make(1, 0, slot),
            .scope = "w:a",
            .subjects = {{Who::kWorkspace, "all", {.concurrent_requests = 2}}}};
  }
  AcquireOutcome Acquire(const Claim& claim) {
    const auto outcome = Wait<AcquireOutcome>([&](auto done) { store_->Acquire(claim, done); });
    EXPECT_TRUE(outcome.ok()) << outcome.error();
    return outcome.ok() ? *outcome : AcquireOutcome{.denied_by = Kind::kRequests};
  }
  void TakeBoth() {
    ASSERT_TRUE(Acquire(Slot(1)).granted());
    ASSERT_TRUE(Acquire(Slot(2)).granted());
  }
  // Redis has lost both slots: no slot is free until they are renewed, and none afterwards.
  void ExpectNoThirdSlot() {
    const AcquireOutcome refused = Acquire(Slot(3));
    EXPECT_EQ(refused.denied_by, Kind::kConcurrency);
    EXPECT_EQ(refused.retry_after_ms, kQuietMs);
    EXPECT_TRUE(Acquire({.slot = Id::New(),
                         .scope = "w:a",
                         .subjects = {{Who::kKey, "key:a", {.requests_per_minute = 5}}}})
                    .granted());
    Pass(2);
    EXPECT_EQ(Acquire(Slot(3)).retry_after_ms, kQuietMs - 2000);
    for (const uint64_t slot : {1, 2}) {
      EXPECT_EQ(Text(Wait<Limiter::Renewal>([&](auto done) { store_->Renew(Slot(slot), done); })),
                std::to_string(static_cast<int>(Limiter::Renewal::kRestored)));
    }
    Pass(2);
    EXPECT_EQ(Acquire(Slot(3)).denied_by, Kind::kConcurrency) << "two run";
    EXPECT_TRUE(
        Wait<bool>([&](auto done) { store_->Release("w:a", Slot(1).slot, 0, false, done); }).ok());
    EXPECT_TRUE(Acquire(Slot(3)).granted());
  }
  ManualClock clock_;
  std::unique_ptr<RedisStore> store_;
};

TEST_F(UnsettledTest, AFlushedRedisGivesNoSlotBeforeThoseOfRunningRequestsAreRenewed) {
  TakeBoth();
  ASSERT_EQ(server_->Command({"FLUSHALL"}), "OK");
  ExpectNoThirdSlot();
}

// While Redis hangs or no ratelimit process runs, slots expire because nothing can renew them.
TEST_F(UnsettledTest, SlotsThatNobodyCouldRenewAreNotTakenForEnded) {
  TakeBoth();
  clock_.Advance(10'000'000);
  ExpectNoThirdSlot();
}

// As after a failover that lost the newest writes: the state is there, but was written by another
// server.
TEST_F(UnsettledTest, AnotherServerWithTheStateOfTheFirstMayLackSlots) {
  TakeBoth();
  ASSERT_EQ(server_->Command({"SAVE"}), "OK");
  server_->process().Kill();
  ASSERT_TRUE(server_->Run());
  client_->Stop();
  client_ = Connect();
  store_ = Store(*client_);
  EXPECT_EQ(Acquire(Slot(3)).retry_after_ms, kQuietMs);
  Pass(kQuietMs / 1000);
  EXPECT_EQ(Acquire(Slot(3)).denied_by, Kind::kConcurrency) << "both were saved";
}

// Slots of a crashed gateway expire while others are renewed: this is not a loss.
TEST_F(UnsettledTest, SlotsThatExpireWhileOthersAreRenewedHaveEnded) {
  TakeBoth();
  Pass(10);
  EXPECT_TRUE(Acquire(Slot(3)).granted());
  // An existing slot is granted again even if other slots may be missing.
  ASSERT_EQ(server_->Command({"FLUSHALL"}), "OK");
  EXPECT_FALSE(Acquire(Slot(4)).granted());
  EXPECT_TRUE(Wait<Limiter::Renewal>([&](auto done) { store_->Renew(Slot(3), done); }).ok());
  EXPECT_TRUE(Acquire(Slot(3)).granted());
}

// A script that Redis has forgotten is sent again, without an error for the caller.
TEST_F(RedisStoreTest, AForgottenScriptIsLoadedAgain) {
  RedisStore store(*client_, "redis", kSlotLifeUs);
  const auto acquire = [&] {
    return Wait<AcquireOutcome>([&](auto done) {
      store.Acquire({.slot = Id::New(),
                     .scope = "w:a",
                     .subjects = {{Who::kWorkspace, "all", {.requests_per_minute = 3}}}},
                    done);
    });
  };
  ASSERT_TRUE(acquire());
  ASSERT_EQ(server_->Command({"SCRIPT", "FLUSH"}), "OK");
  const auto again = acquire();
  ASSERT_TRUE(again) << again.error();
  EXPECT_EQ(again->requests.remaining, 1);
}

// Hints count where Redis has lost its data (FLUSHALL, a failover), and only there.
TEST_F(RedisStoreTest, HintsRestoreWhatRedisHasLost) {
  RedisStore store(*client_, "redis", kSlotLifeUs);
  const Limits limits{.requests_per_minute = 10};
  const auto remaining = [&](const Hints& hints) {
    const auto claim = std::make_shared<const Claim>(
        Claim{.slot = Id::New(), .scope = "w:a", .subjects = {{Who::kKey, "key:a", limits}}});
    const auto answer =
        Wait<RedisStore::Answer>([&](auto done) { store.AcquireWith(claim, hints, done); });
    return answer ? answer->outcome.requests.remaining : -1;
  };
  EXPECT_EQ(remaining({}), 9);
  // Redis's own state counts
  EXPECT_EQ(remaining({{.requests_ns = 50'000'000'000, .own = false}}), 8);
  // the hint is higher and counts
  EXPECT_EQ(remaining({{.requests_ns = 30'000'000'000, .own = true}}), 4);
  EXPECT_EQ(remaining({{.requests_ns = 58'000'000'000, .own = true}}), 0) << "refused";
  EXPECT_EQ(remaining({}), 0) << "and yet remembered";
  ASSERT_EQ(server_->Command({"FLUSHALL"}), "OK");
  EXPECT_EQ(remaining({{.requests_ns = 42'000'000'000, .own = false}}), 2);
}

// Every key of an idle subject expires.
TEST_F(RedisStoreTest, EveryKeyExpires) {
  RedisStore store(*client_, "redis", kSlotLifeUs);
  const auto taken = Wait<AcquireOutcome>([&](auto done) {
    store.Acquire({.slot = Id::New(),
                   .scope = "w:a",
                   .subjects = {{Who::kKey,
                                 "key:a",
                                 {.requests_per_minute = 3,
                                  .tokens_per_minute = 5,
                                  .concurrent_requests = 2}}},
                   .tokens = 3},
                  done);
  });
  ASSERT_TRUE(taken) << taken.error();
  const std::string keys = server_->Command({"KEYS", "*"});
  ASSERT_FALSE(keys.empty());
  std::istringstream names(keys);
  for (std::string name; names >> name;) {
    EXPECT_GT(std::stoll(server_->Command({"PTTL", name})), 0) << name;
  }
}

}  // namespace
}  // namespace tollgate::ratelimit
