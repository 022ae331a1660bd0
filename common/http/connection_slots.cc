#include "common/http/connection_slots.h"

#include <cstring>

#include "common/base/crypto.h"

namespace tollgate::http {
namespace {

uint64_t RandomSeed() {
  uint64_t seed = 0;
  std::memcpy(&seed, RandomBytes(sizeof seed).data(), sizeof seed);
  return seed;
}

}  // namespace

ConnectionSlots::Slot& ConnectionSlots::Slot::operator=(Slot&& other) noexcept {
  if (this == &other) return *this;
  Release();
  slots_ = std::exchange(other.slots_, nullptr);
  subject_ = other.subject_;
  count_ = std::move(other.count_);
  return *this;
}

void ConnectionSlots::Slot::Release() {
  if (slots_ == nullptr) return;
  count_.reset();
  std::exchange(slots_, nullptr)->Release(subject_);
}

ConnectionSlots::ConnectionSlots(int max, int max_per_subject)
    : max_(max),
      max_per_subject_(max_per_subject),
      seed_(RandomSeed()),
      per_subject_(0, Hash{seed_}) {}

ConnectionSlots::Outcome ConnectionSlots::Take(const AddressSubject& subject, bool exempt,
                                               bool queue, Slot* slot) {
  std::lock_guard lock(mutex_);
  const auto found = per_subject_.find(subject);
  if (!exempt && found != per_subject_.end() && *found->second >= max_per_subject_) {
    return Outcome::kSubjectFull;
  }
  if (queue || taken_ >= max_) return Outcome::kFull;
  ++taken_;
  Slot::Count& count = found != per_subject_.end() ? found->second : per_subject_[subject];
  if (count == nullptr) count = std::make_shared<std::atomic<int>>(0);
  ++*count;
  *slot = Slot(this, subject, count);
  return Outcome::kTaken;
}

void ConnectionSlots::Release(const AddressSubject& subject) {
  std::lock_guard lock(mutex_);
  --taken_;
  const auto found = per_subject_.find(subject);
  if (--*found->second == 0) per_subject_.erase(found);
}

}  // namespace tollgate::http
