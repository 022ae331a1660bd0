#include "services/ratelimit/redis/redis_store.h"

#include "services/ratelimit/redis/scripts.h"

namespace tollgate::ratelimit {
namespace {

constexpr size_t kPerSubject = 4;

// The answer of the acquire script; false if it is not of its form.
bool ReadAnswer(const redisReply& reply, size_t subjects, bool& held,
                std::vector<Reading>& readings) {
  if (reply.type != REDIS_REPLY_ARRAY || reply.elements != 1 + kPerSubject * subjects) return false;
  for (size_t i = 0; i < reply.elements; ++i) {
    if (reply.element[i]->type != REDIS_REPLY_INTEGER) return false;
  }
  held = reply.element[0]->integer == 1;
  for (size_t i = 0; i < subjects; ++i) {
    redisReply** values = reply.element + 1 + kPerSubject * i;
    readings.push_back({.requests_ns = values[0]->integer,
                        .tokens_ns = values[1]->integer,
                        .running = values[2]->integer,
                        .median_hold_us = values[3]->integer});
  }
  return true;
}

Fail<StoreError> BadAnswer() { return {"Redis's answer does not have the form of the script's"}; }

// Answers with the number that the script returned.
ReplyDone AsNumber(StoreDone<int64_t> done) {
  return [done = std::move(done)](BasicResult<Reply, std::string> reply) {
    if (!reply) return done(Fail{std::move(reply).error()});
    if ((*reply)->type != REDIS_REPLY_INTEGER) return done(BadAnswer());
    done(int64_t{(*reply)->integer});
  };
}

}  // namespace

RedisStore::RedisStore(RedisClient& client, std::string id, int64_t lease_us,
                       const Clock* test_clock)
    : client_(client), id_(std::move(id)), lease_us_(lease_us), test_clock_(test_clock) {}

std::string RedisStore::Now() const {
  return test_clock_ == nullptr ? "" : std::to_string(test_clock_->MonotonicUs());
}

std::vector<std::string> RedisStore::Arguments(const Claim& claim, const Hints& hints,
                                               bool take) const {
  std::vector<std::string> arguments = {Now(), claim.lease.ToHex(), std::to_string(lease_us_),
                                        take ? "take" : "read"};
  arguments.reserve(4 + 9 * claim.subjects.size());
  for (size_t i = 0; i < claim.subjects.size(); ++i) {
    const Limits& limits = claim.subjects[i].limits;
    const Cost cost = CostOf(limits, claim.tokens);
    const auto add = [&](int64_t value) { arguments.push_back(std::to_string(value)); };
    arguments.push_back(claim.subjects[i].name);
    add(limits.shadow ? 1 : 0);
    add(limits.requests_per_minute > 0 ? cost.requests_ns : -1);
    add(limits.tokens_per_minute > 0 ? cost.tokens_ns : -1);
    add(std::max<int64_t>(limits.tokens_per_minute, 0));
    add(std::max<int64_t>(limits.concurrent_requests, 0));
    const auto hint = hints.empty() ? Limiter::Recollection() : hints[i];
    add(hints.empty() ? 0 : hint.own ? 2 : 1);
    add(hint.requests_ns);
    add(hint.tokens_ns);
  }
  return arguments;
}

void RedisStore::AcquireWith(std::shared_ptr<const Claim> claim, const Hints& hints,
                             StoreDone<Answer> done) {
  client_.Eval(AcquireScript(), claim->scope, Arguments(*claim, hints, true),
               [claim, done = std::move(done)](BasicResult<Reply, std::string> reply) {
                 if (!reply) return done(Fail{std::move(reply).error()});
                 Answer answer;
                 if (!ReadAnswer(**reply, claim->subjects.size(), answer.held, answer.readings)) {
                   return done(BadAnswer());
                 }
                 answer.outcome = Judge(*claim, answer.readings, answer.held);
                 done(std::move(answer));
               });
}

void RedisStore::Acquire(Claim claim, StoreDone<AcquireOutcome> done) {
  AcquireWith(std::make_shared<const Claim>(std::move(claim)), {},
              [done = std::move(done)](BasicResult<Answer, StoreError> answer) {
                if (!answer) return done(Fail{std::move(answer).error()});
                done(std::move(answer->outcome));
              });
}

void RedisStore::Release(std::string scope, const Id& lease, int64_t actual_tokens, bool refund,
                         StoreDone<bool> done) {
  client_.Eval(ReleaseScript(), scope,
               {Now(), lease.ToHex(), std::to_string(actual_tokens), refund ? "1" : "0"},
               AsNumber([done = std::move(done)](BasicResult<int64_t, StoreError> known) {
                 if (!known) return done(Fail{std::move(known).error()});
                 done(*known == 1);
               }));
}

void RedisStore::Renew(Claim claim, StoreDone<Limiter::Renewal> done) {
  std::vector<std::string> arguments = {Now(), claim.lease.ToHex(), std::to_string(lease_us_)};
  for (const SubjectClaim& subject : claim.subjects) {
    if (subject.limits.concurrent_requests > 0) arguments.push_back(subject.name);
  }
  client_.Eval(RenewScript(), claim.scope, std::move(arguments),
               AsNumber([done = std::move(done)](BasicResult<int64_t, StoreError> renewal) {
                 if (!renewal) return done(Fail{std::move(renewal).error()});
                 done(*renewal == 2   ? Limiter::Renewal::kRestored
                      : *renewal == 1 ? Limiter::Renewal::kRenewed
                                      : Limiter::Renewal::kUnknown);
               }));
}

void RedisStore::Peek(Claim claim, StoreDone<PeekOutcome> done) {
  const auto shared = std::make_shared<const Claim>(std::move(claim));
  client_.Eval(AcquireScript(), shared->scope, Arguments(*shared, {}, false),
               [shared, done = std::move(done)](BasicResult<Reply, std::string> reply) {
                 if (!reply) return done(Fail{std::move(reply).error()});
                 bool held = false;
                 std::vector<Reading> readings;
                 if (!ReadAnswer(**reply, shared->subjects.size(), held, readings)) {
                   return done(BadAnswer());
                 }
                 done(Describe(*shared, readings));
               });
}

void RedisStore::Present(const std::string& process, int64_t life_us, StoreDone<int64_t> done) {
  client_.Eval(PresenceScript(), "replicas", {process, std::to_string(life_us)},
               AsNumber(std::move(done)));
}

}  // namespace tollgate::ratelimit
