// One run of the command line: where the services are, how to show results, how to report failures.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

#include "services/cli/table.h"
#include "tollgate/auth/v1/auth.grpc.pb.h"
#include "tollgate/billing/v1/billing.grpc.pb.h"

namespace tollgate::cli {

struct Options {
  bool json = false;
  std::string target;  // of everything, unless one of the next two is set
  std::string auth_target;
  std::string billing_target;
  std::string actor;       // for the audit log
  std::string request_id;  // makes a repeated command the same change; a fresh one when empty
  int timeout_seconds = 10;
  // Mutual TLS; all empty: plain text.
  std::string certificate_file, private_key_file, authority_file;
};

class Session {
 public:
  explicit Session(const Options& options) : options_(options) {}

  const Options& options() const { return options_; }
  std::string RequestId() const;
  // Null after a complaint on standard error.
  std::unique_ptr<auth::v1::AuthAdminService::Stub> Auth();
  std::unique_ptr<billing::v1::BillingAdminService::Stub> Billing();

  // Runs one call within the time limit; complains and sets the exit code when it fails.
  bool Call(const char* service, const std::function<grpc::Status(grpc::ClientContext&)>& call);

  void ShowRecord(const Table& table) const;
  void ShowList(const Table& table, const std::string& name, const std::string& when_empty) const;
  void Complain(const std::string& code, const std::string& message);
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
