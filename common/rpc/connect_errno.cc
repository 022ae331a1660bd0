#include "common/rpc/connect_errno.h"

#include <absl/base/internal/sysinfo.h>

namespace tollgate::rpc {

void KeepErrnoOfConnect() {
  // No public function is certain to do it.
  absl::base_internal::NominalCPUFrequency();
}

}  // namespace tollgate::rpc
