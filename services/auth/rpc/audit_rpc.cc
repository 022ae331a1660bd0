#include <google/api/httpbody.pb.h>

#include <mutex>

#include "services/auth/admin/audit_admin.h"
#include "services/auth/rpc/admin_rpc.h"
#include "services/auth/rpc/admin_run.h"
#include "tollgate/admin/v1/audit.grpc.pb.h"

namespace tollgate::auth {
namespace {

namespace pb = tollgate::admin::v1;
using google::api::HttpBody;
using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

// The stream of one export. When the last lines are written, reads the next ones on a storage
// thread.
class ExportStream : public grpc::ServerWriteReactor<HttpBody> {
 public:
  explicit ExportStream(const grpc::Status& refused) { Finish(refused); }
  ExportStream(const BackendSlot& slot, pb::ExportAuditEntriesRequest request)
      : slot_(&slot), request_(std::move(request)) {
    ReadOn();
  }

  void OnWriteDone(bool ok) override {
    if (!ok) return Finish(grpc::Status(grpc::StatusCode::CANCELLED, "the reader left"));
    ReadOn();
  }
  void OnDone() override { delete this; }

 private:
  void ReadOn() {
    AuthBackend* const backend = slot_->load();
    const bool posted = backend != nullptr && backend->workers().Submit([this, backend] {
      auto lines = AuditAdmin(backend->store()).ExportLines(request_, after_);
      if (!lines) return Finish(admin::StatusOf(Fail{lines.error()}));
      if (lines->empty()) return Finish(grpc::Status::OK);
      body_.set_content_type("application/x-ndjson");
      body_.set_data(*std::move(lines));
      StartWrite(&body_);
    });
    if (!posted) {
      Finish(admin::StatusOf(
          Fail{admin::FromError(Unavailable("auth is not running, or busy").error)}));
    }
  }

  const BackendSlot* slot_ = nullptr;
  const pb::ExportAuditEntriesRequest request_;
  int64_t after_ = 0;
  HttpBody body_;
};

class AuditRpc : public pb::AuditService::CallbackService {
 public:
  explicit AuditRpc(const BackendSlot& backend) : backend_(backend) {}

  ServerUnaryReactor* GetAuditEntry(CallbackServerContext* context,
                                    const pb::GetAuditEntryRequest* request,
                                    pb::AuditEntry* response) override {
    return Read(backend_, context, request, response, &AuditAdmin::Get);
  }
  ServerUnaryReactor* ListAuditEntries(CallbackServerContext* context,
                                       const pb::ListAuditEntriesRequest* request,
                                       pb::ListAuditEntriesResponse* response) override {
    return Read(backend_, context, request, response, &AuditAdmin::List);
  }
  ServerUnaryReactor* VerifyAuditEntries(CallbackServerContext* context,
                                         const pb::VerifyAuditEntriesRequest* request,
                                         pb::VerifyAuditEntriesResponse* response) override {
    return admin::Handle(
        context, request, response, OnBackend{backend_},
        [](AuthBackend& backend, const admin::Caller&) {
          return AuditAdmin(backend.store()).Verify(backend.checkpoints(), backend.audit_sources());
        });
  }
  grpc::ServerWriteReactor<HttpBody>* ExportAuditEntries(
      CallbackServerContext* context, const pb::ExportAuditEntriesRequest* request) override {
    auto caller = admin::Admit(*context, *request);
    if (!caller) return new ExportStream(admin::StatusOf(Fail{caller.error()}));
    return new ExportStream(backend_, *request);
  }

 private:
  const BackendSlot& backend_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeAuditAdmin(const BackendSlot& backend) {
  return std::make_unique<AuditRpc>(backend);
}

}  // namespace tollgate::auth
