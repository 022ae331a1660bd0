#include "gateway/worker/hold_guard.h"

namespace tollgate::gateway {

void HoldGuard::Void(std::string_view reason, bool refused) {
  if (billing_ == nullptr) return;
  BillingClient* const billing = std::exchange(billing_, nullptr);
  billing::v1::VoidItem item;
  item.set_request_id(request_id_.ToBytes());
  item.set_workspace_id(workspace_id_);
  item.set_reason(std::string(reason));
  item.set_refused(refused);
  billing->Void(std::move(item));
}

}  // namespace tollgate::gateway
