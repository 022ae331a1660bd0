// What the handlers of tollgate.admin.v1 share: who may call (admin::Admit, first in each), reads,
// commands, and their failures. Handlers only enqueue; the ledger's threads reply.
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
  // Credit above it wants a fresh sign-in (decision 57).
  int64_t known_caller_above_nano_usd = 100 * kNanoPerUsd;
};

// The services of tollgate.admin.v1 over one ledger, which must outlive them.
std::unique_ptr<grpc::Service> MakeLedgerAdmin(LedgerService& ledger);
std::unique_ptr<grpc::Service> MakeAdjustmentAdmin(LedgerService& ledger, AdminOptions options);
std::unique_ptr<grpc::Service> MakeUsageAdmin(LedgerService& ledger);
std::unique_ptr<grpc::Service> MakeStatementAdmin(LedgerService& ledger);
std::unique_ptr<grpc::Service> MakeDeadLetterAdmin(LedgerService& ledger);
std::unique_ptr<grpc::Service> MakeVerificationAdmin(LedgerService& ledger);
// The audit entries, for auth.
std::unique_ptr<grpc::Service> MakeAuditSource(LedgerService& ledger);
// What the summary of a workspace needs, for the dashboard. Reads rows of payments and alerts too.
std::unique_ptr<grpc::Service> MakeSummaryRpc(LedgerService& ledger);

// Ends the call. What is for logs only is logged.
void FinishAdmin(grpc::ServerUnaryReactor* reactor, const admin::AdminResult<void>& result);
grpc::ServerUnaryReactor* Refused(grpc::CallbackServerContext* context,
                                  const admin::Failure& failure);
// The same for a caller who was admitted; the audit log says so if a right is missing.
grpc::ServerUnaryReactor* Refused(grpc::CallbackServerContext* context, const admin::Caller& caller,
                                  const admin::Failure& failure);

// Ends the call with what a blocking read returns; the read fills the response. Its statements end
// when the caller leaves or its deadline passes.
void ReadAndFinish(LedgerService& ledger, grpc::CallbackServerContext* context,
                   grpc::ServerUnaryReactor* reactor,
                   std::function<admin::AdminResult<void>(sql::Database&)> read);
// The same for a call that is only a read.
grpc::ServerUnaryReactor* RunAdminRead(
    LedgerService& ledger, grpc::CallbackServerContext* context,
    std::function<admin::AdminResult<void>(sql::Database&)> read);

// The same for a report or a list that may lack what was committed a moment ago: on the standby for
// reports, if there is one that is close behind. read fills the response last, since it is called
// again on the primary when it fails on the standby.
grpc::ServerUnaryReactor* RunAdminReport(
    LedgerService& ledger, grpc::CallbackServerContext* context,
    std::function<admin::AdminResult<void>(sql::Database&)> read);

// Ends the call with what a blocking function returns, on the threads of a part of billing
// (payments, alerts) that has open() and pool(). What still waits when the part stops is refused.
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

// Runs one operation. done gets the reply of an operation that was executed; a failure ends the
// call.
void SubmitAdmin(LedgerService& ledger, grpc::ServerUnaryReactor* reactor, Operation operation,
                 std::function<void(const Reply&)> done);
// Why the ledger refused an operation on this workspace.
admin::Failure FailureOf(Deny deny, const std::string& workspace);
admin::Failure NoWallet(const std::string& workspace);
template <typename T>
Fail<admin::Failure> SqlFailure(const sql::SqlResult<T>& result) {
  return Fail{admin::FromError(sql::ToError(result.error()))};
}

// The request id in hexadecimal digits, or the id of the command.
std::string RequestText(const Entry& entry);
void SetTime(int64_t us, google::protobuf::Timestamp& into);
// "" is the request_id of a call that may go without one.
admin::AdminResult<std::string> OptionalRequestId(const std::string& text);
inline audit::Origin OriginOf(const admin::Caller& caller) {
  return {caller.actor, caller.address, caller.request_id};
}
// Not empty, at most this many bytes.
admin::AdminResult<void> RequiredText(const std::string& text, size_t limit,
                                      const std::string& field);

// The page of a list: its size, and the position where it continues ("" at the start).
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
