#include "services/auth/storage/live_keys.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/crypto.h"
#include "common/observability/log.h"
#include "common/observability/metrics.h"

namespace tollgate::auth {

namespace {

uint64_t RandomSeed() {
  uint64_t seed = 0;
  std::memcpy(&seed, RandomBytes(sizeof(seed)).data(), sizeof(seed));
  return seed;
}

}  // namespace

LiveKeys::LiveKeys(AuthStore& store, Options options)
    : store_(store),
      options_(options),
      bytes_(metrics::Gauge("tollgate_auth_key_filter_bytes",
                            "Size of the filter of live keys; 0: it is being built.")) {}

void LiveKeys::Restart() {
  filter_.reset();
  bytes_.Set(0);
  BeginReading();
}

void LiveKeys::BeginReading() {
  reading_ = true;
  cursor_.clear();
  elements_.clear();
  read_untagged_ = false;
}

void LiveKeys::Read(uint64_t element, bool is_tagged) {
  elements_.push_back(element);
  if (!is_tagged) read_untagged_ = true;
}

void LiveKeys::Add(const v1::KeyChange& change) {
  if (change.key().state() == v1::KEY_STATE_REVOKED) return;
  const bool is_tagged = change.filter_tag() != 0;
  const uint64_t element = is_tagged ? change.filter_tag() : KeyIdElement(change.key().key_id());
  if (reading_) Read(element, is_tagged);
  if (!filter_) return;
  if (!is_tagged) has_untagged_ = true;
  if (filter_->MayContain(element)) return;
  filter_->Add(element);
  ++count_;
}

Result<void> LiveKeys::ReadOn() {
  if (!reading_ && count_ > planned_) BeginReading();
  for (int page = 0; reading_ && page < options_.pages; ++page) {
    auto keys = store_.LiveKeysAfter(cursor_, options_.page_size);
    if (!keys) return Fail{keys.error()};
    for (const AuthStore::LiveKey& key : *keys) {
      const bool is_tagged = key.filter_tag != 0;
      Read(is_tagged ? key.filter_tag : KeyIdElement(key.key_id), is_tagged);
    }
    if (static_cast<int>(keys->size()) < options_.page_size) {
      Complete();
    } else {
      cursor_ = std::move(keys->back().key_id);
    }
  }
  return {};
}

void LiveKeys::Complete() {
  reading_ = false;
  count_ = elements_.size();
  planned_ = std::max(options_.min_keys, count_ + count_ / 4);
  filter_ = KeyFilter::Make(KeyFilter::ShapeFor(planned_, RandomSeed()));
  for (const uint64_t element : elements_) filter_->Add(element);
  has_untagged_ = read_untagged_;
  std::vector<uint64_t>().swap(elements_);
  ++generation_;
  const size_t bytes = filter_->shape().bytes;
  bytes_.Set(static_cast<double>(bytes));
  log::Info("filter of live keys built",
            {{"keys", static_cast<int64_t>(count_)}, {"bytes", static_cast<int64_t>(bytes)}});
}

}  // namespace tollgate::auth
