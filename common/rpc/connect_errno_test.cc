#include "common/rpc/connect_errno.h"

#include <fcntl.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstdarg>
#include <cstring>

#include "common/rpc/channel.h"

namespace {
std::atomic<int> frequency_reads = 0;
}  // namespace

// Abseil opens the file of the processor's frequency with this.
extern "C" int open(const char* path, int flags, ...) {
  if (std::strstr(path, "tsc_freq_khz") != nullptr) frequency_reads.fetch_add(1);
  va_list arguments;
  va_start(arguments, flags);
  const auto mode = va_arg(arguments, mode_t);  // read only with O_CREAT
  va_end(arguments);
  return ::openat(AT_FDCWD, path, flags, mode);
}

namespace tollgate::rpc {
namespace {

// Listed first in its program, so that no mutex of another test has waited before.
TEST(KeepErrnoOfConnectTest, TheProcessorsFrequencyIsReadBeforeTheFirstChannelAndNeverAgain) {
  ASSERT_EQ(frequency_reads, 0);
  const ChannelSource source;
  EXPECT_EQ(frequency_reads, 1);
  KeepErrnoOfConnect();
  EXPECT_EQ(frequency_reads, 1);
}

}  // namespace
}  // namespace tollgate::rpc
