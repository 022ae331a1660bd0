#include "common/audit/log.h"
#include "common/rpc/error_status.h"
#include "services/billing/rpc/admin_calls.h"
#include "tollgate/billing/v1/audit.grpc.pb.h"

namespace tollgate::billing {
namespace {

constexpr int kMaxEntries = 500;

void Fill(const audit::Record& record, v1::AuditSourceEntry& entry) {
  entry.set_sequence(record.sequence);
  entry.set_at_us(record.at_us);
  entry.set_actor(record.actor);
  entry.set_address(record.address);
  entry.set_action(record.action);
  entry.set_workspace_id(record.workspace_id);
  entry.set_subject(record.subject);
  entry.set_detail(record.detail);
  entry.set_request_id(record.request_id);
  entry.set_format(record.format);
  entry.set_hash(record.hash);
}

class AuditSourceRpc : public v1::AuditSourceService::CallbackService {
 public:
  explicit AuditSourceRpc(LedgerService& ledger) : ledger_(ledger) {}

  grpc::ServerUnaryReactor* ReadAuditEntries(grpc::CallbackServerContext* context,
                                             const v1::ReadAuditEntriesRequest* request,
                                             v1::ReadAuditEntriesResponse* response) override {
    grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
    const int64_t after = request->after();
    if (after < 0 || request->limit() < 0) {
      reactor->Finish({grpc::StatusCode::INVALID_ARGUMENT, "after and limit must not be negative"});
      return reactor;
    }
    const bool fits = request->limit() > 0 && request->limit() <= kMaxEntries;
    const int limit = fits ? request->limit() : kMaxEntries;
    ledger_.Read(
        [=](sql::Database& database) {
          auto connection = database.Borrow();
          if (!connection.ok()) {
            return reactor->Finish(rpc::ToStatus(sql::ToError(connection.error())));
          }
          auto page = audit::ReadPage(**connection, audit::kEntries, after, limit);
          if (!page.ok()) return reactor->Finish(rpc::ToStatus(sql::ToError(page.error())));
          for (const audit::Record& record : page->records) Fill(record, *response->add_entries());
          response->set_head_sequence(page->head.sequence);
          response->set_head_hash(page->head.hash);
          reactor->Finish(grpc::Status::OK);
        },
        [reactor](const Error& refused) { reactor->Finish(rpc::ToStatus(refused)); },
        [context] { return context->IsCancelled(); });
    return reactor;
  }

 private:
  LedgerService& ledger_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeAuditSource(LedgerService& ledger) {
  return std::make_unique<AuditSourceRpc>(ledger);
}

}  // namespace tollgate::billing
