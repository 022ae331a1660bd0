// How many connections a server has, and each address: the places that connections take.
// Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "common/base/address_subject.h"

namespace tollgate::http {

class ConnectionSlots {
 public:
  // A taken place. Returned when it is released or destroyed. The slots must outlive it.
  class Slot {
   public:
    Slot() = default;
    Slot(Slot&& other) noexcept { *this = std::move(other); }
    Slot& operator=(Slot&& other) noexcept;
    ~Slot() { Release(); }
    void Release();
    bool taken() const { return slots_ != nullptr; }
    // The places that its subject has taken.
    int of_subject() const { return count_ == nullptr ? 0 : count_->load(); }

   private:
    friend class ConnectionSlots;
    using Count = std::shared_ptr<std::atomic<int>>;
    Slot(ConnectionSlots* slots, AddressSubject subject, Count count)
        : slots_(slots), subject_(subject), count_(std::move(count)) {}

    ConnectionSlots* slots_ = nullptr;
    AddressSubject subject_;
    Count count_;
  };
  enum class Outcome : uint8_t { kTaken, kFull, kSubjectFull };

  ConnectionSlots(int max, int max_per_subject);

  // exempt: the share per subject does not apply. A subject that has its share is refused as such,
  // also when there is no place at all. queue: others wait for a place, so that there is none.
  Outcome Take(const AddressSubject& subject, bool exempt, bool queue, Slot* slot);
  int taken() const { return taken_.load(); }

 private:
  void Release(const AddressSubject& subject);

  const int max_;
  const int max_per_subject_;
  const uint64_t seed_;  // so that nobody can choose addresses of one hash bucket
  struct Hash {
    uint64_t seed;
    size_t operator()(const AddressSubject& subject) const { return subject.Hash(seed); }
  };
  std::atomic<int> taken_{0};
  std::mutex mutex_;
  std::unordered_map<AddressSubject, Slot::Count, Hash> per_subject_;
};

}  // namespace tollgate::http
