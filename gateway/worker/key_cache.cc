#include "gateway/worker/key_cache.h"

#include <algorithm>

namespace tollgate::gateway {

namespace {

constexpr size_t kMaxKeys = 100'000;
constexpr int64_t kSecond = 1'000'000;
constexpr int64_t kPositiveUs = 30 * kSecond;
constexpr int64_t kNegativeUs = 5 * kSecond;
// From this age on, a use starts a look-up in the background.
constexpr int64_t kRefreshUs = 20 * kSecond;
// Silence of the stream after which keys are looked up on use.
constexpr int64_t kSilenceUs = 3 * kSecond;
// How long auth may be away before known keys are refused (decisions.md 14).
constexpr int64_t kOutageUs = 30 * kSecond;
// A request whose key could be served from the cache waits no longer than this for auth.
constexpr int64_t kRevalidateMs = 250;
// After a failed look-up, requests do not wait for another one for so long.
constexpr int64_t kBackOffUs = 1 * kSecond;

}  // namespace

KeyCache::KeyCache(Loop& loop, const Clock& clock, AuthClient& auth,
                   std::shared_ptr<AddressLimiter> lookups)
    : loop_(loop),
      clock_(clock),
      auth_(auth),
      lookups_(std::move(lookups)),
      known_(kMaxKeys, [this](const Known& known) { digest_of_.erase(known.key->key_id()); }),
      unknown_(kMaxKeys / 4) {
  // Nothing has been heard yet.
  stream_heard_us_ = heard_us_ = failed_us_ = clock_.MonotonicUs() - 2 * kOutageUs;
}

bool KeyCache::InContact() const { return clock_.MonotonicUs() - heard_us_ <= kOutageUs; }

bool KeyCache::Streaming(int64_t now_us) const { return now_us - stream_heard_us_ <= kSilenceUs; }

Task<Result<KeyPtr>> KeyCache::Look(std::string digest, std::string_view peer) {
  const int64_t now = clock_.MonotonicUs();
  if (const Known* known = known_.Find(digest)) {
    const int64_t age = now - known->verified_us;
    if (Streaming(now) && age <= kPositiveUs) {
      ++counters_.hits;
      KeyPtr key = known->key;
      if (age > kRefreshUs) StartFlight(digest);
      co_return key;
    }
    co_return co_await Revalidate(std::move(digest), *known);
  }
  if (const int64_t* looked_up_us = unknown_.Find(digest)) {
    if (now - *looked_up_us <= kNegativeUs) {
      ++counters_.negative_hits;
      co_return KeyPtr();
    }
  }
  co_return co_await LookUp(std::move(digest), peer);
}

// Of a key that may be anything.
Task<Result<KeyPtr>> KeyCache::LookUp(std::string digest, std::string_view peer) {
  std::shared_ptr<Flight> flight;
  if (const auto found = flights_.find(digest); found != flights_.end()) {
    flight = found->second;
  } else {
    if (const int64_t wait_us = lookups_->Take(peer, clock_.MonotonicUs()); wait_us > 0) {
      ++counters_.throttled;
      co_return Unavailable("too many unknown keys from this address", wait_us / 1000 + 1);
    }
    flight = StartFlight(digest, peer);
  }
  co_await flight->done.Wait();
  if (!flight->result) ++counters_.unavailable;
  co_return flight->result;
}

Task<Result<KeyPtr>> KeyCache::Revalidate(std::string digest, Known known) {
  const int64_t now = clock_.MonotonicUs();
  // While the stream lived nothing can have changed unnoticed.
  const int64_t good_until = std::max(known.verified_us, stream_heard_us_) + kOutageUs;
  const bool may_serve = now <= good_until;
  const std::shared_ptr<Flight> flight = StartFlight(digest);
  bool landed = flight->done.is_set();
  if (!may_serve) {
    landed = co_await flight->done.Wait();
  } else if (now - failed_us_ > kBackOffUs) {
    landed = co_await flight->done.WaitFor(kRevalidateMs);
  }
  if (landed && flight->result) {
    ++counters_.hits;
    co_return flight->result;
  }
  if (may_serve) {
    ++counters_.stale;
    co_return known.key;
  }
  ++counters_.unavailable;
  co_return landed ? flight->result : Result<KeyPtr>(Unavailable("auth does not answer"));
}

std::shared_ptr<KeyCache::Flight> KeyCache::StartFlight(const std::string& digest,
                                                        std::string_view peer) {
  std::shared_ptr<Flight>& flight = flights_[digest];
  if (flight) return flight;
  flight = std::make_shared<Flight>(loop_);
  flight->peer = peer;
  ++counters_.lookups;
  std::shared_ptr<Flight> started = flight;
  loop_.Spawn(Fly(shared_from_this(), digest, started));
  return started;
}

Task<void> KeyCache::Fly(std::shared_ptr<KeyCache> self, std::string digest,
                         std::shared_ptr<Flight> flight) {
  const int64_t changes_before = self->change_count_;
  const int64_t resets_before = self->reset_count_;
  auth::v1::VerifyKeyRequest request;
  request.set_key_digest(digest);
  auto answer = co_await self->auth_.VerifyKey(std::move(request));
  self->Land(digest, changes_before, resets_before, *flight, std::move(answer));
}

KeyPtr KeyCache::Newest(KeyPtr answered, const std::string& digest, int64_t changes_before) {
  KeyPtr newest = std::move(answered);
  for (const Change& change : changes_) {
    if (change.key && change.number > changes_before && change.key->key_id() == newest->key_id() &&
        change.key->version() > newest->version()) {
      newest = change.key;
    }
  }
  // Another replica of auth may answer from behind what the stream has told already.
  if (const Known* known = known_.Find(digest)) {
    if (known->key->version() > newest->version()) newest = known->key;
  }
  return newest;
}

void KeyCache::Land(const std::string& digest, int64_t changes_before, int64_t resets_before,
                    Flight& flight, Result<auth::v1::VerifyKeyResponse> answer) {
  const int64_t now = clock_.MonotonicUs();
  flights_.erase(digest);
  const bool found_nothing = answer.ok() && !answer->found();
  if (!flight.peer.empty() && !found_nothing) lookups_->GiveBack(flight.peer);
  if (!answer) {
    failed_us_ = now;
    flight.result = Fail{Error{ErrorId::kServiceUnavailable, "", "",
                               std::max<int64_t>(answer.error().retry_after_ms, 1000),
                               "auth: " + answer.error().ToString()}};
    flight.done.Set();
    return;
  }
  heard_us_ = now;
  // What was pushed meanwhile is newer than the answer may be; if too much was, the answer serves
  // this once and is not kept.
  const bool certain = reset_count_ == resets_before &&
                       change_count_ - changes_before <= static_cast<int64_t>(changes_.size());
  if (answer->found()) {
    const KeyPtr key =
        Newest(std::make_shared<const auth::v1::Key>(answer->key()), digest, changes_before);
    if (certain) {
      unknown_.Erase(digest);
      known_.Insert(digest, {key, now});
      digest_of_[key->key_id()] = digest;
    }
    flight.result = key;
  } else {
    if (const Known* known = known_.Find(digest)) digest_of_.erase(known->key->key_id());
    known_.Erase(digest);
    if (certain) unknown_.Insert(digest, now);
    flight.result = KeyPtr();
  }
  flight.done.Set();
}

void KeyCache::OnChanges(const auth::v1::WatchKeysResponse& message) {
  const int64_t now = clock_.MonotonicUs();
  stream_heard_us_ = heard_us_ = now;
  if (message.reset()) {
    known_.Clear();
    unknown_.Clear();
    digest_of_.clear();
    ++reset_count_;
  }
  for (const auth::v1::KeyChange& change : message.changes()) {
    auto key = std::make_shared<const auth::v1::Key>(change.key());
    ++change_count_;
    changes_[static_cast<size_t>(change_count_) % changes_.size()] = {key, change_count_};
    const auto digest = digest_of_.find(key->key_id());
    if (digest == digest_of_.end()) continue;
    Known* known = known_.Find(digest->second);
    if (known != nullptr && known->key->version() <= key->version()) *known = {key, now};
  }
}

}  // namespace tollgate::gateway
