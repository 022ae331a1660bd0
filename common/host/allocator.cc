#include "common/host/allocator.h"

#include <malloc.h>

namespace tollgate::host {
namespace {

// From here on a system call and page faults cost little beside the work on the block.
constexpr int kLargeBlockBytes = 1 << 20;
// Setting the one threshold fixes the other at 128 KiB, which would return the ends of the heaps to
// the system again and again.
constexpr int kKeptAtEndBytes = 16 << 20;

}  // namespace

void ReturnLargeBlocks() {
  ::mallopt(M_MMAP_THRESHOLD, kLargeBlockBytes);
  ::mallopt(M_TRIM_THRESHOLD, kKeptAtEndBytes);
}

}  // namespace tollgate::host
