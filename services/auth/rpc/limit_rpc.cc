#include "services/auth/rpc/limit_rpc.h"

#include <google/protobuf/util/field_mask_util.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "common/base/try.h"
#include "services/auth/rpc/admin_run.h"
#include "services/auth/rpc/limit_use.h"
#include "tollgate/admin/v1/limits.grpc.pb.h"

namespace tollgate::auth {
namespace {

namespace av = admin::v1;
using admin::AdminResult;
using admin::Caller;
using admin::Parts;
using google::protobuf::FieldMask;
using google::protobuf::util::FieldMaskUtil;
using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

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
  TRY(auto fields, admin::MaskedFields(mask, resource, changeable));
  FieldMask checked;
  for (const std::string& field : fields) checked.add_paths(field);
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
  explicit LimitRpc(const BackendSlot& backend) : workers_{backend} {}

  ServerUnaryReactor* GetLimits(CallbackServerContext* context, const av::GetLimitsRequest* request,
                                av::Limits* response) override {
    return admin::Handle(context, request, response, workers_,
                         [=](AuthBackend& backend, const Caller&, const Parts& name) {
                           return ReadLimits(backend, name, *response);
                         });
  }

  ServerUnaryReactor* GetLimitUsage(CallbackServerContext* context,
                                    const av::GetLimitUsageRequest* request,
                                    av::LimitUsage* response) override {
    return AskLimiter(
        context, request,
        [=](AuthBackend& backend, const Caller&, const Parts& name) -> AdminResult<Uses> {
          TRY(auto limits, Translate(backend.store().GetLimits(name[0])));
          response->set_name(request->name());
          if (!limits.plan.empty()) response->set_plan(kPlanPrefix + limits.plan);
          return Uses{SubjectsOf(name[0], limits, *response), UseDetail::kMinutes};
        });
  }

  ServerUnaryReactor* GetKeyLimitUsage(CallbackServerContext* context,
                                       const av::GetKeyLimitUsageRequest* request,
                                       av::LimitUsage* response) override {
    return AskLimiter(
        context, request,
        [=](AuthBackend& backend, const Caller&, const Parts& name) -> AdminResult<Uses> {
          TRY(auto key, Translate(backend.store().KeyWithLimits(name[0], name[1])));
          response->set_name(request->name());
          return Uses{SubjectsOf(key, *response), UseDetail::kMinutes};
        });
  }

  ServerUnaryReactor* ListKeyLimitUsage(CallbackServerContext* context,
                                        const av::ListKeyLimitUsageRequest* request,
                                        av::ListKeyLimitUsageResponse* response) override {
    return AskLimiter(
        context, request,
        [=](AuthBackend& backend, const Caller& caller, const Parts& name) -> AdminResult<Uses> {
          TRY(auto page, admin::PageOfList(*request, caller));
          TRY(auto keys, Translate(backend.store().KeysWithLimits(name[0], PlaceOf(page.position),
                                                                  page.size + 1)));
          Uses uses{{}, UseDetail::kHour};
          int taken = 0;
          for (const v1::Key& key : keys) {
            auto usage = std::make_unique<av::LimitUsage>();
            const auto subjects = SubjectsOf(key, *usage);
            if (taken == page.size ||
                (taken > 0 && uses.subjects.size() + subjects.size() > kMaxUseSubjects)) {
              response->set_next_page_token(admin::EncodePageToken(
                  page.binding, PositionOf(keys[static_cast<size_t>(taken) - 1])));
              break;
            }
            ++taken;
            if (subjects.empty()) continue;
            usage->set_name("workspaces/" + name[0] + "/keys/" + key.key_id() + "/limits");
            response->mutable_key_limits()->AddAllocated(usage.release());
            uses.subjects.insert(uses.subjects.end(), subjects.begin(), subjects.end());
          }
          return uses;
        });
  }

  ServerUnaryReactor* UpdateLimits(CallbackServerContext* context,
                                   const av::UpdateLimitsRequest* request,
                                   av::Limits* response) override {
    return admin::Handle(
        context, request, response, workers_,
        [=](AuthBackend& backend, const Caller& caller, const Parts& name) -> AdminResult<void> {
          const av::Limits& from = request->limits();
          static constexpr std::string_view kFields[] = {"plan", "workspace_limits",
                                                         "model_limits"};
          TRY(auto mask, MaskOf(request->update_mask(), from, kFields));
          std::string plan;
          if (!from.plan().empty()) {
            TRY(auto plan_parts, admin::NameParts(kPlan, from.plan(), "limits.plan"));
            plan = plan_parts[0];
          }
          auto done =
              backend.store().UpdateLimits(ChangeOf(caller, *request), name[0],
                                           [&](AuthStore::WorkspaceLimits& limits) -> Result<void> {
                                             av::Limits now;
                                             ToResource(name[0], limits, now);
                                             Merge(from, mask, now);
                                             if (Names(mask, "plan")) limits.plan = plan;
                                             limits.limits = FromProto(now.workspace_limits());
                                             limits.model_limits = FromProto(now.model_limits());
                                             return {};
                                           });
          if (!done) return Fail{done.error()};
          backend.feed().Wake();
          return ReadLimits(backend, name, *response);
        });
  }

  ServerUnaryReactor* GetKeyModelLimits(CallbackServerContext* context,
                                        const av::GetKeyModelLimitsRequest* request,
                                        av::KeyModelLimits* response) override {
    return admin::Handle(context, request, response, workers_,
                         [=](AuthBackend& backend, const Caller&, const Parts& name) {
                           return ReadKeyLimits(backend, name, *response);
                         });
  }

