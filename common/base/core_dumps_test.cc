#include "common/base/core_dumps.h"

#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

namespace tollgate {
namespace {

// Exit status of a child that may write core files and aborts in a folder of its own.
int StatusOfAbort(void (*before)()) {
  std::string folder = (std::filesystem::temp_directory_path() / "tollgate-core-XXXXXX").string();
  EXPECT_NE(::mkdtemp(folder.data()), nullptr);
  const pid_t child = ::fork();
  if (child == 0) {
    // Enough for a core file, but not for all memory of the test.
    rlimit limit{};
    ::getrlimit(RLIMIT_CORE, &limit);
    limit.rlim_cur = std::min<rlim_t>(limit.rlim_max, 1 << 20);
    ::setrlimit(RLIMIT_CORE, &limit);
    if (::chdir(folder.c_str()) != 0) ::_exit(1);
    std::signal(SIGABRT, SIG_DFL);
    before();
    ::kill(::getpid(), SIGABRT);
    ::_exit(2);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  std::filesystem::remove_all(folder);
  return status;
}

bool CanDump() {
  rlimit limit{};
  return ::getrlimit(RLIMIT_CORE, &limit) == 0 && limit.rlim_max > 0 &&
         WCOREDUMP(StatusOfAbort([] {}));
}

TEST(CoreDumps, ACrashWritesNoneUntilTheyAreAllowedAgain) {
  if (!CanDump()) GTEST_SKIP() << "no process can write a core file here";
  int status = StatusOfAbort(&DenyCoreDumps);
  EXPECT_EQ(WTERMSIG(status), SIGABRT);
  EXPECT_FALSE(WCOREDUMP(status));
  // A second call does not overwrite the saved limit.
  status = StatusOfAbort([] {
    DenyCoreDumps();
    DenyCoreDumps();
    AllowCoreDumps();
  });
  EXPECT_TRUE(WCOREDUMP(status));
}

TEST(CoreDumps, NeitherLimitNorHandlerDecides) {
  const int status = StatusOfAbort([] {
    DenyCoreDumps();
    rlimit limit{};
    ::getrlimit(RLIMIT_CORE, &limit);
    if (::prctl(PR_GET_DUMPABLE) != 0 || limit.rlim_cur != 0) ::_exit(3);
  });
  EXPECT_TRUE(WIFSIGNALED(status));
}

}  // namespace
}  // namespace tollgate
