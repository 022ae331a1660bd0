#include "services/auth/admin/key_admin.h"
#include "services/auth/rpc/admin_rpc.h"
#include "services/auth/rpc/admin_run.h"
#include "tollgate/admin/v1/keys.grpc.pb.h"

namespace tollgate::auth {
namespace {

namespace pb = tollgate::admin::v1;
using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

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
    return RunAdmin(backend_, context, request, response,
                    [request](AuthBackend& backend, const admin::Caller&) {
                      return KeyAdmin(backend.store()).Get(*request);
                    });
  }
  ServerUnaryReactor* ListKeys(CallbackServerContext* context, const pb::ListKeysRequest* request,
                               pb::ListKeysResponse* response) override {
    return RunAdmin(backend_, context, request, response,
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
  const BackendSlot& backend_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeKeyAdmin(const BackendSlot& backend) {
  return std::make_unique<KeyRpc>(backend);
}

}  // namespace tollgate::auth
