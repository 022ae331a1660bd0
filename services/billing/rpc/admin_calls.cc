#include "services/billing/rpc/admin_calls.h"

#include "common/base/id.h"
#include "common/observability/log.h"

namespace tollgate::billing {

using admin::AdminResult;
using admin::Failure;
using grpc::ServerUnaryReactor;

void FinishAdmin(ServerUnaryReactor* reactor, const AdminResult<void>& result) {
  if (!result && !result.error().internal.empty()) {
    log::Warn("admin call failed",
              {{"reason", result.error().reason}, {"error", result.error().internal}});
  }
  reactor->Finish(admin::ToStatus(result));
}

ServerUnaryReactor* Refused(grpc::CallbackServerContext* context, const Failure& failure) {
  ServerUnaryReactor* reactor = context->DefaultReactor();
  FinishAdmin(reactor, Fail{failure});
  return reactor;
}

ServerUnaryReactor* Refused(grpc::CallbackServerContext* context, const admin::Caller& caller,
                            const Failure& failure) {
  admin::NoteRefusal(caller, failure);
  return Refused(context, failure);
}

void ReadAndFinish(LedgerService& ledger, grpc::CallbackServerContext* context,
                   ServerUnaryReactor* reactor,
                   std::function<AdminResult<void>(sql::Database&)> read) {
  ledger.Read(
      [reactor, read = std::move(read)](sql::Database& database) {
        FinishAdmin(reactor, read(database));
      },
      [reactor](const Error& refused) { FinishAdmin(reactor, Fail{admin::FromError(refused)}); },
      // context is valid until Finish, which both functions above call last.
      [context] { return context->IsCancelled(); });
}

ServerUnaryReactor* RunAdminRead(LedgerService& ledger, grpc::CallbackServerContext* context,
                                 std::function<AdminResult<void>(sql::Database&)> read) {
  ServerUnaryReactor* reactor = context->DefaultReactor();
  ReadAndFinish(ledger, context, reactor, std::move(read));
  return reactor;
}

ServerUnaryReactor* RunAdminReport(LedgerService& ledger, grpc::CallbackServerContext* context,
                                   std::function<AdminResult<void>(sql::Database&)> read) {
  if (!ledger.has_reports()) return RunAdminRead(ledger, context, std::move(read));
  return RunAdminRead(ledger, context, [&ledger, read = std::move(read)](sql::Database& primary) {
    sql::Database* const standby = ledger.report_database();
    if (standby == nullptr) {
      CountReport("primary");
      return read(primary);
    }
    auto result = read(*standby);
    // The standby may not have the workspace or a table yet.
    const bool failed = !result && !sql::CancelScope::Cancelled();
    CountReport(failed ? "primary_after_failure" : "standby");
    return failed ? read(primary) : result;
  });
}

void SubmitAdmin(LedgerService& ledger, ServerUnaryReactor* reactor, Operation operation,
                 std::function<void(const Reply&)> done) {
  const std::string workspace = WorkspaceOf(operation);
  const bool decides = std::holds_alternative<Decide>(operation);
  std::vector<Operation> operations;
  operations.push_back(std::move(operation));
  ledger.Submit(std::move(operations), [reactor, workspace, decides, done = std::move(done)](
                                           const Result<std::vector<Reply>>& replies) {
    if (!replies.ok()) {
      return FinishAdmin(reactor, Fail{admin::FromError(replies.error())});
    }
    const Reply& reply = replies->front();
    if (!reply.ok && decides && reply.denied_by == Deny::kIdReuse) {
      return FinishAdmin(reactor, admin::Precondition("ALREADY_DECIDED",
                                                      "another operator has already decided it"));
    }
    if (!reply.ok) return FinishAdmin(reactor, Fail{FailureOf(reply.denied_by, workspace)});
    done(reply);
  });
}

Failure NoWallet(const std::string& workspace) {
  Failure failure = admin::NotFound("the workspace " + workspace +
                                    " has no wallet; if the workspace exists, open it with: "
                                    "tollgate workspace open " +
                                    workspace)
                        .error;
  failure.reason = "WALLET_NOT_FOUND";
  return failure;
}

Failure FailureOf(Deny deny, const std::string& workspace) {
  switch (deny) {
    case Deny::kUnknownWorkspace:
      return NoWallet(workspace);
    case Deny::kIdReuse:
      return admin::RequestIdReused().error;
    case Deny::kInvalid:
      return {.code = grpc::StatusCode::INVALID_ARGUMENT,
              .reason = "INVALID_VALUE",
              .message =
                  "the amount is invalid: it must be above zero, at most 1000000000 "
                  "USD, and for a write-off at most the amount owed"};
    case Deny::kNoCredit:
      return admin::Precondition("INSUFFICIENT_CREDIT",
                                 "the workspace does not have that much unspent credit of this "
                                 "kind")
          .error;
    case Deny::kSamePerson:
      return admin::Precondition(
                 "SAME_PERSON",
                 "the requester of a correction may not approve it; another operator "
                 "must")
          .error;
    default:
      return {.code = grpc::StatusCode::UNAVAILABLE,
              .reason = "UNAVAILABLE",
              .message =
                  "the ledger cannot book this at the moment; repeat the call with the same "
                  "request_id",
              .retry_after_ms = 1000};
  }
}

void SetTime(int64_t us, google::protobuf::Timestamp& into) {
  into.set_seconds(us / 1'000'000);
  into.set_nanos(static_cast<int32_t>(us % 1'000'000 * 1000));
}

AdminResult<std::string> OptionalRequestId(const std::string& text) {
  return text.empty() ? AdminResult<std::string>(Id::New().ToHex())
                      : admin::RequiredRequestId(text);
}

AdminResult<void> RequiredText(const std::string& text, size_t limit, const std::string& field) {
  if (!text.empty() && text.size() <= limit) return {};
  return admin::InvalidField(
      field, field + " is required, with at most " + std::to_string(limit) + " bytes");
}

}  // namespace tollgate::billing
