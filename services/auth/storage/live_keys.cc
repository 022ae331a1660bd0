#include "services/auth/storage/live_keys.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "common/base/crypto.h"
#include "common/base/try.h"
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
  has_read_all_ = false;
  next_.reset();
  built_ = 0;
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
  if (!reading_) return {};
  if (!has_read_all_) {
    TRY(ReadPages());
  }
  if (has_read_all_) Build();
  return {};
}

Result<void> LiveKeys::ReadPages() {
  for (int page = 0; !has_read_all_ && page < options_.pages; ++page) {
    TRY(auto keys, store_.LiveKeysAfter(cursor_, options_.page_size));
    for (const AuthStore::LiveKey& key : keys) {
      const bool is_tagged = key.filter_tag != 0;
      Read(is_tagged ? key.filter_tag : KeyIdElement(key.key_id), is_tagged);
    }
    has_read_all_ = static_cast<int>(keys.size()) < options_.page_size;
    if (!has_read_all_) cursor_ = std::move(keys.back().key_id);
  }
  return {};
}

void LiveKeys::Build() {
  if (!next_) {
    planned_of_next_ = std::max(options_.min_keys, elements_.size() + elements_.size() / 4);
    next_ = KeyFilter::Make(KeyFilter::ShapeFor(planned_of_next_, RandomSeed()));
  }
  const size_t end = std::min(elements_.size(), built_ + options_.elements);
  for (; built_ < end; ++built_) next_->Add(elements_[built_]);
  if (built_ == elements_.size()) Complete();
}

void LiveKeys::Complete() {
  reading_ = false;
  filter_ = std::exchange(next_, nullptr);
  count_ = elements_.size();
  planned_ = planned_of_next_;
  has_untagged_ = read_untagged_;
  std::vector<uint64_t>().swap(elements_);
  ++generation_;
  const size_t bytes = filter_->shape().bytes;
  bytes_.Set(static_cast<double>(bytes));
  log::Info("filter of live keys built",
            {{"keys", static_cast<int64_t>(count_)}, {"bytes", static_cast<int64_t>(bytes)}});
}

}  // namespace tollgate::auth
