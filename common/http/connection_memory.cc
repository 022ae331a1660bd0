// The memory of request bodies and unsent responses, counted in the budget of the process
// (docs/design/hostile-inputs.md 2).
#include <algorithm>

#include "common/http/connection.h"
#include "common/http/server_metrics.h"

namespace tollgate::http {
namespace {

// Smaller bodies are not counted: they need little more than the read buffer, and the common
// request has no extra cost.
constexpr size_t kUncountedBytes = 4 * 1024;
// Bodies of at least this size are refused first. They are counted in multiples of it.
constexpr size_t kLargeBytes = 64 * 1024;
// How many times a body is counted until its response begins: it is copied when it is parsed, and
// again when it is written for the engine.
constexpr int64_t kCopies = 3;
constexpr int64_t kRetryAfterMs = 2'000;

using Level = MemoryBudget::Level;

}  // namespace

void Connection::Shed(ShedStep step) {
  if (core_->options().metrics != nullptr) core_->options().metrics->shed(step).Increment();
  if (core_->options().memory->level() == Level::kCloseIdle) core_->ShedIdle();
  Refuse(Error{.id = ErrorId::kServiceUnavailable,
               .message = "The gateway is short of memory: try again soon.",
               .retry_after_ms = kRetryAfterMs,
               .internal = "memory budget",
               .reason = Reason::kMemory});
}

// Returns true if the request was refused.
bool Connection::ShedAtHead() {
  const MemoryBudget* memory = core_->options().memory.get();
  if (memory == nullptr) return false;
  const Level level = memory->level();
  if (level == Level::kNormal) return false;
  if (level >= Level::kNoRequests) {
    Shed(ShedStep::kRequest);
    return true;
  }
  if (reader_.framing().content_length < kLargeBytes) return false;
  Shed(ShedStep::kLargeBody);
  return true;
}

// Call it before the body grows to this size. Returns false if the request was refused.
bool Connection::ReserveBody(size_t size) {
  MemoryBudget* memory = core_->options().memory.get();
  if (memory == nullptr || size <= kUncountedBytes) return true;
  const size_t counted =
      size < kLargeBytes ? size : (size + kLargeBytes - 1) / kLargeBytes * kLargeBytes;
  const int64_t wanted = static_cast<int64_t>(counted) * kCopies;
  if (wanted <= body_memory_.bytes()) return true;
  // A chunked body counts as large once it has reached that size.
  if (reader_.framing().chunked && size >= kLargeBytes &&
      memory->level() >= Level::kNoLargeBodies) {
    Shed(ShedStep::kLargeBody);
    return false;
  }
  if (body_memory_.TryGrow(wanted)) return true;
  Shed(ShedStep::kBody);
  return false;
}

// The engine has received the body. One copy remains, for a report of the outcome.
void Connection::ReleaseBodyCopies() { body_memory_.Shrink(body_memory_.bytes() / kCopies); }

}  // namespace tollgate::http
