#include <map>

#include "common/admin/paging.h"
#include "common/admin/values.h"
#include "common/base/try.h"
#include "services/auth/admin/key_admin.h"
#include "services/auth/rpc/admin_rpc.h"
#include "services/auth/rpc/admin_run.h"
#include "tollgate/admin/v1/keys.grpc.pb.h"

namespace tollgate::auth {
namespace {

namespace pb = tollgate::admin::v1;
using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

// Most keys in view=TOP_SPENT.
constexpr int kTopSpent = 200;
constexpr std::string_view kKeyName = "workspaces/*/keys/*";

class KeyRpc : public pb::KeyService::CallbackService {
 public:
  explicit KeyRpc(const BackendSlot& backend) : backend_(backend) {}

  ServerUnaryReactor* CreateKey(CallbackServerContext* context, const pb::CreateKeyRequest* request,
                                pb::CreateKeyResponse* response) override {
    return Change(backend_, context, request, response, "key_create", &KeyAdmin::Create);
  }
  ServerUnaryReactor* GetKey(CallbackServerContext* context, const pb::GetKeyRequest* request,
                             pb::Key* response) override {
    return ReadWithSpend(
        context, request, response,
        [request](KeyAdmin keys, const admin::Caller&) { return keys.Get(*request); });
  }
  ServerUnaryReactor* ListKeys(CallbackServerContext* context, const pb::ListKeysRequest* request,
                               pb::ListKeysResponse* response) override {
    if (request->view() != pb::KEY_VIEW_UNSPECIFIED) {
      return admin::Start(context, request, [=, this](const admin::Call& call) {
        ListTopSpent(call, *request, response);
      });
    }
    return ReadWithSpend(context, request, response,
                         [request](KeyAdmin keys, const admin::Caller& caller) {
                           return keys.List(caller, *request);
                         });
  }
  ServerUnaryReactor* UpdateKey(CallbackServerContext* context, const pb::UpdateKeyRequest* request,
                                pb::Key* response) override {
    return Change(backend_, context, request, response, "key_update", &KeyAdmin::Update);
  }
  ServerUnaryReactor* DisableKey(CallbackServerContext* context,
                                 const pb::DisableKeyRequest* request, pb::Key* response) override {
    return Change(backend_, context, request, response, "key_disable", &KeyAdmin::Disable);
  }
  ServerUnaryReactor* EnableKey(CallbackServerContext* context, const pb::EnableKeyRequest* request,
                                pb::Key* response) override {
    return Change(backend_, context, request, response, "key_enable", &KeyAdmin::Enable);
  }
  ServerUnaryReactor* RevokeKey(CallbackServerContext* context, const pb::RevokeKeyRequest* request,
                                pb::Key* response) override {
    return Change(backend_, context, request, response, "key_revoke", &KeyAdmin::Revoke);
  }
  ServerUnaryReactor* RotateKey(CallbackServerContext* context, const pb::RotateKeyRequest* request,
                                pb::RotateKeyResponse* response) override {
    return Change(backend_, context, request, response, "key_rotate", &KeyAdmin::Rotate);
  }
  ServerUnaryReactor* ImportKeys(CallbackServerContext* context,
                                 const pb::ImportKeysRequest* request,
                                 pb::ImportKeysResponse* response) override {
    return Change(backend_, context, request, response, "key_import", &KeyAdmin::Import);
  }
  ServerUnaryReactor* ReportLeakedKey(CallbackServerContext* context,
                                      const pb::ReportLeakedKeyRequest* request,
                                      pb::ReportLeakedKeyResponse* response) override {
    return Change(backend_, context, request, response, "key_leak", &KeyAdmin::ReportLeak);
  }

