#include "services/ratelimit/redis/redis_store.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <cstring>
#include <optional>

#include "services/ratelimit/redis/scripts.h"

namespace tollgate::ratelimit {
namespace {

constexpr size_t kPerSubject = 4;
// Number of hash tags that divide the scopes: enough for the masters of a large Cluster, few enough
// to write to each every second.
constexpr uint32_t kTags = 128;

// Reads the reply of the acquire script. Returns false if it is malformed.
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

// Reads the packed form of MinuteUse in scripts.cc.
constexpr size_t kPackedMinute = 40;
MinuteUse UnpackMinute(const char* bytes) {
  static_assert(std::endian::native == std::endian::little);
  const auto take = [&bytes](auto& into) {
    std::memcpy(&into, bytes, sizeof into);
    bytes += sizeof into;
  };
  MinuteUse use;
  take(use.minute);
  take(use.requests);
  take(use.tokens);
  take(use.requests_peak_us);
  take(use.tokens_peak_us);
  take(use.running_peak);
  take(use.refused_requests);
  take(use.refused_concurrency);
  take(use.refused_tokens);
  return use;
}

// The reported minutes of a subject; nullopt if the reply is malformed.
std::optional<std::vector<MinuteUse>> ReadMinutes(const redisReply& reply, int64_t now_us) {
  if (reply.type != REDIS_REPLY_ARRAY) return std::nullopt;
  std::vector<MinuteUse> minutes;
  for (size_t i = 0; i < reply.elements; ++i) {
    const redisReply& packed = *reply.element[i];
    if (packed.type != REDIS_REPLY_STRING || packed.len != kPackedMinute) return std::nullopt;
    minutes.push_back(UnpackMinute(packed.str));
  }
  const int64_t now = now_us / kMinuteUs;
  std::erase_if(minutes, [now](const MinuteUse& use) {
    return use.minute + kMinutesOfUse <= now || use.minute > now;
  });
  std::ranges::sort(minutes, {}, &MinuteUse::minute);
  return minutes;
}

std::optional<UseAnswer> ReadUseAnswer(const redisReply& reply, size_t subjects) {
  if (reply.type != REDIS_REPLY_ARRAY || reply.elements != 2 + subjects ||
      reply.element[0]->type != REDIS_REPLY_INTEGER ||
      reply.element[1]->type != REDIS_REPLY_INTEGER) {
    return std::nullopt;
  }
  UseAnswer answer{.now_us = reply.element[0]->integer, .counted_us = reply.element[1]->integer};
  for (size_t i = 0; i < subjects; ++i) {
    const redisReply& one = *reply.element[2 + i];
    if (one.type != REDIS_REPLY_ARRAY || one.elements != kPerSubject + 1) return std::nullopt;
    for (size_t j = 0; j < kPerSubject; ++j) {
      if (one.element[j]->type != REDIS_REPLY_INTEGER) return std::nullopt;
    }
    auto minutes = ReadMinutes(*one.element[kPerSubject], answer.now_us);
    if (!minutes) return std::nullopt;
    answer.subjects.push_back({{.requests_ns = one.element[0]->integer,
                                .tokens_ns = one.element[1]->integer,
                                .running = one.element[2]->integer,
                                .median_hold_us = one.element[3]->integer},
                               *std::move(minutes)});
  }
  return answer;
}

Fail<StoreError> BadAnswer() { return {"Redis's answer does not have the script's format"}; }

// Passes on the number that the script returned.
ReplyDone AsNumber(StoreDone<int64_t> done) {
  return [done = std::move(done)](BasicResult<Reply, std::string> reply) {
    if (!reply) return done(Fail{std::move(reply).error()});
    if ((*reply)->type != REDIS_REPLY_INTEGER) return done(BadAnswer());
    done(int64_t{(*reply)->integer});
  };
}

}  // namespace

RedisStore::RedisStore(RedisClient& client, std::string id, int64_t slot_life_us,
                       const Options& options)
    : client_(client), id_(std::move(id)), slot_life_us_(slot_life_us), options_(options) {}

// FNV-1a: must be the same in all processes.
std::string RedisStore::TagOf(const std::string& scope) {
  uint32_t hash = 2166136261u;
  for (const char byte : scope) hash = (hash ^ static_cast<unsigned char>(byte)) * 16777619u;
  return std::to_string(hash % kTags);
}

std::vector<std::string> RedisStore::Head(const std::string& scope) const {
  const Clock* clock = options_.test_clock;
  return {scope, std::to_string(options_.gap_us),
          clock == nullptr ? "" : std::to_string(clock->MonotonicUs())};
}

std::vector<std::string> RedisStore::Arguments(const Claim& claim, const Hints& hints,
                                               bool take) const {
  std::vector<std::string> arguments = Head(claim.scope);
  arguments.reserve(7 + 9 * claim.subjects.size());
  arguments.insert(arguments.end(),
                   {claim.slot.ToHex(), std::to_string(slot_life_us_), take ? "take" : "read",
                    std::to_string(std::clamp<int64_t>(claim.tokens, 0, kMaxCountedTokens))});
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
  client_.Eval(AcquireScript(), TagOf(claim->scope), Arguments(*claim, hints, true),
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

void RedisStore::Release(std::string scope, const Id& slot, int64_t actual_tokens, bool refund,
                         StoreDone<bool> done) {
  std::vector<std::string> arguments = Head(scope);
  arguments.insert(arguments.end(),
                   {slot.ToHex(), std::to_string(actual_tokens), refund ? "1" : "0"});
  client_.Eval(ReleaseScript(), TagOf(scope), std::move(arguments),
               AsNumber([done = std::move(done)](BasicResult<int64_t, StoreError> known) {
                 if (!known) return done(Fail{std::move(known).error()});
                 done(*known == 1);
               }));
}

void RedisStore::Renew(Claim claim, StoreDone<Limiter::Renewal> done) {
  std::vector<std::string> arguments = Head(claim.scope);
  arguments.insert(arguments.end(), {claim.slot.ToHex(), std::to_string(slot_life_us_)});
  for (const SubjectClaim& subject : claim.subjects) {
    if (subject.limits.concurrent_requests > 0) arguments.push_back(subject.name);
  }
  client_.Eval(RenewScript(), TagOf(claim.scope), std::move(arguments),
               AsNumber([done = std::move(done)](BasicResult<int64_t, StoreError> renewal) {
                 if (!renewal) return done(Fail{std::move(renewal).error()});
                 done(*renewal == 2   ? Limiter::Renewal::kRestored
                      : *renewal == 1 ? Limiter::Renewal::kRenewed
                                      : Limiter::Renewal::kUnknown);
               }));
}

void RedisStore::Peek(Claim claim, StoreDone<PeekOutcome> done) {
  const auto shared = std::make_shared<const Claim>(std::move(claim));
  client_.Eval(AcquireScript(), TagOf(shared->scope), Arguments(*shared, {}, false),
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

void RedisStore::ReadUse(UseQuery query, StoreDone<UseAnswer> done) {
  std::vector<std::string> arguments = Head(query.scope);
  arguments.insert(arguments.end(), query.subjects.begin(), query.subjects.end());
  client_.Eval(UseScript(), TagOf(query.scope), std::move(arguments),
               [count = query.subjects.size(),
                done = std::move(done)](BasicResult<Reply, std::string> reply) {
                 if (!reply) return done(Fail{std::move(reply).error()});
                 auto answer = ReadUseAnswer(**reply, count);
                 if (!answer) return done(BadAnswer());
                 done(*std::move(answer));
               });
}

void RedisStore::Watch(StoreDone<int64_t> done) {
  struct Parts {
    std::atomic<uint32_t> left{kTags};
    std::atomic<int64_t> longest_us{0};
    StoreDone<int64_t> done;
  };
  const auto parts = std::make_shared<Parts>();
  parts->done = std::move(done);
  for (uint32_t tag = 0; tag < kTags; ++tag) {
    client_.Eval(WatchScript(), std::to_string(tag), Head(""),
                 AsNumber([parts](BasicResult<int64_t, StoreError> wait) {
                   int64_t longest_us = parts->longest_us;
                   while (wait.ok() && *wait > longest_us &&
                          !parts->longest_us.compare_exchange_weak(longest_us, *wait)) {
                   }
                   if (--parts->left == 0) parts->done(int64_t{parts->longest_us});
                 }));
  }
}

void RedisStore::Present(const std::string& process, int64_t life_us, StoreDone<int64_t> done) {
  client_.Eval(PresenceScript(), "replicas", {process, std::to_string(life_us)},
               AsNumber(std::move(done)));
}

}  // namespace tollgate::ratelimit
