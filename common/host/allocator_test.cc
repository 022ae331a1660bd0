#include "common/host/allocator.h"

#include <gtest/gtest.h>
#include <malloc.h>

#include <memory>

namespace tollgate::host {
namespace {

size_t MappedBytes() { return ::mallinfo2().hblkhd; }

TEST(Allocator, LargeBlocksReturnToTheSystemAlsoAfterOneWasFreed) {
#if defined(__has_feature)
#if __has_feature(address_sanitizer)
  GTEST_SKIP() << "the sanitizer has an allocator of its own";
#endif
#endif
  ReturnLargeBlocks();
  for (int i = 0; i < 3; ++i) {
    const size_t before = MappedBytes();
    auto block = std::make_unique<char[]>(8 << 20);
    block[0] = 'x';
    EXPECT_GE(MappedBytes() - before, size_t{8} << 20) << i;
    block.reset();
    EXPECT_EQ(MappedBytes(), before) << i;
  }
}

}  // namespace
}  // namespace tollgate::host
