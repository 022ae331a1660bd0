// Builds claims from requests that name subjects and their limits (AcquireItem, RenewItem,
// PeekRequest). Subjects without limits are left out.
#pragma once

#include <optional>
#include <string>

#include "services/ratelimit/domain/decision.h"
#include "tollgate/ratelimit/v1/ratelimit.pb.h"

namespace tollgate::ratelimit {

inline Limits FromProto(const v1::SubjectLimits& limits) {
  return {.requests_per_minute = limits.requests_per_minute(),
          .tokens_per_minute = limits.tokens_per_minute(),
          .concurrent_requests = limits.concurrent_requests(),
          .shadow = limits.shadow()};
}

inline std::string WorkspaceScope(const std::string& workspace_id) { return "w:" + workspace_id; }
inline std::string ModelScope(const std::string& model) { return "m:" + model; }

// Names of subjects within their scope.
inline constexpr char kWholeScope[] = "all";
inline std::string KeySubject(const std::string& key_id) { return "key:" + key_id; }
inline std::string KeyModelSubject(const std::string& key_id, const std::string& model) {
  return "key:" + key_id + ":model:" + model;
}
inline std::string ModelSubject(const std::string& model) { return "model:" + model; }

// Limits of the workspace and its keys. They are one scope, so one step decides on all of them.
template <typename Message>
Claim WorkspaceClaim(const Message& message, const Id& slot, int64_t tokens) {
  Claim claim{.slot = slot, .scope = WorkspaceScope(message.workspace_id()), .tokens = tokens};
  const auto add = [&](Who who, std::string name, const v1::SubjectLimits& limits) {
    const Limits values = FromProto(limits);
    if (!values.none()) claim.subjects.push_back({who, std::move(name), values});
  };
  add(Who::kKey, KeySubject(message.key_id()), message.key_limits());
  add(Who::kWorkspace, kWholeScope, message.workspace_limits());
  add(Who::kKeyModel, KeyModelSubject(message.key_id(), message.model()),
      message.key_model_limits());
  add(Who::kWorkspaceModel, ModelSubject(message.model()), message.workspace_model_limits());
  return claim;
}

// The model's capacity, which all workspaces share; nullopt if the model has no limits.
template <typename Message>
std::optional<Claim> ModelClaim(const Message& message, const Id& slot, int64_t tokens) {
  const Limits limits = FromProto(message.model_limits());
  if (limits.none()) return std::nullopt;
  return Claim{.slot = slot,
               .scope = ModelScope(message.model()),
               .subjects = {{Who::kModel, kWholeScope, limits}},
               .tokens = tokens};
}

// Scope and subject of an item.
inline std::string ScopeOf(const v1::UseItem& item) {
  return item.workspace_id().empty() ? ModelScope(item.model())
                                     : WorkspaceScope(item.workspace_id());
}
inline std::string SubjectOf(const v1::UseItem& item) {
  if (item.workspace_id().empty()) return kWholeScope;
  if (item.key_id().empty()) {
    return item.model().empty() ? kWholeScope : ModelSubject(item.model());
  }
  return item.model().empty() ? KeySubject(item.key_id())
                              : KeyModelSubject(item.key_id(), item.model());
}

}  // namespace tollgate::ratelimit
