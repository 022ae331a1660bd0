// The settings of allocator.cc take effect: large blocks return to the system at once.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdio>
#include <cstring>
#include <memory>

namespace tollgate::host {
namespace {

constexpr int64_t kMiB = 1 << 20;

int64_t ResidentBytes() {
  long pages = 0;
  long resident = 0;
  std::FILE* file = std::fopen("/proc/self/statm", "r");
  if (file == nullptr) return -1;
  if (std::fscanf(file, "%ld %ld", &pages, &resident) != 2) resident = -1;
  std::fclose(file);
  return resident * ::sysconf(_SC_PAGESIZE);
}

TEST(Allocator, LargeBlocksReturnToTheSystemAlsoAfterOneWasFreed) {
#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
  GTEST_SKIP() << "the sanitizer has an allocator of its own";
#endif
#endif
  for (int i = 0; i < 3; ++i) {
    const int64_t before = ResidentBytes();
    ASSERT_GT(before, 0);
    auto block = std::make_unique<char[]>(8 * kMiB);
    std::memset(block.get(), 'x', 8 * kMiB);
    EXPECT_GE(ResidentBytes() - before, 7 * kMiB) << i;
    block.reset();
    EXPECT_LE(ResidentBytes() - before, kMiB) << i;
  }
}

}  // namespace
}  // namespace tollgate::host
