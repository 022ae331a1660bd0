#include "gateway/worker/key_cache.h"
#include "common/base/time_units.h"

namespace tollgate::gateway {

namespace {

constexpr size_t kMaxKeys = 100'000;
constexpr int64_t kPositiveUs = 30 * kSecondUs;
constexpr int64_t kNegativeUs = 5 * kSecondUs;
// Age from which a use starts a refresh in the background.
constexpr int64_t kRefreshUs = 20 * kSecondUs;
// Silence of the stream after which keys are revalidated on use.
constexpr int64_t kSilenceUs = 3 * kSecondUs;
// How long cached keys are served while auth is unreachable (decision 14).
constexpr int64_t kOutageUs = 30 * kSecondUs;
// The longest time that a request waits for auth when its key can be served from the cache.
constexpr int64_t kRevalidateMs = 250;
// After a failed lookup, requests with a cached key do not wait for auth for this long.
constexpr int64_t kBackOffUs = 1 * kSecondUs;
// How many times a key is read when its response may lack changes. The second response lacks none,
// unless it comes from a database that is behind the database of the stream.
constexpr int kMaxAttempts = 2;
// How long a key that the filter lacks waits for the stream to reach auth's version. When healthy,
// changes arrive within a second.
constexpr int64_t kCatchUpMs = 1'000;

}  // namespace

KeyCache::KeyCache(Loop& loop, const Clock& clock, AuthClient& auth,
                   std::shared_ptr<AddressLimiter> unknown_key_limiter, int loops)
    : loop_(loop),
      clock_(clock),
      auth_(auth),
      unknown_key_limiter_(std::move(unknown_key_limiter)),
      lookup_budget_(std::make_shared<LookupBudget>(loop, clock, LookupBudget::PerLoop(loops))),
      version_reader_(
          std::make_shared<VersionReader>(loop, clock, auth, VersionReader::PauseUs(loops))),
      stream_advanced_(loop),
      known_(kMaxKeys, [this](const CachedKey& cached) { digest_of_.erase(cached.key->key_id()); }),
      unknown_(kMaxKeys / 4) {
  // No contact with auth yet.
  last_stream_message_us_ = last_contact_us_ = last_failure_us_ =
      clock_.MonotonicUs() - 2 * kOutageUs;
}

void KeyCache::Stop() {
  stopped_ = true;
  version_reader_->Stop();
}

KeyCacheCounters KeyCache::counters() const {
  KeyCacheCounters counters = counters_;
  counters.version_reads = version_reader_->calls();
  return counters;
}

bool KeyCache::HasRecentContact() const {
  return clock_.MonotonicUs() - last_contact_us_ <= kOutageUs;
}

bool KeyCache::StreamIsLive(int64_t now_us) const {
  return now_us - last_stream_message_us_ <= kSilenceUs;
}

Task<Result<KeyPtr>> KeyCache::Get(std::string digest, std::string_view peer,
                                   std::string_view key_id, std::string traceparent) {
  const int64_t now = clock_.MonotonicUs();
  if (const CachedKey* cached = known_.Find(digest)) {
    const int64_t age = now - cached->verified_us;
    if (StreamIsLive(now) && IsCovered(cached->read_version) && age <= kPositiveUs) {
      ++counters_.hits;
      KeyPtr key = cached->key;
      if (age > kRefreshUs) Start(digest);
      co_return key;
    }
    co_return co_await Revalidate(std::move(digest), *cached);
  }
  if (const UnknownKey* unknown = unknown_.Find(digest);
      unknown != nullptr && IsStillUnknown(*unknown, now)) {
    ++counters_.negative_hits;
    co_return KeyPtr();
  }
  if (filter_ && StreamIsLive(now) && co_await IsMadeUp(digest, key_id)) {
    ++counters_.filtered;
    co_return KeyPtr();
  }
  co_return co_await Fetch(std::move(digest), peer, std::move(traceparent));
}

std::optional<KeyPtr> KeyCache::Peek(const std::string& digest) {
  const int64_t now = clock_.MonotonicUs();
  if (const CachedKey* cached = known_.Find(digest)) {
    if (!StreamIsLive(now) || !IsCovered(cached->read_version)) return std::nullopt;
    if (now - cached->verified_us > kPositiveUs) return std::nullopt;
    return cached->key;
  }
  const UnknownKey* unknown = unknown_.Find(digest);
  if (unknown == nullptr || !IsStillUnknown(*unknown, now)) return std::nullopt;
  ++counters_.negative_hits;
  return KeyPtr();
}

bool KeyCache::IsStillUnknown(const UnknownKey& unknown, int64_t now_us) const {
  // The key may have been created since: changes carry the key's id but not its digest.
  return unknown.read_version >= std::max(complete_from_, last_change_version_) &&
         now_us - unknown.looked_up_us <= kNegativeUs;
}

Task<bool> KeyCache::IsMadeUp(std::string_view digest, std::string_view key_id) {
  if (filter_->MayContain(digest, key_id)) co_return false;
  // A key that was just created may not have reached the filter.
  const std::optional<int64_t> version = co_await version_reader_->Read();
  if (!version) co_return false;
  const int64_t deadline_us = clock_.MonotonicUs() + kCatchUpMs * 1000;
  while (stream_version_ < *version) {
    const int64_t left_us = deadline_us - clock_.MonotonicUs();
    if (left_us <= 0 || !co_await stream_advanced_.WaitFor(left_us / 1000 + 1)) co_return false;
  }
  co_return filter_ && !filter_->MayContain(digest, key_id);
}

Task<Result<KeyPtr>> KeyCache::Fetch(std::string digest, std::string_view peer,
                                     std::string traceparent) {
  std::shared_ptr<Lookup> lookup;
  if (const auto found = in_flight_.find(digest); found != in_flight_.end()) {
    lookup = found->second;
  } else {
    const int64_t wait_us = unknown_key_limiter_->Take(peer, clock_.MonotonicUs());
    if (wait_us > 0) {
      ++counters_.throttled;
      co_return Unavailable(Reason::kUnknownKeys, "too many unknown keys from this address",
                            wait_us / 1000 + 1);
    }
    lookup = Start(digest, std::string(peer), std::move(traceparent));
  }
  co_await lookup->done.Wait();
  if (!lookup->result) ++counters_.unavailable;
  co_return lookup->result;
}

Task<Result<KeyPtr>> KeyCache::Revalidate(std::string digest, CachedKey cached) {
  const int64_t now = clock_.MonotonicUs();
  // If the stream covers the key, every change up to the stream's last message has been applied.
  const int64_t applied_until_us = IsCovered(cached.read_version)
                                       ? std::max(cached.verified_us, last_stream_message_us_)
                                       : cached.verified_us;
  const int64_t valid_until_us = applied_until_us + kOutageUs;
  const bool may_serve_stale = now <= valid_until_us;
  const std::shared_ptr<Lookup> lookup = Start(digest);
  bool done = lookup->done.is_set();
  if (!may_serve_stale) {
    done = co_await lookup->done.Wait();
  } else if (now - last_failure_us_ > kBackOffUs) {
    done = co_await lookup->done.WaitFor(kRevalidateMs);
  }
  if (done && lookup->result) {
    ++counters_.hits;
    co_return lookup->result;
  }
  if (may_serve_stale) {
    ++counters_.stale;
    co_return cached.key;
  }
  ++counters_.unavailable;
  if (done) co_return lookup->result;
  co_return Unavailable(Reason::kAuthUnavailable, "auth did not respond in time");
}

std::shared_ptr<KeyCache::Lookup> KeyCache::Start(const std::string& digest,
                                                  std::optional<std::string> peer,
                                                  std::string traceparent) {
  std::shared_ptr<Lookup>& entry = in_flight_[digest];
  if (entry) return entry;
  entry = std::make_shared<Lookup>(loop_);
  entry->peer = std::move(peer);
  entry->traceparent = std::move(traceparent);
  std::shared_ptr<Lookup> started = entry;
  loop_.Spawn(Run(shared_from_this(), digest, started));
  return started;
}

Task<void> KeyCache::Run(std::shared_ptr<KeyCache> self, std::string digest,
                         std::shared_ptr<Lookup> lookup) {
  const std::optional<std::string> peer = lookup->peer;
  if (peer && !co_await self->lookup_budget_->Take(AddressSubject::FromText(*peer))) {
    ++self->counters_.throttled;
    self->unknown_key_limiter_->Refund(*peer);
    co_return self->Drop(digest, *lookup,
                         Unavailable(Reason::kUnknownKeys, "too many unknown keys").error);
  }
  while (!self->stopped_) {
    ++self->counters_.lookups;
    ++lookup->attempts;
    lookup->stream_version = self->stream_version_;
    lookup->resets = self->reset_count_;
    auth::v1::VerifyKeyRequest request;
    request.set_key_digest(digest);
    request.set_traceparent(lookup->traceparent);
    const auto answer = co_await self->auth_.VerifyKey(std::move(request));
    if (self->Finish(digest, *lookup, answer)) co_return;
  }
  self->Drop(digest, *lookup, Unavailable(Reason::kStopping, "the gateway is stopping").error);
}

void KeyCache::Drop(const std::string& digest, Lookup& lookup, Error error) {
  in_flight_.erase(digest);
  lookup.result = Fail{std::move(error)};
  lookup.done.Set();
}

KeyPtr KeyCache::NewestVersion(KeyPtr answered, const std::string& digest) {
  KeyPtr newest = std::move(answered);
  for (const KeyPtr& change : changes_) {
    if (change && change->key_id() == newest->key_id() && change->version() > newest->version()) {
      newest = change;
    }
  }
  // This replica of auth may be behind the stream.
  if (const CachedKey* cached = known_.Find(digest)) {
    if (cached->key->version() > newest->version()) newest = cached->key;
  }
  return newest;
}

bool KeyCache::Finish(const std::string& digest, Lookup& lookup,
                      const Result<auth::v1::VerifyKeyResponse>& given) {
  const int64_t now = clock_.MonotonicUs();
  if (stream_vouches_ && given && !given->vouched()) others_answer_ = true;
  const Result<auth::v1::VerifyKeyResponse> overruled =
      Unavailable("auth vouches without its database, while another replica has one");
  const auto& answer = others_answer_ && given && given->vouched() ? overruled : given;
  int64_t read_version = kNoVersion;
  if (answer) {
    // The database had at least the version that the stream had reached when the call was made.
    read_version = answer->version() > 0 ? answer->version() : lookup.stream_version;
    if (IsOvertaken(read_version) || lookup.resets != reset_count_) {
      if (lookup.attempts < kMaxAttempts && !stopped_) return false;
      read_version = kNoVersion;  // revalidated on its next use
    }
  }
  in_flight_.erase(digest);
  const bool found_nothing = answer.ok() && !answer->found();
  if (lookup.peer && !found_nothing) {
    unknown_key_limiter_->Refund(*lookup.peer);
    lookup_budget_->GiveBack();
  }
  if (answer) {
    last_contact_us_ = now;
    Store(digest, lookup, *answer, read_version);
  } else {
    last_failure_us_ = now;
    lookup.result = Unavailable(Reason::kAuthUnavailable, "auth: " + answer.error().ToString(),
                                std::max<int64_t>(answer.error().retry_after_ms, 1000));
  }
  lookup.done.Set();
  return true;
}

void KeyCache::Store(const std::string& digest, Lookup& lookup,
                     const auth::v1::VerifyKeyResponse& answer, int64_t read_version) {
  const int64_t now = clock_.MonotonicUs();
  if (answer.found()) {
    const KeyPtr key = NewestVersion(std::make_shared<const auth::v1::Key>(answer.key()), digest);
    unknown_.Erase(digest);
    const CachedKey& cached = known_.Insert(digest, {key, now, read_version});
    digest_of_[key->key_id()] = digest;
    Share(digest, cached);
    lookup.result = key;
  } else {
    if (const CachedKey* cached = known_.Find(digest)) digest_of_.erase(cached->key->key_id());
    known_.Erase(digest);
    unknown_.Insert(digest, {now, read_version});
    lookup.result = KeyPtr();
  }
}

void KeyCache::Share(const std::string& digest, const CachedKey& cached) const {
  if (peers_.empty() || stopped_) return;
  const auto found = std::make_shared<const FoundKey>(FoundKey{digest, cached, reset_count_});
  for (const Peer& peer : peers_) {
    peer.loop->Post([weak = peer.cache, found] {
      if (const auto cache = weak.lock()) cache->Adopt(*found);
    });
  }
}

// The loops get the same messages of the stream, but not at the same time.
void KeyCache::Adopt(const FoundKey& found) {
  if (stopped_ || found.resets != reset_count_ || IsOvertaken(found.cached.read_version)) return;
  const CachedKey* known = known_.Find(found.digest);
  if (known != nullptr && known->verified_us >= found.cached.verified_us) return;
  CachedKey adopted = found.cached;
  adopted.key = NewestVersion(adopted.key, found.digest);
  digest_of_[adopted.key->key_id()] = found.digest;
  unknown_.Erase(found.digest);
  known_.Insert(found.digest, std::move(adopted));
}

void KeyCache::OnChanges(const auth::v1::WatchKeysResponse& message) {
  const int64_t now = clock_.MonotonicUs();
  stream_vouches_ = message.vouched();
  if (!stream_vouches_) others_answer_ = false;
  if (others_answer_) return;
  last_stream_message_us_ = last_contact_us_ = now;
  if (message.reset()) {
    known_.Clear();
    unknown_.Clear();
    digest_of_.clear();
    changes_ = {};
    ++reset_count_;
  }
  // The stream begins here. Auth treats every watcher at version 0 as new.
  if (message.reset() || stream_version_ <= 0) {
    complete_from_ = message.version();
    lost_change_version_ = last_change_version_ = kNoVersion;
    stream_version_ = message.version();
  }
  if (message.version() > stream_version_) stream_version_ = message.version();
  stream_advanced_.NotifyAll();
  for (const auth::v1::KeyChange& change : message.changes()) {
    auto key = std::make_shared<const auth::v1::Key>(change.key());
    last_change_version_ = std::max(last_change_version_, key->version());
    KeyPtr& oldest = changes_[next_change_++ % changes_.size()];
    if (oldest) lost_change_version_ = std::max(lost_change_version_, oldest->version());
    oldest = key;
    const auto digest = digest_of_.find(key->key_id());
    if (digest == digest_of_.end()) continue;
    CachedKey* cached = known_.Find(digest->second);
    if (cached != nullptr && cached->key->version() <= key->version()) {
      *cached = {key, now, std::max(cached->read_version, key->version())};
    }
  }
}

}  // namespace tollgate::gateway