  ServerUnaryReactor* UpdateKeyModelLimits(CallbackServerContext* context,
                                           const av::UpdateKeyModelLimitsRequest* request,
                                           av::KeyModelLimits* response) override {
    return admin::Handle(
        context, request, response, workers_,
        [=](AuthBackend& backend, const Caller& caller, const Parts& name) -> AdminResult<void> {
          const av::KeyModelLimits& from = request->key_model_limits();
          static constexpr std::string_view kFields[] = {"model_limits"};
          if (request->update_mask().paths_size() > 0) {
            TRY(MaskOf(request->update_mask(), from, kFields));
          }
          auto done =
              backend.store().UpdateKeyModelLimits(ChangeOf(caller, *request), name[0], name[1],
                                                   [&](ModelLimits& limits) -> Result<void> {
                                                     limits = FromProto(from.model_limits());
                                                     return {};
                                                   });
          if (!done) return Fail{done.error()};
          backend.feed().Wake();
          return ReadKeyLimits(backend, name, *response);
        });
  }

  ServerUnaryReactor* GetPlan(CallbackServerContext* context, const av::GetPlanRequest* request,
                              av::Plan* response) override {
    return admin::Handle(context, request, response, workers_,
                         [=](AuthBackend& backend, const Caller&, const Parts& name) {
                           return ReadPlan(backend, name, *response);
                         });
  }

  ServerUnaryReactor* ListPlans(CallbackServerContext* context, const av::ListPlansRequest* request,
                                av::ListPlansResponse* response) override {
    return admin::Handle(
        context, request, response, workers_,
        [=](AuthBackend& backend, const Caller& caller) -> AdminResult<void> {
          TRY(auto page, admin::PageOfList(*request, caller));
          TRY(auto plans, Translate(backend.store().ListPlans(page.size + 1, page.position)));
          admin::FillPage(
              page, plans, *response,
              [&](const AuthStore::Plan& plan) { ToResource(plan, *response->add_plans()); },
              [](const AuthStore::Plan& plan) { return plan.id; });
          return {};
        });
  }

  ServerUnaryReactor* UpdatePlan(CallbackServerContext* context,
                                 const av::UpdatePlanRequest* request,
                                 av::Plan* response) override {
    return admin::Handle(
        context, request, response, workers_,
        [=](AuthBackend& backend, const Caller& caller, const Parts& name) -> AdminResult<void> {
          const av::Plan& from = request->plan();
          static constexpr std::string_view kFields[] = {"workspace_limits",
                                                         "workspace_model_limits", "key_limits",
                                                         "key_model_limits", "shadow"};
          TRY(auto mask, MaskOf(request->update_mask(), from, kFields));
          auto done = backend.store().UpdatePlan(
              ChangeOf(caller, *request), name[0], [&](AuthStore::Plan& plan) -> Result<void> {
                av::Plan now;
                ToResource(plan, now);
                Merge(from, mask, now);
                plan.limits = {.key = FromProto(now.key_limits()),
                               .workspace = FromProto(now.workspace_limits()),
                               .key_models = FromProto(now.key_model_limits()),
                               .workspace_models = FromProto(now.workspace_model_limits())};
                plan.shadow = now.shadow();
                return {};
              });
          if (!done) return Fail{done.error()};
          backend.feed().Wake();
          return ReadPlan(backend, name, *response);
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

  // The function returns the subjects whose use completes the response.
  template <typename Request, typename Function>
  ServerUnaryReactor* AskLimiter(CallbackServerContext* context, const Request* request,
                                 Function function) {
    return admin::Start(context, request, [=, this](const admin::Call& call) {
      workers_.Post(call, [=](AuthBackend& backend) {
        auto name = admin::NameParts(*request);
        if (!name) return call.Finish(Fail{name.error()});
        AdminResult<Uses> uses = function(backend, call.caller(), *name);
        if (!uses) return call.Finish(Fail{uses.error()});
        AskForUse(backend.peers(), std::move(uses->subjects), uses->detail, call);
      });
    });
  }

  // Position in a list of keys: "created:key_id" of the last one.
  static std::string PositionOf(const v1::Key& key) {
    return std::to_string(key.created_at_us()) + ":" + key.key_id();
  }
  static AuthStore::KeyPlace PlaceOf(const std::string& position) {
    if (position.empty()) return {};
    return {std::strtoll(position.c_str(), nullptr, 10), position.substr(position.find(':') + 1)};
  }

  static AdminResult<void> ReadLimits(AuthBackend& backend, const Parts& name,
                                      av::Limits& response) {
    TRY(auto limits, Translate(backend.store().GetLimits(name[0])));
    ToResource(name[0], limits, response);
    return {};
  }
  static AdminResult<void> ReadKeyLimits(AuthBackend& backend, const Parts& name,
                                         av::KeyModelLimits& response) {
    TRY(auto limits, Translate(backend.store().GetKeyModelLimits(name[0], name[1])));
    response.set_name("workspaces/" + name[0] + "/keys/" + name[1] + "/modelLimits");
    ToProto(limits, *response.mutable_model_limits());
    return {};
  }
  static AdminResult<void> ReadPlan(AuthBackend& backend, const Parts& name, av::Plan& response) {
    TRY(auto plan, Translate(backend.store().GetPlan(name[0])));
    ToResource(plan, response);
    return {};
  }

  const OnBackend workers_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeLimitAdmin(const BackendSlot& backend) {
  return std::make_unique<LimitRpc>(backend);
}

}  // namespace tollgate::auth
