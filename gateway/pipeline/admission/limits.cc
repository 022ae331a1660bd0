#include "gateway/pipeline/admission/limits.h"

namespace tollgate::gateway {

bool CollectLimits(const auth::v1::Key& key, const catalog::v1::Model* model,
                   ratelimit::v1::AcquireItem& item) {
  bool any = false;
  const auto add = [&](const auto& limits, auto mutable_limits) {
    if (IsUnlimited(limits)) return;
    any = true;
    CopyLimits(limits, *(item.*mutable_limits)());
  };
  using Item = ratelimit::v1::AcquireItem;
  add(key.key_limits(), &Item::mutable_key_limits);
  add(key.workspace_limits(), &Item::mutable_workspace_limits);
  if (model == nullptr || model->id().empty()) return any;
  const auto of_model = [&](const auto& by_model, auto mutable_limits) {
    const auto found = by_model.find(model->id());
    if (found != by_model.end()) add(found->second, mutable_limits);
  };
  of_model(key.key_model_limits(), &Item::mutable_key_model_limits);
  of_model(key.workspace_model_limits(), &Item::mutable_workspace_model_limits);
  if (model->has_capacity()) add(model->capacity(), &Item::mutable_model_limits);
  if (item.has_key_model_limits() || item.has_workspace_model_limits() || item.has_model_limits()) {
    item.set_model(model->id());
  }
  return any;
}

}  // namespace tollgate::gateway
