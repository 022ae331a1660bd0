#include "services/auth/rpc/limit_rpc.h"

#include <google/protobuf/util/field_mask_util.h>

#include <algorithm>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "common/admin/access.h"
#include "common/admin/requests.h"
#include "common/admin/values.h"
#include "services/auth/rpc/limit_use.h"
#include "tollgate/admin/v1/limits.grpc.pb.h"

namespace tollgate::auth {
namespace {

namespace av = admin::v1;
using admin::AdminResult;
using admin::Caller;
using google::protobuf::FieldMask;
using google::protobuf::util::FieldMaskUtil;
using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

constexpr char kLimits[] = "workspaces/*/limits";
constexpr char kKeyModelLimits[] = "workspaces/*/keys/*/modelLimits";
constexpr char kPlan[] = "plans/*";
constexpr char kPlanPrefix[] = "plans/";

void ToProto(const LimitValues& from, av::LimitValues& into) {
  into.set_requests_per_minute(from.requests_per_minute);
  into.set_tokens_per_minute(from.tokens_per_minute);
  into.set_concurrent_requests(from.concurrent_requests);
}
LimitValues FromProto(const av::LimitValues& from) {
  return {from.requests_per_minute(), from.tokens_per_minute(), from.concurrent_requests()};
}

using ProtoModels = google::protobuf::Map<std::string, av::LimitValues>;
void ToProto(const ModelLimits& from, ProtoModels& into) {
  for (const auto& [model, limits] : from) ToProto(limits, into[model]);
}
ModelLimits FromProto(const ProtoModels& from) {
  ModelLimits limits;
  for (const auto& [model, values] : from) limits[model] = FromProto(values);
  return limits;
}

void ToResource(const std::string& workspace, const AuthStore::WorkspaceLimits& from,
                av::Limits& into) {
  into.set_name("workspaces/" + workspace + "/limits");
  if (!from.plan.empty()) into.set_plan(kPlanPrefix + from.plan);
  ToProto(from.limits, *into.mutable_workspace_limits());
  ToProto(from.model_limits, *into.mutable_model_limits());
  ToProto(Choose(from.limits, from.of_plan.workspace).limits,
          *into.mutable_effective_workspace_limits());
  for (const auto& [model, one] : Choose(from.model_limits, from.of_plan.workspace_models)) {
    ToProto(one.limits, (*into.mutable_effective_model_limits())[model]);
  }
}

void ToResource(const AuthStore::Plan& from, av::Plan& into) {
  into.set_name(kPlanPrefix + from.id);
  ToProto(from.limits.workspace, *into.mutable_workspace_limits());
  ToProto(from.limits.workspace_models, *into.mutable_workspace_model_limits());
  ToProto(from.limits.key, *into.mutable_key_limits());
  ToProto(from.limits.key_models, *into.mutable_key_model_limits());
  into.set_shadow(from.shadow);
}

// What a mask names; without a mask, what is set in the resource.
AdminResult<FieldMask> MaskOf(const FieldMask& mask, const google::protobuf::Message& resource,
                              std::span<const std::string_view> changeable) {
  auto fields = admin::MaskedFields(mask, resource, changeable);
  if (!fields) return Fail{fields.error()};
  FieldMask checked;
  for (const std::string& field : *fields) checked.add_paths(field);
  return checked;
}
bool Names(const FieldMask& mask, std::string_view field) {
  return std::ranges::find(mask.paths(), field) != mask.paths().end();
}
// Takes over what the mask names; a part of a message changes that part only.
void Merge(const google::protobuf::Message& from, const FieldMask& mask,
           google::protobuf::Message& into) {
  FieldMaskUtil::MergeOptions options;
  options.set_replace_message_fields(true);
  options.set_replace_repeated_fields(true);
  FieldMaskUtil::MergeMessageTo(from, mask, options, &into);
}

template <typename T>
AdminResult<T> Translate(Result<T> result) {
  if (!result) return Fail{admin::FromError(result.error())};
  return std::move(result).value();
}

class LimitRpc : public av::LimitService::CallbackService {
 public:
  explicit LimitRpc(const BackendSlot& backend) : backend_(backend) {}

  ServerUnaryReactor* GetLimits(CallbackServerContext* context, const av::GetLimitsRequest* request,
                                av::Limits* response) override {
    return Run(context, *request, [=](AuthBackend& backend, const Caller&) -> AdminResult<bool> {
      return ReadLimits(backend, request->name(), "name", *response);
    });
  }

