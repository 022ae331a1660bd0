// One run of the command line: connects to the services, prints results, reports failures.
#pragma once

#include <google/protobuf/message.h>
#include <grpcpp/channel.h>
#include <grpcpp/client_context.h>

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "services/cli/request_journal.h"
#include "services/cli/table.h"
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
  // Makes one call with the timeout. method: of tollgate.admin.v1, "KeyService.ListKeys". On
  // failure, reports the error, sets the exit code and returns false.
  bool Call(const std::string& method, const google::protobuf::Message& request,
            google::protobuf::Message& response);
  // Makes a call that moves money in this workspace. what: describes the whole request. Prints and
  // stores the request id before sending, and repeats the call with it while the result is unknown.
  // Reuses the id of an earlier request for the same if its result is unknown. ask: command that
  // shows whether the request was executed; empty: `credit status`.
  bool CallMoney(const std::string& method, google::protobuf::Message& request,
                 google::protobuf::Message& response, const std::string& workspace,
                 const std::string& what, const std::string& ask = "");
  // For other kinds of calls: the channel to the process, "auth" or "billing", and the metadata and
  // deadline of one call. Null if the TLS files cannot be read; the error has been reported.
  std::shared_ptr<grpc::Channel> ChannelTo(const std::string& process);
  void Prepare(grpc::ClientContext& context) const;
  // Makes one call without reporting its failure. The channel must exist.
  grpc::Status Try(const std::string& method, const google::protobuf::Message& request,
                   google::protobuf::Message& response) {
    return Send(method, request, response, int64_t{options_.timeout_seconds} * 1000);
  }
  void ReportFailure(const std::string& process, const grpc::Status& status);
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
  grpc::Status Send(const std::string& method, const google::protobuf::Message& request,
                    google::protobuf::Message& response, int64_t timeout_ms);
  // Repeats the call while its result is unknown, at most for the timeout.
  grpc::Status Repeat(const std::string& method, const google::protobuf::Message& request,
                      google::protobuf::Message& response);
  const std::string& TargetOf(const std::string& process) const;

  const Options& options_;
  const RequestJournal journal_{RequestJournal::DefaultFolder()};
  std::map<std::string, std::shared_ptr<grpc::Channel>> channels_;  // by process
  int exit_code_ = 0;
};

}  // namespace tollgate::cli
