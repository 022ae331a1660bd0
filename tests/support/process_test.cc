// A crash or a sanitizer report of a child process is detected.
#include "tests/support/process.h"

#include <gtest/gtest.h>

namespace tollgate::test {
namespace {

// Result of Crash for a shell that ran this script.
std::string CrashOf(const std::string& script) {
  const TempDir dir;
  Process process("child", {"/bin/sh", "-c", script}, dir.path() + "/log");
  EXPECT_TRUE(process.Start());
  EXPECT_TRUE(WaitUntil([&] { return !process.Running(); }, 10'000));
  return process.Crash();
}

TEST(Crash, IsEmptyForAProcessThatExitsWithZero) { EXPECT_EQ(CrashOf("echo fine"), ""); }

TEST(Crash, IsEmptyForAProcessKilledByTheTest) {
  const TempDir dir;
  Process process("child", {"/bin/sh", "-c", "exec sleep 60"}, dir.path() + "/log");
  ASSERT_TRUE(process.Start());
  EXPECT_EQ(process.Crash(), "");
  process.Kill();
  EXPECT_EQ(process.Crash(), "");
}

TEST(Crash, IsTheExitCodeOrTheSignal) {
  EXPECT_NE(CrashOf("exit 23").find("ended with 23"), std::string::npos);
  EXPECT_NE(CrashOf("kill -SEGV $$").find("ended with -11"), std::string::npos);
}

TEST(Crash, IsTheSanitizerReportWithAnyExitCode) {
  for (const char* report :
       {"==1==ERROR: AddressSanitizer: heap-use-after-free", "==1==ERROR: LeakSanitizer: detected",
        "a.cc:1:2: runtime error: signed integer overflow",
        "WARNING: ThreadSanitizer: data race (pid=1)"}) {
    EXPECT_NE(CrashOf("echo before; echo '" + std::string(report) + "' >&2").find(report),
              std::string::npos);
  }
}

}  // namespace
}  // namespace tollgate::test
