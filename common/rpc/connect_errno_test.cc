#include "common/rpc/connect_errno.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "common/rpc/channel.h"

namespace {
std::atomic<int> frequency_reads = 0;
}  // namespace

// Abseil opens the file with the processor's frequency by this function.
extern "C" int open(const char* path, int flags, ...) {
  if (std::strstr(path, "tsc_freq_khz") != nullptr) frequency_reads.fetch_add(1);
  va_list arguments;
  va_start(arguments, flags);
  const auto mode = va_arg(arguments, mode_t);  // present only with O_CREAT
  va_end(arguments);
  return ::openat(AT_FDCWD, path, flags, mode);
}

namespace tollgate::rpc {
namespace {

// Runs in a process of its own, so that no other test has contended on a mutex before.
TEST(KeepErrnoOfConnectTest, TheProcessorsFrequencyIsReadBeforeTheFirstChannelAndNeverAgain) {
  ::testing::FLAGS_gtest_death_test_style = "threadsafe";
  const auto reads = [] {
    const int before = frequency_reads;
    const ChannelSource source;
    const int after = frequency_reads;
    KeepErrnoOfConnect();
    std::fprintf(stderr, "reads: %d %d %d\n", before, after, frequency_reads.load());
    std::exit(0);
  };
  EXPECT_EXIT(reads(), ::testing::ExitedWithCode(0), "reads: 0 1 1");
}

}  // namespace
}  // namespace tollgate::rpc
