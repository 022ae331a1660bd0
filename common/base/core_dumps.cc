#include "common/base/core_dumps.h"

#include <sys/prctl.h>
#include <sys/resource.h>

#include <optional>

namespace tollgate {
namespace {

// The limit before it was lowered.
std::optional<rlimit> before;

}  // namespace

void DenyCoreDumps() {
  // The kernel runs a core handler (a pipe in kernel.core_pattern) whatever the limit, but not for
  // a process that is not dumpable. The limit is set for tools that read it.
  ::prctl(PR_SET_DUMPABLE, 0);
  rlimit limit{};
  if (before || ::getrlimit(RLIMIT_CORE, &limit) != 0) return;
  before = limit;
  limit.rlim_cur = 0;
  ::setrlimit(RLIMIT_CORE, &limit);
}

void AllowCoreDumps() {
  ::prctl(PR_SET_DUMPABLE, 1);
  if (before) ::setrlimit(RLIMIT_CORE, &*before);
  before.reset();
}

}  // namespace tollgate
