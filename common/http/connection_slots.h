// Counts the open connections of a server, in total and per address, against their limits.
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
  // A connection's place in the counts. Released by Release or the destructor. The slots must
  // outlive it.
  class Slot {
   public:
    Slot() = default;
    Slot(Slot&& other) noexcept { *this = std::move(other); }
    Slot& operator=(Slot&& other) noexcept;
    ~Slot() { Release(); }
    void Release();
    bool taken() const { return slots_ != nullptr; }
    // The number of slots that its subject holds.
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

  // Tries to take a slot. exempt: ignores the limit per subject. queue: other connections are
  // waiting, so report kFull. kSubjectFull takes precedence over kFull.
  Outcome Take(const AddressSubject& subject, bool exempt, bool queue, Slot* slot);
  int taken() const { return taken_.load(); }

 private:
  void Release(const AddressSubject& subject);

  const int max_;
  const int max_per_subject_;
  const uint64_t seed_;  // random, so that a client cannot choose addresses of one hash bucket
  struct Hash {
    uint64_t seed;
    size_t operator()(const AddressSubject& subject) const { return subject.Hash(seed); }
  };
  std::atomic<int> taken_{0};
  std::mutex mutex_;
  std::unordered_map<AddressSubject, Slot::Count, Hash> per_subject_;
};

}  // namespace tollgate::http
