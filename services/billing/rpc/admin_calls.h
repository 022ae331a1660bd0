// Shared by the handlers of tollgate.admin.v1: the threads that they run on, commands, and their
// failures.
#pragma once

#include <google/protobuf/timestamp.pb.h>
#include <grpcpp/grpcpp.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/admin/filter.h"
#include "common/admin/handle.h"
#include "common/audit/log.h"
#include "services/billing/commit/ledger_service.h"

namespace tollgate::billing {

struct AdminOptions {
  // What one person may correct at once, and the credit that one person may make within 24 h.
  int64_t second_person_above_nano_usd = Policy().second_person_above_nano_usd;
};

// The services of tollgate.admin.v1 for one ledger, which must outlive them.
std::unique_ptr<grpc::Service> MakeLedgerAdmin(LedgerService& ledger);
std::unique_ptr<grpc::Service> MakeAdjustmentAdmin(LedgerService& ledger, AdminOptions options);
std::unique_ptr<grpc::Service> MakeUsageAdmin(LedgerService& ledger);
std::unique_ptr<grpc::Service> MakeStatementAdmin(LedgerService& ledger);
std::unique_ptr<grpc::Service> MakeDeadLetterAdmin(LedgerService& ledger);
std::unique_ptr<grpc::Service> MakeVerificationAdmin(LedgerService& ledger);
// Serves the audit entries to auth.
std::unique_ptr<grpc::Service> MakeAuditSource(LedgerService& ledger);
// Serves workspace summaries to the dashboard. Also reads rows of payments and alerts.
std::unique_ptr<grpc::Service> MakeSummaryRpc(LedgerService& ledger);

// Executors of common/admin/handle.h.
using ReadWork = std::function<admin::AdminResult<void>(sql::Database&)>;

// Reads on the ledger's threads. The statements end when the caller leaves or its deadline passes.
struct OnLedger {
  using Given = sql::Database;
  LedgerService& ledger;
  void Run(grpc::CallbackServerContext* context, const admin::Call& call, ReadWork work) const;
  // Runs work, which ends the call, or refuses the call.
  void Post(const admin::Call& call, std::function<void(sql::Database&)> work) const {
    ledger.Read(std::move(work), [call](const Error& refused) { call.Refuse(refused); });
  }
};

// For a report or list that may lack the latest commits: reads on the standby for reports if there
// is one with a small lag. The work must fill the response last, because it is repeated on the
// primary if it fails on the standby.
struct OnReports {
  using Given = sql::Database;
  LedgerService& ledger;
  void Run(grpc::CallbackServerContext* context, const admin::Call& call, ReadWork work) const;
};

// The threads of a part of billing (payments, alerts) that has open() and pool(). Calls still
// waiting when the part stops are refused.
template <typename Part>
struct OnPart {
  using Given = Part;
  Part& part;
  template <typename Work>
  void Run(grpc::CallbackServerContext*, const admin::Call& call, Work work) const {
    static constexpr char kClosed[] = "the database is not open yet, or the process stops";
    if (!part.open()) return call.Refuse(Unavailable(kClosed).error);
    const bool queued = part.pool().Submit([call, &part = part, work = std::move(work)] {
      if (!part.open()) return call.Refuse(Unavailable(kClosed).error);
      call.Finish(work(part));
    });
    if (!queued) call.Refuse(Unavailable("too many calls are queued").error);
  }
};

// Runs one operation. done gets the reply of an executed operation; a failure ends the call.
void SubmitAdmin(LedgerService& ledger, const admin::Call& call, Operation operation,
                 std::function<void(const Reply&)> done);
// The failure for a caller whose operation on this workspace the ledger has refused.
admin::Failure FailureOf(Deny deny, const std::string& workspace);
admin::Failure NoWallet(const std::string& workspace);
template <typename T>
Fail<admin::Failure> SqlFailure(const sql::SqlResult<T>& result) {
  return Fail{admin::FromError(sql::ToError(result.error()))};
}

// Request id in hexadecimal digits, or command id.
std::string RequestText(const Entry& entry);
void SetTime(int64_t us, google::protobuf::Timestamp& into);
// The id of the command that the call makes: its request_id, or a random one.
std::string CommandIdOf(const admin::Caller& caller);
inline audit::Origin OriginOf(const admin::Caller& caller) {
  return {caller.actor, caller.address, caller.request_id};
}
// Fails unless the text has 1 to limit bytes.
admin::AdminResult<void> RequiredText(const std::string& text, size_t limit,
                                      const std::string& field);

}  // namespace tollgate::billing
