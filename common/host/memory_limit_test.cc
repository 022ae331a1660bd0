#include "common/host/memory_limit.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace tollgate::host {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

class MemoryLimitTest : public ::testing::Test {
 protected:
  MemoryLimitTest() {
    std::string pattern = ::testing::TempDir() + "memory-XXXXXX";
    root_ = mkdtemp(pattern.data());
    Write("/proc/meminfo", "MemTotal:       16777216 kB\nMemFree:  1 kB\n");
  }
  ~MemoryLimitTest() override { std::filesystem::remove_all(root_); }
  void Write(const std::string& path, const std::string& text) {
    std::filesystem::create_directories(std::filesystem::path(root_ + path).parent_path());
    std::ofstream(root_ + path) << text;
  }
  int64_t Available() const { return AvailableMemoryBytes(root_); }

  std::string root_;
};

TEST_F(MemoryLimitTest, WithoutALimitItIsTheMemoryOfTheMachine) {
  EXPECT_EQ(Available(), 16 * kGiB);
  Write("/proc/self/cgroup", "0::/a/b\n");
  Write("/sys/fs/cgroup/a/b/memory.max", "max\n");
  EXPECT_EQ(Available(), 16 * kGiB);
}

TEST_F(MemoryLimitTest, TheLowestLimitOfTheGroupsAboveCounts) {
  Write("/proc/self/cgroup", "0::/a/b\n");
  Write("/sys/fs/cgroup/a/b/memory.max", "4294967296\n");
  EXPECT_EQ(Available(), 4 * kGiB);
  Write("/sys/fs/cgroup/a/memory.max", "2147483648\n");
  EXPECT_EQ(Available(), 2 * kGiB);
}

TEST_F(MemoryLimitTest, InAContainerOnlyTheTopFolderExists) {
  Write("/proc/self/cgroup", "0::/docker/0123\n");
  Write("/sys/fs/cgroup/memory.max", "1073741824\n");
  EXPECT_EQ(Available(), kGiB);
}

TEST_F(MemoryLimitTest, VersionOneHasItsOwnFiles) {
  Write("/proc/self/cgroup", "5:cpu,cpuacct:/x\n4:hugetlb,memory:/x/y\n1:name=systemd:/x\n");
  Write("/sys/fs/cgroup/memory/x/y/memory.limit_in_bytes", "9223372036854771712\n");
  EXPECT_EQ(Available(), 16 * kGiB);
  Write("/sys/fs/cgroup/memory/x/memory.limit_in_bytes", "3221225472\n");
  EXPECT_EQ(Available(), 3 * kGiB);
}

TEST_F(MemoryLimitTest, UnreadableFilesGiveASmallNumber) {
  Write("/proc/meminfo", "nothing");
  EXPECT_EQ(Available(), kGiB);
}

TEST(MemoryLimit, ThisMachineHasSome) { EXPECT_GT(AvailableMemoryBytes(), 100 << 20); }

}  // namespace
}  // namespace tollgate::host
