// One run of the command line: connects to the services, prints results, reports failures.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "services/cli/request_journal.h"
#include "services/cli/table.h"
#include "tollgate/admin/v1/adjustments.grpc.pb.h"
#include "tollgate/admin/v1/alerts.grpc.pb.h"
#include "tollgate/admin/v1/audit.grpc.pb.h"
#include "tollgate/admin/v1/dead_letters.grpc.pb.h"
#include "tollgate/admin/v1/keys.grpc.pb.h"
#include "tollgate/admin/v1/ledger.grpc.pb.h"
#include "tollgate/admin/v1/limits.grpc.pb.h"
#include "tollgate/admin/v1/members.grpc.pb.h"
#include "tollgate/admin/v1/payments.grpc.pb.h"
#include "tollgate/admin/v1/statements.grpc.pb.h"
#include "tollgate/admin/v1/usage.grpc.pb.h"
#include "tollgate/admin/v1/users.grpc.pb.h"
#include "tollgate/admin/v1/verifications.grpc.pb.h"
#include "tollgate/admin/v1/workspaces.grpc.pb.h"
#include "tollgate/config/v1/config.pb.h"

namespace tollgate::cli {

struct Options {
  bool json = false;
  std::string target;  // address of both services, unless one of the next two is set
  std::string auth_target;
  std::string billing_target;
  std::string request_id;  // idempotency key of a change; empty: random
  int timeout_seconds = 10;
  // Mutual TLS with an operator's certificate; empty: plain text.
  config::v1::TlsConfig tls;
};

// The user name of the operating system. It is the actor of changes over a local socket (decision
// 57).
std::string OperatorName();

class Invocation {
 public:
  explicit Invocation(const Options& options) : options_(options) {}

  const Options& options() const { return options_; }
  std::string RequestId() const;
  // Services of tollgate.admin.v1. Null if the TLS files cannot be read; the error has been
  // reported. In auth:
  std::unique_ptr<admin::v1::WorkspaceService::Stub> Workspaces();
  std::unique_ptr<admin::v1::KeyService::Stub> Keys();
  std::unique_ptr<admin::v1::AuditService::Stub> Audit();
  std::unique_ptr<admin::v1::LimitService::Stub> Limits();
  std::unique_ptr<admin::v1::UserService::Stub> Users();
  std::unique_ptr<admin::v1::InvitationService::Stub> Invitations();
  // In billing.
  std::unique_ptr<admin::v1::LedgerService::Stub> Books();
  std::unique_ptr<admin::v1::AdjustmentService::Stub> Adjustments();
  std::unique_ptr<admin::v1::UsageService::Stub> Usage();
  std::unique_ptr<admin::v1::PaymentService::Stub> Payments();
  std::unique_ptr<admin::v1::AlertService::Stub> Alerts();
  std::unique_ptr<admin::v1::DeadLetterService::Stub> DeadLetters();
  std::unique_ptr<admin::v1::StatementService::Stub> Statements();
  std::unique_ptr<admin::v1::LedgerVerificationService::Stub> Verifications();
  int64_t NowSeconds() const;

  // Makes one call with the timeout. On failure, reports the error, sets the exit code and returns
  // false.
  using CallFn = std::function<grpc::Status(grpc::ClientContext&)>;
  bool Call(const char* service, const CallFn& call);
  // Makes a call that moves money in this workspace. what: describes the whole request. Prints and
  // stores the request id before sending, and repeats the call with it while the result is unknown.
  // Reuses the id of an earlier request for the same if its result is unknown. ask: command that
  // shows whether the request was executed; empty: `credit status`.
  using MoneyFn = std::function<grpc::Status(grpc::ClientContext&, const std::string& request_id)>;
  bool CallMoney(const std::string& workspace, const std::string& what, const MoneyFn& call,
                 const std::string& ask = "");
  const RequestJournal& journal() const { return journal_; }
  // Reason of a failure of tollgate.admin.v1, for example WALLET_NOT_FOUND; otherwise "".
  static std::string ReasonOf(const grpc::Status& status);
  // Opens the wallet of a workspace that exists in auth (decision 64). Reports failures.
  bool OpenWallet(const std::string& workspace);

  void ShowRecord(const Table& table) const;
  void ShowList(const Table& table, const std::string& name, const std::string& when_empty,
                const Counts& counts = {}) const;
  // Prints the error to standard error and sets the exit code: 2 for bad_option, otherwise 1.
  void ReportError(const std::string& code, const std::string& message);
  int exit_code() const { return exit_code_; }
  void set_exit_code(int code) { exit_code_ = code; }

 private:
  void Prepare(grpc::ClientContext& context, int64_t timeout_ms) const;
  // Reports a failed call.
  void ReportFailure(const char* service, const grpc::Status& status);
  grpc::Status Repeat(const CallFn& call);
  // service: the service that the other end's certificate must name.
  std::shared_ptr<grpc::Channel> Connect(const std::string& own_target, const char* service);
  const std::string& TargetOf(const std::string& own_target) const {
    return own_target.empty() ? options_.target : own_target;
  }

  const Options& options_;
  const RequestJournal journal_{RequestJournal::DefaultFolder()};
  int exit_code_ = 0;
};

}  // namespace tollgate::cli
