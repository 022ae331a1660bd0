#include "common/rpc/connect_errno.h"

#include <absl/base/internal/sysinfo.h>

namespace tollgate::rpc {

void KeepErrnoOfConnect() {
  // There is no public function that does it for sure.
  absl::base_internal::NominalCPUFrequency();
}

}  // namespace tollgate::rpc
