// Shared by the handlers of tollgate.admin.v1: admission of callers (admin::Admit, first in each
// handler), reads, commands, and their failures. Handlers only enqueue; the ledger's threads reply.
#pragma once

#include <google/protobuf/timestamp.pb.h>
#include <grpcpp/grpcpp.h>
#include <grpcpp/support/server_callback.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/admin/access.h"
#include "common/admin/failure.h"
#include "common/admin/filter.h"
#include "common/admin/paging.h"
#include "common/admin/values.h"
#include "common/audit/log.h"
#include "services/billing/commit/ledger_service.h"

namespace tollgate::billing {

struct AdminOptions {
  // Granting more credit than this requires a recent sign-in (decision 57).
  int64_t known_caller_above_nano_usd = 100 * kNanoPerUsd;
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

// Ends the call. Logs details that callers must not see.
void FinishAdmin(grpc::ServerUnaryReactor* reactor, const admin::AdminResult<void>& result);
grpc::ServerUnaryReactor* Refused(grpc::CallbackServerContext* context,
                                  const admin::Failure& failure);
// Overload for an admitted caller: writes to the audit log if a right is missing.
grpc::ServerUnaryReactor* Refused(grpc::CallbackServerContext* context, const admin::Caller& caller,
                                  const admin::Failure& failure);

// Ends the call with the result of a blocking read, which fills the response. The statements of the
// read end when the caller leaves or its deadline passes.
void ReadAndFinish(LedgerService& ledger, grpc::CallbackServerContext* context,
                   grpc::ServerUnaryReactor* reactor,
                   std::function<admin::AdminResult<void>(sql::Database&)> read);
// Like ReadAndFinish, for a call that only reads.
grpc::ServerUnaryReactor* RunAdminRead(
    LedgerService& ledger, grpc::CallbackServerContext* context,
    std::function<admin::AdminResult<void>(sql::Database&)> read);

// Like RunAdminRead, for a report or list that may lack the latest commits: runs on the standby for
// reports if there is one with a small lag. read must fill the response last, since it is called
// again on the primary if it fails on the standby.
grpc::ServerUnaryReactor* RunAdminReport(
    LedgerService& ledger, grpc::CallbackServerContext* context,
    std::function<admin::AdminResult<void>(sql::Database&)> read);

// Ends the call with the result of a blocking function, which runs on the threads of a part of
// billing (payments, alerts) that has open() and pool(). Calls still waiting when the part stops
// are refused.
template <typename Part, typename Function>
grpc::ServerUnaryReactor* RunOnPart(Part& part, grpc::CallbackServerContext* context,
                                    Function function) {
  const admin::Failure closed =
      admin::FromError(Unavailable("the database is not open yet, or the process stops").error);
  if (!part.open()) return Refused(context, closed);
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  const bool queued =
      part.pool().Submit([&part, reactor, closed, function = std::move(function)]() mutable {
        FinishAdmin(reactor, part.open() ? function() : admin::AdminResult<void>(Fail{closed}));
      });
  if (!queued) {
    FinishAdmin(reactor, Fail{admin::FromError(Unavailable("too many calls at once").error)});
  }
  return reactor;
}

// Runs one operation. done gets the reply of an executed operation; a failure ends the call.
void SubmitAdmin(LedgerService& ledger, grpc::ServerUnaryReactor* reactor, Operation operation,
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
// "" if the call has no request_id.
admin::AdminResult<std::string> OptionalRequestId(const std::string& text);
inline audit::Origin OriginOf(const admin::Caller& caller) {
  return {caller.actor, caller.address, caller.request_id};
}
// Fails unless the text has 1 to limit bytes.
admin::AdminResult<void> RequiredText(const std::string& text, size_t limit,
                                      const std::string& field);

// Page of a list: its size, and the position where it starts ("" for the first page).
struct Page {
  int size = 0;
  std::string position;
  std::string binding;
};
template <typename Request>
admin::AdminResult<Page> PageOf(const Request& request, const admin::Caller& caller,
                                const std::string& method, const std::string& filter) {
  Page page;
  auto size = admin::PageSize(request.page_size());
  if (!size) return Fail{size.error()};
  page.size = *size;
  page.binding = method + "\n" + caller.actor + "\n" + request.parent() + "\n" + filter;
  auto position = admin::DecodePageToken(page.binding, request.page_token());
  if (!position) return Fail{position.error()};
  page.position = *std::move(position);
  return page;
}

}  // namespace tollgate::billing
