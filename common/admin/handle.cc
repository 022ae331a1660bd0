#include "common/admin/handle.h"

#include "common/observability/log.h"

namespace tollgate::admin {

grpc::Status StatusOf(const AdminResult<void>& result) {
  if (!result && !result.error().internal.empty()) {
    log::Warn("admin call failed",
              {{"reason", result.error().reason}, {"error", result.error().internal}});
  }
  return ToStatus(result);
}

void Call::Finish(const AdminResult<void>& result) const {
  if (!result && caller_ != nullptr) NoteRefusal(*caller_, result.error());
  reactor_->Finish(StatusOf(result));
}

}  // namespace tollgate::admin
