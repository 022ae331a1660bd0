#include "services/billing/rpc/admin_calls.h"

#include "common/base/id.h"

namespace tollgate::billing {

using admin::AdminResult;
using admin::Failure;

void OnLedger::Run(grpc::CallbackServerContext* context, const admin::Call& call,
                   ReadWork work) const {
  ledger.Read(
      [call, work = std::move(work)](sql::Database& database) { call.Finish(work(database)); },
      [call](const Error& refused) { call.Refuse(refused); },
      // context is valid until the call ends, which both functions above do last.
      [context] { return context->IsCancelled(); });
}

void OnReports::Run(grpc::CallbackServerContext* context, const admin::Call& call,
                    ReadWork work) const {
  if (!ledger.has_reports()) return OnLedger{ledger}.Run(context, call, std::move(work));
  OnLedger{ledger}.Run(
      context, call, [&ledger = ledger, work = std::move(work)](sql::Database& primary) {
        sql::Database* const standby = ledger.report_database();
        if (standby == nullptr) {
          CountReport("primary");
          return work(primary);
        }
        auto result = work(*standby);
        // The standby may not have the workspace or a table yet.
        const bool failed = !result && result.error().code != grpc::StatusCode::INVALID_ARGUMENT &&
                            !sql::CancelScope::Cancelled();
        CountReport(failed ? "primary_after_failure" : "standby");
        return failed ? work(primary) : result;
      });
}

void SubmitAdmin(LedgerService& ledger, const admin::Call& call, Operation operation,
                 std::function<void(const Reply&)> done) {
  const std::string workspace = WorkspaceOf(operation);
  const bool decides = std::holds_alternative<Decide>(operation);
  std::vector<Operation> operations;
  operations.push_back(std::move(operation));
  ledger.Submit(std::move(operations), [call, workspace, decides, done = std::move(done)](
                                           const Result<std::vector<Reply>>& replies) {
    if (!replies.ok()) return call.Refuse(replies.error());
    const Reply& reply = replies->front();
    if (!reply.ok && decides && reply.denied_by == Deny::kIdReuse) {
      return call.Finish(
          admin::Precondition("ALREADY_DECIDED", "another operator has already decided it"));
    }
    if (!reply.ok) return call.Finish(Fail{FailureOf(reply.denied_by, workspace)});
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

std::string CommandIdOf(const admin::Caller& caller) {
  return caller.request_id.empty() ? Id::New().ToHex() : caller.request_id;
}

AdminResult<void> RequiredText(const std::string& text, size_t limit, const std::string& field) {
  if (!text.empty() && text.size() <= limit) return {};
  return admin::InvalidField(
      field, field + " is required, with at most " + std::to_string(limit) + " bytes");
}

}  // namespace tollgate::billing