  ServerUnaryReactor* GetLimitUsage(CallbackServerContext* context,
                                    const av::GetLimitUsageRequest* request,
                                    av::LimitUsage* response) override {
    auto caller = admin::Admit(*context, *request);
    if (!caller) return Refuse(context, caller.error());
    auto parts = admin::NameParts(kLimits, request->name(), "name");
    if (!parts) return Refuse(context, parts.error());
    ServerUnaryReactor* const reactor = context->DefaultReactor();
    AuthBackend* const backend = backend_.load();
    if (!backend) return Refuse(context, NotRunning());
    const bool posted = backend->workers().Submit(
        [backend, reactor, request, response, workspace = parts->front()] {
          auto limits = backend->store().GetLimits(workspace);
          if (!limits) {
            return reactor->Finish(admin::ToStatus(admin::FromError(limits.error())));
          }
          response->set_name(request->name());
          AskForUse(backend->peers(), workspace, *limits, reactor, *response);
        });
    if (!posted) {
      reactor->Finish(
          admin::ToStatus(admin::FromError(Unavailable("too many calls are queued").error)));
    }
    return reactor;
  }

  ServerUnaryReactor* UpdateLimits(CallbackServerContext* context,
                                   const av::UpdateLimitsRequest* request,
                                   av::Limits* response) override {
    return Run(
        context, *request, [=](AuthBackend& backend, const Caller& caller) -> AdminResult<bool> {
          const av::Limits& from = request->limits();
          auto parts = admin::NameParts(kLimits, from.name(), "limits.name");
          if (!parts) return Fail{parts.error()};
          static constexpr std::string_view kFields[] = {"plan", "workspace_limits",
                                                         "model_limits"};
          auto mask = MaskOf(request->update_mask(), from, kFields);
          if (!mask) return Fail{mask.error()};
          std::string plan;
          if (!from.plan().empty()) {
            auto plan_parts = admin::NameParts(kPlan, from.plan(), "limits.plan");
            if (!plan_parts) return Fail{plan_parts.error()};
            plan = (*plan_parts)[0];
          }
          auto done =
              backend.store().UpdateLimits(ChangeOf(caller, *request), (*parts)[0],
                                           [&](AuthStore::WorkspaceLimits& limits) -> Result<void> {
                                             av::Limits now;
                                             ToResource((*parts)[0], limits, now);
                                             Merge(from, *mask, now);
                                             if (Names(*mask, "plan")) limits.plan = plan;
                                             limits.limits = FromProto(now.workspace_limits());
                                             limits.model_limits = FromProto(now.model_limits());
                                             return {};
                                           });
          if (!done) return Fail{done.error()};
          backend.feed().Wake();
          return ReadLimits(backend, from.name(), "limits.name", *response);
        });
  }

  ServerUnaryReactor* GetKeyModelLimits(CallbackServerContext* context,
                                        const av::GetKeyModelLimitsRequest* request,
                                        av::KeyModelLimits* response) override {
    return Run(context, *request, [=](AuthBackend& backend, const Caller&) -> AdminResult<bool> {
      return ReadKeyLimits(backend, request->name(), "name", *response);
    });
  }

  ServerUnaryReactor* UpdateKeyModelLimits(CallbackServerContext* context,
                                           const av::UpdateKeyModelLimitsRequest* request,
                                           av::KeyModelLimits* response) override {
    return Run(
        context, *request, [=](AuthBackend& backend, const Caller& caller) -> AdminResult<bool> {
          const av::KeyModelLimits& from = request->key_model_limits();
          auto parts = admin::NameParts(kKeyModelLimits, from.name(), "key_model_limits.name");
          if (!parts) return Fail{parts.error()};
          static constexpr std::string_view kFields[] = {"model_limits"};
          if (request->update_mask().paths_size() > 0) {
            auto mask = MaskOf(request->update_mask(), from, kFields);
            if (!mask) return Fail{mask.error()};
          }
          auto done = backend.store().UpdateKeyModelLimits(
              ChangeOf(caller, *request), (*parts)[0], (*parts)[1],
              [&](ModelLimits& limits) -> Result<void> {
                limits = FromProto(from.model_limits());
                return {};
              });
          if (!done) return Fail{done.error()};
          backend.feed().Wake();
          return ReadKeyLimits(backend, from.name(), "key_model_limits.name", *response);
        });
  }

  ServerUnaryReactor* GetPlan(CallbackServerContext* context, const av::GetPlanRequest* request,
                              av::Plan* response) override {
    return Run(context, *request, [=](AuthBackend& backend, const Caller&) -> AdminResult<bool> {
      return ReadPlan(backend, request->name(), "name", *response);
    });
  }

  ServerUnaryReactor* ListPlans(CallbackServerContext* context, const av::ListPlansRequest* request,
                                av::ListPlansResponse* response) override {
    return Run(
        context, *request, [=](AuthBackend& backend, const Caller& caller) -> AdminResult<bool> {
          auto page = admin::PageOfList(*request, caller, "ListPlans", "", "");
          if (!page) return Fail{page.error()};
          auto plans = Translate(backend.store().ListPlans(page->size + 1, page->position));
          if (!plans) return Fail{plans.error()};
          const bool more = plans->size() > static_cast<size_t>(page->size);
          if (more) plans->pop_back();
          for (const AuthStore::Plan& plan : *plans) ToResource(plan, *response->add_plans());
          if (more) {
            response->set_next_page_token(admin::EncodePageToken(page->binding, plans->back().id));
          }
          return true;
        });
  }

