// A process that crashes leaves no core file, which would hold every secret and prompt that it
// knew, unless its configuration allows it.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>

#include "tests/support/cluster.h"

namespace tollgate::test {
namespace {

// Allows core files of this many blocks (ulimit -c), in this folder.
ClusterOptions MayDump(const TempDir& folder) {
  ClusterOptions options;
  options.all_in_one = false;
  options.catalog = DefaultCatalog({"http://127.0.0.1:1"});  // no engine is asked
  options.wrapper = {"/bin/sh", "-c", "cd \"$0\" && ulimit -S -c 2048 && exec \"$@\"",
                     folder.path()};
  return options;
}

bool CanDump() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_max >= (rlim_t{2048} << 10);
}

size_t FilesIn(const TempDir& folder) {
  const auto files = std::filesystem::directory_iterator(folder.path());
  return static_cast<size_t>(std::distance(begin(files), end(files)));
}

TEST(CoreDumps, NoProcessThatCrashesLeavesACoreFile) {
  if (!CanDump()) GTEST_SKIP() << "no process may write core files here";
  TempDir folder;
  Cluster cluster(MayDump(folder));
  ASSERT_EQ(cluster.Start(60'000), "");
  const std::vector<std::string> names = cluster.process_names();
  for (auto name = names.rbegin(); name != names.rend(); ++name) {
    Process& process = cluster.process(*name);
    process.Signal(SIGABRT);
    ASSERT_TRUE(WaitUntil([&] { return !process.Running(); }, 20'000)) << *name;
    EXPECT_EQ(process.exit_code(), -SIGABRT) << *name;
    EXPECT_FALSE(process.dumped_core()) << *name;
  }
  EXPECT_EQ(FilesIn(folder), 0U);
}

// This test would find a core file if there was one.
TEST(CoreDumps, ASettingAllowsThem) {
  if (!CanDump()) GTEST_SKIP() << "no process may write core files here";
  TempDir folder;
  ClusterOptions options = MayDump(folder);
  options.host_settings = {"core_dumps: true"};
  Cluster cluster(options);
  ASSERT_EQ(cluster.Start(60'000), "");
  Process& process = cluster.process("ratelimit");
  process.Signal(SIGABRT);
  ASSERT_TRUE(WaitUntil([&] { return !process.Running(); }, 20'000));
  EXPECT_TRUE(process.dumped_core());
  // The search for unwanted core files (scan_logs.py) must not find this one.
  for (const auto& file : std::filesystem::directory_iterator(folder.path())) {
    std::filesystem::remove(file.path());
  }
}

}  // namespace
}  // namespace tollgate::test
