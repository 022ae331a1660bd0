#include "services/auth/rpc/limit_rpc.h"

#include <google/protobuf/util/field_mask_util.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
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
constexpr char kKeyLimits[] = "workspaces/*/keys/*/limits";
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

// The fields of the mask; without a mask, those that are set in the resource.
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
// Copies the fields of the mask. A path into a message changes that part only.
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
    return AskLimiter(
        context, *request, [=](AuthBackend& backend, const Caller&) -> AdminResult<Uses> {
          auto parts = admin::NameParts(kLimits, request->name(), "name");
          if (!parts) return Fail{parts.error()};
          auto limits = Translate(backend.store().GetLimits(parts->front()));
          if (!limits) return Fail{limits.error()};
          response->set_name(request->name());
          if (!limits->plan.empty()) response->set_plan(kPlanPrefix + limits->plan);
          return Uses{SubjectsOf(parts->front(), *limits, *response), UseDetail::kMinutes};
        });
  }

  ServerUnaryReactor* GetKeyLimitUsage(CallbackServerContext* context,
                                       const av::GetKeyLimitUsageRequest* request,
                                       av::LimitUsage* response) override {
    return AskLimiter(
        context, *request, [=](AuthBackend& backend, const Caller&) -> AdminResult<Uses> {
          auto parts = admin::NameParts(kKeyLimits, request->name(), "name");
          if (!parts) return Fail{parts.error()};
          auto key = Translate(backend.store().KeyWithLimits((*parts)[0], (*parts)[1]));
          if (!key) return Fail{key.error()};
          response->set_name(request->name());
          return Uses{SubjectsOf(*key, *response), UseDetail::kMinutes};
        });
  }

  ServerUnaryReactor* ListKeyLimitUsage(CallbackServerContext* context,
                                        const av::ListKeyLimitUsageRequest* request,
                                        av::ListKeyLimitUsageResponse* response) override {
    return AskLimiter(
        context, *request, [=](AuthBackend& backend, const Caller& caller) -> AdminResult<Uses> {
          auto parts = admin::NameParts("workspaces/*", request->parent(), "parent");
          if (!parts) return Fail{parts.error()};
          auto page =
              admin::PageOfList(*request, caller, "ListKeyLimitUsage", request->parent(), "");
          if (!page) return Fail{page.error()};
          auto keys = Translate(backend.store().KeysWithLimits(
              parts->front(), PlaceOf(page->position), page->size + 1));
          if (!keys) return Fail{keys.error()};
          Uses uses{{}, UseDetail::kHour};
          int taken = 0;
          for (const v1::Key& key : *keys) {
            auto usage = std::make_unique<av::LimitUsage>();
            const auto subjects = SubjectsOf(key, *usage);
            if (taken == page->size ||
                (taken > 0 && uses.subjects.size() + subjects.size() > kMaxUseSubjects)) {
              response->set_next_page_token(admin::EncodePageToken(
                  page->binding, PositionOf((*keys)[static_cast<size_t>(taken) - 1])));
              break;
            }
            ++taken;
            if (subjects.empty()) continue;
            usage->set_name("workspaces/" + parts->front() + "/keys/" + key.key_id() + "/limits");
            response->mutable_key_limits()->AddAllocated(usage.release());
            uses.subjects.insert(uses.subjects.end(), subjects.begin(), subjects.end());
          }
          return uses;
        });
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
  // Subjects whose use the limiter is asked for.
  struct Uses {
    std::vector<UseSubject> subjects;
    UseDetail detail = UseDetail::kHour;
  };

  template <typename Request>
  static AuthStore::LimitChange ChangeOf(const Caller& caller, const Request& request) {
    return {.request_id = request.request_id(),
            .content = admin::ContentOf(request),
            .actor = caller.actor,
            .address = caller.address};
  }

  // Admits the caller and runs the function, which fills the response, on a storage thread.
  template <typename Request, typename Function>
  ServerUnaryReactor* Run(CallbackServerContext* context, const Request& request,
                          Function function) {
    return OnWorker(context, request,
                    [function = std::move(function)](AuthBackend& backend, const Caller& caller,
                                                     ServerUnaryReactor* reactor) {
                      const auto done = function(backend, caller);
                      if (!done) admin::NoteRefusal(caller, done.error());
                      reactor->Finish(admin::ToStatus(done));
                    });
  }
  // As Run. The function returns the subjects whose use completes the response.
  template <typename Request, typename Function>
  ServerUnaryReactor* AskLimiter(CallbackServerContext* context, const Request& request,
                                 Function function) {
    return OnWorker(context, request,
                    [function = std::move(function)](AuthBackend& backend, const Caller& caller,
                                                     ServerUnaryReactor* reactor) {
                      AdminResult<Uses> uses = function(backend, caller);
                      if (!uses) return reactor->Finish(admin::ToStatus(uses.error()));
                      AskForUse(backend.peers(), std::move(uses->subjects), uses->detail, reactor);
                    });
  }
  template <typename Request, typename Body>
  ServerUnaryReactor* OnWorker(CallbackServerContext* context, const Request& request, Body body) {
    ServerUnaryReactor* const reactor = context->DefaultReactor();
    const auto refuse = [&](const admin::Failure& failure) {
      reactor->Finish(admin::ToStatus(failure));
      return reactor;
    };
    auto caller = admin::Admit(*context, request);
    if (!caller) return refuse(caller.error());
    AuthBackend* const backend = backend_.load();
    if (!backend) return refuse(admin::FromError(Unavailable("auth is not running").error));
    const bool posted =
        backend->workers().Submit([backend, reactor, caller = *std::move(caller),
                                   body = std::move(body)] { body(*backend, caller, reactor); });
    if (!posted) return refuse(admin::FromError(Unavailable("too many calls are queued").error));
    return reactor;
  }

  // Position in a list of keys: "created:key_id" of the last one.
  static std::string PositionOf(const v1::Key& key) {
    return std::to_string(key.created_at_us()) + ":" + key.key_id();
  }
  static AuthStore::KeyPlace PlaceOf(const std::string& position) {
    if (position.empty()) return {};
    return {std::strtoll(position.c_str(), nullptr, 10), position.substr(position.find(':') + 1)};
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
