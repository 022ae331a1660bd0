// One run of the command line: connects to the services, prints results, reports failures.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "services/cli/table.h"
#include "tollgate/admin/v1/alerts.grpc.pb.h"
#include "tollgate/admin/v1/payments.grpc.pb.h"
#include "tollgate/auth/v1/auth.grpc.pb.h"
#include "tollgate/billing/v1/billing.grpc.pb.h"

namespace tollgate::cli {

struct Options {
  bool json = false;
  std::string target;  // address of both services, unless one of the next two is set
  std::string auth_target;
  std::string billing_target;
  std::string actor;       // for the audit log
  std::string request_id;  // idempotency key of a change; empty: a random one
  int timeout_seconds = 10;
  // Mutual TLS; all empty: plaintext.
  std::string certificate_file, private_key_file, authority_file;
};

class Invocation {
 public:
  explicit Invocation(const Options& options) : options_(options) {}

  const Options& options() const { return options_; }
  std::string RequestId() const;
  // Null when the TLS files cannot be read; the error has been reported.
  std::unique_ptr<auth::v1::AuthAdminService::Stub> Auth();
  std::unique_ptr<billing::v1::BillingAdminService::Stub> Billing();
  std::unique_ptr<admin::v1::PaymentService::Stub> Payments();
  std::unique_ptr<admin::v1::AlertService::Stub> Alerts();
  int64_t NowSeconds() const;

  // Makes one call with the timeout. On failure reports the error, sets the exit code and returns
  // false.
  bool Call(const char* service, const std::function<grpc::Status(grpc::ClientContext&)>& call);

  void ShowRecord(const Table& table) const;
  void ShowList(const Table& table, const std::string& name, const std::string& when_empty) const;
  // Prints the error to standard error and sets the exit code: 2 for bad_option, else 1.
  void ReportError(const std::string& code, const std::string& message);
  int exit_code() const { return exit_code_; }
  void set_exit_code(int code) { exit_code_ = code; }

 private:
  std::shared_ptr<grpc::Channel> Connect(const std::string& own_target);
  const std::string& TargetOf(const std::string& own_target) const {
    return own_target.empty() ? options_.target : own_target;
  }

  const Options& options_;
  int exit_code_ = 0;
};

}  // namespace tollgate::cli