 private:
  static std::vector<pb::Key*> KeysOf(pb::Key& key) { return {&key}; }
  static std::vector<pb::Key*> KeysOf(pb::ListKeysResponse& list) {
    std::vector<pb::Key*> keys;
    for (pb::Key& key : *list.mutable_keys()) keys.push_back(&key);
    return keys;
  }
  static std::string IdOf(const pb::Key& key) {
    return key.name().substr(key.name().rfind('/') + 1);
  }
  static void SetSpend(const std::vector<pb::Key*>& keys,
                       const billing::v1::ListKeySpendResponse& answer) {
    std::map<std::string, int64_t> spent;
    for (const auto& one : answer.spends()) spent[one.key_id()] = one.spent_nano_usd();
    for (pb::Key* key : keys) key->set_month_spent_usd(admin::FormatUsd(spent[IdOf(*key)]));
  }

  // Reads keys and adds their spend, which billing knows. If billing does not answer, the field
  // stays unset.
  template <typename Request, typename Response, typename Read>
  ServerUnaryReactor* ReadWithSpend(CallbackServerContext* context, const Request* request,
                                    Response* response, Read read) {
    return admin::Start(context, request, [=, this](const admin::Call& call) {
      workers_.Post(call, [=](AuthBackend& backend) {
        admin::AdminResult<Response> result = read(KeyAdmin(backend.store()), call.caller());
        if (!result) return call.Finish(Fail{result.error()});
        *response = *std::move(result);
        const std::vector<pb::Key*> keys = KeysOf(*response);
        if (keys.empty() || !backend.peers().key_spend) return call.Finish({});
        auto parts = admin::NameParts(kKeyName, keys.front()->name(), "name");
        if (!parts) return call.Finish(Fail{parts.error()});
        billing::v1::ListKeySpendRequest ask;
        ask.set_workspace_id(parts->front());
        for (const pb::Key* key : keys) ask.add_key_ids(IdOf(*key));
        backend.peers().key_spend(
            std::move(ask), [call, keys](const Result<billing::v1::ListKeySpendResponse>& answer) {
              if (answer) SetSpend(keys, *answer);
              call.Finish({});
            });
      });
    });
  }

  // Reads keys whose ids billing knows.
  void ListTopSpent(const admin::Call& call, const pb::ListKeysRequest& request,
                    pb::ListKeysResponse* response) {
    auto ask = TopSpentOf(request);
    if (!ask) return call.Finish(Fail{ask.error()});
    AuthBackend* const backend = backend_.load();
    if (!backend || !backend->peers().key_spend) {
      return call.Refuse(Unavailable("the spend of keys is unknown: auth has no "
                                     "targets.billing_admin, or is not running")
                             .error);
    }
    backend->peers().key_spend(*ask, [this, call, response, workspace = ask->workspace_id()](
                                         const Result<billing::v1::ListKeySpendResponse>& answer) {
      if (!answer) return call.Refuse(answer.error());
      workers_.Post(call, [call, response, workspace, answer = *answer](AuthBackend& backend) {
        std::vector<std::string> ids;
        for (const auto& one : answer.spends()) ids.push_back(one.key_id());
        auto listed = KeyAdmin(backend.store()).ListByIds(workspace, ids);
        if (!listed) return call.Finish(Fail{listed.error()});
        *response = *std::move(listed);
        SetSpend(KeysOf(*response), answer);
        call.Finish({});
      });
    });
  }
  static admin::AdminResult<billing::v1::ListKeySpendRequest> TopSpentOf(
      const pb::ListKeysRequest& request) {
    TRY(auto parts, admin::NameParts(request));
    if (request.view() != pb::KEY_VIEW_TOP_SPENT || !request.page_token().empty() ||
        !request.query().empty() || !request.filter().empty()) {
      return admin::InvalidField(
          "view", "view is KEY_VIEW_TOP_SPENT, without page_token, query and filter");
    }
    TRY(auto size, admin::PageSize(request.page_size()));
    billing::v1::ListKeySpendRequest ask;
    ask.set_workspace_id(parts.front());
    ask.set_top(request.page_size() == 0 ? kTopSpent : size);
    return ask;
  }

  const BackendSlot& backend_;
  const OnBackend workers_{backend_};
};

}  // namespace

std::unique_ptr<grpc::Service> MakeKeyAdmin(const BackendSlot& backend) {
  return std::make_unique<KeyRpc>(backend);
}

}  // namespace tollgate::auth