  ServerUnaryReactor* UpdatePlan(CallbackServerContext* context,
                                 const av::UpdatePlanRequest* request,
                                 av::Plan* response) override {
    return Run(
        context, *request, [=](AuthBackend& backend, const Caller& caller) -> AdminResult<bool> {
          const av::Plan& from = request->plan();
          auto parts = admin::NameParts(kPlan, from.name(), "plan.name");
          if (!parts) return Fail{parts.error()};
          static constexpr std::string_view kFields[] = {"workspace_limits",
                                                         "workspace_model_limits", "key_limits",
                                                         "key_model_limits", "shadow"};
          auto mask = MaskOf(request->update_mask(), from, kFields);
          if (!mask) return Fail{mask.error()};
          auto done = backend.store().UpdatePlan(
              ChangeOf(caller, *request), (*parts)[0], [&](AuthStore::Plan& plan) -> Result<void> {
                av::Plan now;
                ToResource(plan, now);
                Merge(from, *mask, now);
                plan.limits = {.key = FromProto(now.key_limits()),
                               .workspace = FromProto(now.workspace_limits()),
                               .key_models = FromProto(now.key_model_limits()),
                               .workspace_models = FromProto(now.workspace_model_limits())};
                plan.shadow = now.shadow();
                return {};
              });
          if (!done) return Fail{done.error()};
          backend.feed().Wake();
          return ReadPlan(backend, from.name(), "plan.name", *response);
        });
  }

 private:
  static admin::Failure NotRunning() {
    return admin::FromError(Unavailable("auth is not running").error);
  }
  static ServerUnaryReactor* Refuse(CallbackServerContext* context, const admin::Failure& failure) {
    ServerUnaryReactor* const reactor = context->DefaultReactor();
    reactor->Finish(admin::ToStatus(failure));
    return reactor;
  }

  template <typename Request>
  static AuthStore::LimitChange ChangeOf(const Caller& caller, const Request& request) {
    return {.request_id = request.request_id(),
            .content = admin::ContentOf(request),
            .actor = caller.actor,
            .address = caller.address};
  }

  // Admits the caller, and runs the function on a storage thread; it fills the response.
  template <typename Request, typename Function>
  ServerUnaryReactor* Run(CallbackServerContext* context, const Request& request,
                          Function function) {
    ServerUnaryReactor* const reactor = context->DefaultReactor();
    const auto refuse = [&](const admin::Failure& failure) {
      reactor->Finish(admin::ToStatus(failure));
      return reactor;
    };
    auto caller = admin::Admit(*context, request);
    if (!caller) return refuse(caller.error());
    AuthBackend* const backend = backend_.load();
    if (!backend) return refuse(admin::FromError(Unavailable("auth is not running").error));
    const bool posted = backend->workers().Submit(
        [backend, reactor, caller = *std::move(caller), function = std::move(function)] {
          const auto done = function(*backend, caller);
          if (!done) admin::NoteRefusal(caller, done.error());
          reactor->Finish(admin::ToStatus(done));
        });
    if (!posted) return refuse(admin::FromError(Unavailable("too many calls are queued").error));
    return reactor;
  }

  static AdminResult<bool> ReadLimits(AuthBackend& backend, const std::string& name,
                                      const std::string& field, av::Limits& response) {
    auto parts = admin::NameParts(kLimits, name, field);
    if (!parts) return Fail{parts.error()};
    auto limits = Translate(backend.store().GetLimits((*parts)[0]));
    if (!limits) return Fail{limits.error()};
    ToResource((*parts)[0], *limits, response);
    return true;
  }
  static AdminResult<bool> ReadKeyLimits(AuthBackend& backend, const std::string& name,
                                         const std::string& field, av::KeyModelLimits& response) {
    auto parts = admin::NameParts(kKeyModelLimits, name, field);
    if (!parts) return Fail{parts.error()};
    auto limits = Translate(backend.store().GetKeyModelLimits((*parts)[0], (*parts)[1]));
    if (!limits) return Fail{limits.error()};
    response.set_name(name);
    ToProto(*limits, *response.mutable_model_limits());
    return true;
  }
  static AdminResult<bool> ReadPlan(AuthBackend& backend, const std::string& name,
                                    const std::string& field, av::Plan& response) {
    auto parts = admin::NameParts(kPlan, name, field);
    if (!parts) return Fail{parts.error()};
    auto plan = Translate(backend.store().GetPlan((*parts)[0]));
    if (!plan) return Fail{plan.error()};
    ToResource(*plan, response);
    return true;
  }

  const BackendSlot& backend_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeLimitAdmin(const BackendSlot& backend) {
  return std::make_unique<LimitRpc>(backend);
}

}  // namespace tollgate::auth
