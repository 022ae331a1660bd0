#include <map>

#include "common/admin/paging.h"
#include "common/admin/values.h"
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

class KeyRpc : public pb::KeyService::CallbackService {
 public:
  explicit KeyRpc(const BackendSlot& backend) : backend_(backend) {}

  ServerUnaryReactor* CreateKey(CallbackServerContext* context, const pb::CreateKeyRequest* request,
                                pb::CreateKeyResponse* response) override {
    return ChangeAdmin(backend_, context, request, response, "key_create",
                       [request](AuthBackend& backend, const admin::Caller& caller) {
                         return KeyAdmin(backend.store()).Create(caller, *request);
                       });
  }
  ServerUnaryReactor* GetKey(CallbackServerContext* context, const pb::GetKeyRequest* request,
                             pb::Key* response) override {
    return RunWithSpend(context, request, response,
                        [request](AuthBackend& backend, const admin::Caller&) {
                          return KeyAdmin(backend.store()).Get(*request);
                        });
  }
  ServerUnaryReactor* ListKeys(CallbackServerContext* context, const pb::ListKeysRequest* request,
                               pb::ListKeysResponse* response) override {
    if (request->view() != pb::KEY_VIEW_UNSPECIFIED) {
      return ListTopSpent(context, request, response);
    }
    return RunWithSpend(context, request, response,
                        [request](AuthBackend& backend, const admin::Caller& caller) {
                          return KeyAdmin(backend.store()).List(caller, *request);
                        });
  }
  ServerUnaryReactor* UpdateKey(CallbackServerContext* context, const pb::UpdateKeyRequest* request,
                                pb::Key* response) override {
    return ChangeAdmin(backend_, context, request, response, "key_update",
                       [request](AuthBackend& backend, const admin::Caller& caller) {
                         return KeyAdmin(backend.store()).Update(caller, *request);
                       });
  }
  ServerUnaryReactor* DisableKey(CallbackServerContext* context,
                                 const pb::DisableKeyRequest* request, pb::Key* response) override {
    return ChangeAdmin(backend_, context, request, response, "key_disable",
                       [request](AuthBackend& backend, const admin::Caller& caller) {
                         return KeyAdmin(backend.store()).Disable(caller, *request);
                       });
  }
  ServerUnaryReactor* EnableKey(CallbackServerContext* context, const pb::EnableKeyRequest* request,
                                pb::Key* response) override {
    return ChangeAdmin(backend_, context, request, response, "key_enable",
                       [request](AuthBackend& backend, const admin::Caller& caller) {
                         return KeyAdmin(backend.store()).Enable(caller, *request);
                       });
  }
  ServerUnaryReactor* RevokeKey(CallbackServerContext* context, const pb::RevokeKeyRequest* request,
                                pb::Key* response) override {
    return ChangeAdmin(backend_, context, request, response, "key_revoke",
                       [request](AuthBackend& backend, const admin::Caller& caller) {
                         return KeyAdmin(backend.store()).Revoke(caller, *request);
                       });
  }
  ServerUnaryReactor* RotateKey(CallbackServerContext* context, const pb::RotateKeyRequest* request,
                                pb::RotateKeyResponse* response) override {
    return ChangeAdmin(backend_, context, request, response, "key_rotate",
                       [request](AuthBackend& backend, const admin::Caller& caller) {
                         return KeyAdmin(backend.store()).Rotate(caller, *request);
                       });
  }
  ServerUnaryReactor* ImportKeys(CallbackServerContext* context,
                                 const pb::ImportKeysRequest* request,
                                 pb::ImportKeysResponse* response) override {
    return ChangeAdmin(backend_, context, request, response, "key_import",
                       [request](AuthBackend& backend, const admin::Caller& caller) {
                         return KeyAdmin(backend.store()).Import(caller, *request);
                       });
  }
  ServerUnaryReactor* ReportLeakedKey(CallbackServerContext* context,
                                      const pb::ReportLeakedKeyRequest* request,
                                      pb::ReportLeakedKeyResponse* response) override {
    return ChangeAdmin(backend_, context, request, response, "key_leak",
                       [request](AuthBackend& backend, const admin::Caller& caller) {
                         return KeyAdmin(backend.store()).ReportLeak(caller, *request);
                       });
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
  ServerUnaryReactor* RunWithSpend(CallbackServerContext* context, const Request* request,
                                   Response* response, Read read) {
    auto caller = admin::Admit(*context, *request);
    if (!caller) return RefuseAdmin(context, caller.error());
    ServerUnaryReactor* const reactor = context->DefaultReactor();
    OnWorker(reactor, [reactor, response, read, caller = *std::move(caller)](AuthBackend& backend) {
      admin::AdminResult<Response> result = read(backend, caller);
      if (!result) return reactor->Finish(FinishStatus(result.error()));
      *response = *std::move(result);
      const std::vector<pb::Key*> keys = KeysOf(*response);
      if (keys.empty() || !backend.peers().key_spend) return reactor->Finish(grpc::Status::OK);
      billing::v1::ListKeySpendRequest ask;
      const std::string& name = keys.front()->name();
      ask.set_workspace_id(name.substr(11, name.find('/', 11) - 11));  // workspaces/{workspace}/
      for (const pb::Key* key : keys) ask.add_key_ids(IdOf(*key));
      backend.peers().key_spend(
          std::move(ask), [reactor, keys](const Result<billing::v1::ListKeySpendResponse>& answer) {
            if (answer) SetSpend(keys, *answer);
            reactor->Finish(grpc::Status::OK);
          });
    });
    return reactor;
  }

  ServerUnaryReactor* ListTopSpent(CallbackServerContext* context,
                                   const pb::ListKeysRequest* request,
                                   pb::ListKeysResponse* response) {
    auto caller = admin::Admit(*context, *request);
    if (!caller) return RefuseAdmin(context, caller.error());
    auto parts = admin::NameParts("workspaces/*", request->parent(), "parent");
    if (!parts) return RefuseAdmin(context, parts.error());
    if (request->view() != pb::KEY_VIEW_TOP_SPENT || !request->page_token().empty() ||
        !request->query().empty() || !request->filter().empty()) {
      return RefuseAdmin(context, admin::InvalidField("view",
                                                      "view is KEY_VIEW_TOP_SPENT, without "
                                                      "page_token, query and filter")
                                      .error);
    }
    auto size = admin::PageSize(request->page_size());
    if (!size) return RefuseAdmin(context, size.error());
    AuthBackend* const backend = backend_.load();
    if (!backend || !backend->peers().key_spend) {
      return RefuseAdmin(context,
                         admin::FromError(Unavailable("the spend of keys is unknown: auth has no "
                                                      "targets.billing_admin, or is not running")
                                              .error));
    }
    billing::v1::ListKeySpendRequest ask;
    ask.set_workspace_id(parts->front());
    ask.set_top(request->page_size() == 0 ? kTopSpent : *size);
    ServerUnaryReactor* const reactor = context->DefaultReactor();
    backend->peers().key_spend(
        std::move(ask), [this, reactor, response, workspace = parts->front()](
                            const Result<billing::v1::ListKeySpendResponse>& answer) {
          if (!answer) return reactor->Finish(FinishStatus(admin::FromError(answer.error())));
          OnWorker(reactor, [reactor, response, workspace, answer = *answer](AuthBackend& backend) {
            std::vector<std::string> ids;
            for (const auto& one : answer.spends()) ids.push_back(one.key_id());
            auto listed = KeyAdmin(backend.store()).ListByIds(workspace, ids);
            if (!listed) return reactor->Finish(FinishStatus(listed.error()));
            *response = *std::move(listed);
            SetSpend(KeysOf(*response), answer);
            reactor->Finish(grpc::Status::OK);
          });
        });
    return reactor;
  }

  // Runs the function on a storage thread, or ends the call.
  void OnWorker(ServerUnaryReactor* reactor, std::function<void(AuthBackend&)> function) {
    const auto refuse = [reactor](const char* why) {
      reactor->Finish(FinishStatus(admin::FromError(Unavailable(why).error)));
    };
    AuthBackend* const backend = backend_.load();
    if (!backend) return refuse("auth is not running");
    const bool posted = backend->workers().Submit(
        [backend, function = std::move(function)] { function(*backend); });
    if (!posted) refuse("too many calls are queued");
  }

  const BackendSlot& backend_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeKeyAdmin(const BackendSlot& backend) {
  return std::make_unique<KeyRpc>(backend);
}

}  // namespace tollgate::auth
