// One call to the ledger: its operations and the replies collected so far. Internal to this folder.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "common/error/error.h"
#include "services/billing/domain/ledger.h"

namespace tollgate::billing {

struct Call {
  std::vector<Operation> operations;  // moved out when they enter a batch
  int64_t since_us = 0;
  int64_t deadline_us = 0;
  std::mutex mutex;
  std::vector<Reply> replies;  // kUnavailable until the reply arrives
  size_t left = 0;
  std::function<void(Result<std::vector<Reply>>)> done;  // empty once called

  // Whether the call has no result yet.
  bool IsPending() {
    const std::lock_guard lock(mutex);
    return static_cast<bool>(done);
  }
};

struct QueuedOperation {
  std::shared_ptr<Call> call;
  size_t index = 0;  // in the call
  Operation& operation() const { return call->operations[index]; }
};

}  // namespace tollgate::billing
