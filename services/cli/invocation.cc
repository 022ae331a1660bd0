#include "services/cli/invocation.h"

#include <google/rpc/error_details.pb.h>
#include <google/rpc/status.pb.h>
#include <grpcpp/completion_queue.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/generic/generic_stub.h>
#include <grpcpp/security/credentials.h>
#include <pwd.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <string_view>
#include <thread>

#include "common/admin/caller.h"
#include "common/base/ascii.h"
#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/json/writer.h"
#include "common/rpc/connect_errno.h"
#include "common/rpc/tls.h"
#include "services/cli/message_fields.h"
#include "services/cli/method.h"
#include "tollgate/admin/v1/ledger.pb.h"
#include "tollgate/admin/v1/workspaces.pb.h"
#include "tollgate/common/v1/error.pb.h"

namespace tollgate::cli {
namespace {

using google::protobuf::Message;
using google::protobuf::MessageLite;

std::string_view CodeName(grpc::StatusCode code) {
  switch (code) {
    case grpc::StatusCode::UNAVAILABLE:
      return "unavailable";
    case grpc::StatusCode::DEADLINE_EXCEEDED:
      return "timeout";
    case grpc::StatusCode::NOT_FOUND:
      return "not_found";
    case grpc::StatusCode::ALREADY_EXISTS:
      return "already_exists";
    case grpc::StatusCode::INVALID_ARGUMENT:
      return "bad_request";
    case grpc::StatusCode::PERMISSION_DENIED:
      return "permission_denied";
    default:
      return "failed";
  }
}

std::string Lower(std::string text) {
  for (char& c : text) {
    if (IsUpper(c)) c = static_cast<char>(c | 0x20);
  }
  return text;
}

}  // namespace

std::string OperatorName() {
  passwd entry;
  passwd* found = nullptr;
  char buffer[4096];
  if (::getpwuid_r(::geteuid(), &entry, buffer, sizeof buffer, &found) == 0 && found != nullptr) {
    return found->pw_name;
  }
  return "uid-" + std::to_string(::geteuid());
}

std::string Invocation::RequestId() const {
  return options_.request_id.empty() ? Id::New().ToHex() : options_.request_id;
}

const std::string& Invocation::TargetOf(const std::string& process) const {
  const std::string& own = process == "auth" ? options_.auth_target : options_.billing_target;
  return own.empty() ? options_.target : own;
}

std::shared_ptr<grpc::Channel> Invocation::ChannelTo(const std::string& process) {
  std::shared_ptr<grpc::Channel>& channel = channels_[process];
  if (channel) return channel;
  const std::string target = TargetOf(process);
  std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
  // A unix socket needs no certificate: file permissions control access.
  if (rpc::TlsIsOn(options_.tls) && !target.starts_with("unix:")) {
    const auto files = rpc::TlsFiles::Open(options_.tls);
    if (!files.ok()) {
      ReportError("bad_option", files.error() + " (--tls-ca, --tls-cert, --tls-key)");
      return nullptr;
    }
    credentials = files->ForClientOf(process);
  }
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // Otherwise the resolver also queries a TXT record and waits for it.
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  rpc::KeepErrnoOfConnect();
  return channel = grpc::CreateCustomChannel(target, credentials, arguments);
}

void Invocation::Prepare(grpc::ClientContext& context) const {
  Prepare(context, int64_t{options_.timeout_seconds} * 1000);
}

void Invocation::Prepare(grpc::ClientContext& context, int64_t timeout_ms) const {
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(timeout_ms));
  std::string name = OperatorName();
  for (char& c : name) {
    if (c < ' ' || c > '~') c = '?';  // metadata is plain ASCII
  }
  context.AddMetadata(tollgate::admin::kOperatorKey, name);
}

grpc::Status Invocation::Send(const std::string& method, const Message& request, Message& response,
                              int64_t timeout_ms) {
  const Method called = Method::Of(method);
  const std::string path = called.path();
  grpc::ClientContext context;
  Prepare(context, timeout_ms);
  grpc::CompletionQueue queue;
  grpc::TemplatedGenericStub<MessageLite, MessageLite> stub(ChannelTo(called.process()));
  const auto call = stub.PrepareUnaryCall(&context, path, request, &queue);
  call->StartCall();
  grpc::Status status;
  call->Finish(&response, &status, nullptr);
  void* tag = nullptr;
  bool ok = false;
  queue.Next(&tag, &ok);
  return status;
}

bool Invocation::Call(const std::string& method, const Message& request, Message& response) {
  const std::string process = Method::Of(method).process();
  if (!ChannelTo(process)) return false;
  const grpc::Status status = Try(method, request, response);
  if (!status.ok()) ReportFailure(process, status);
  return status.ok();
}

grpc::Status Invocation::Repeat(const std::string& method, const Message& request,
                                Message& response) {
  const auto give_up =
      std::chrono::steady_clock::now() + std::chrono::seconds(options_.timeout_seconds);
  for (int64_t pause_ms = 100;; pause_ms = std::min<int64_t>(2 * pause_ms, 1000)) {
    const int64_t left_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                                give_up - std::chrono::steady_clock::now())
                                .count();
    grpc::Status status = Send(method, request, response, std::max<int64_t>(left_ms, 1));
    const bool unknown = status.error_code() == grpc::StatusCode::UNAVAILABLE ||
                         status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
    if (!unknown || left_ms <= pause_ms) return status;
    std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms));
  }
}

bool Invocation::CallMoney(const std::string& method, Message& request, Message& response,
                           const std::string& workspace, const std::string& what,
                           const std::string& ask) {
  const std::string process = Method::Of(method).process();
  if (!ChannelTo(process)) return false;
  RequestJournal::Request entry{RequestId(), workspace, what, SystemClock::Get().WallUs()};
  const auto earlier = journal_.FindSame(workspace, what);
  const bool goes_on = options_.request_id.empty() && earlier.has_value();
  if (goes_on) entry.id = earlier->id;
  const bool kept = goes_on || journal_.Keep(entry);
  if (options_.json) {
    std::fprintf(stderr, "%s\n", json::Writer().Text("request_id", entry.id).Done().c_str());
  } else {
    std::fprintf(stderr, "request id: %s%s\n", entry.id.c_str(),
                 goes_on ? " (of an earlier try whose result is unknown)" : "");
  }
  if (!kept && !options_.json) {
    std::fputs("The request id could not be kept in a file: note it.\n", stderr);
  }
  SetField(request, "request_id", {entry.id});
  grpc::Status status = Repeat(method, request, response);
  if (ReasonOf(status) == "WALLET_NOT_FOUND") {
    // The workspace was created before wallets existed, or its creation was interrupted.
    if (!OpenWallet(workspace)) {
      journal_.Remove(entry.id);
      return false;
    }
    status = Repeat(method, request, response);
  }
  const bool unknown = status.error_code() == grpc::StatusCode::UNAVAILABLE ||
                       status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED ||
                       status.error_code() == grpc::StatusCode::INTERNAL ||
                       status.error_code() == grpc::StatusCode::UNKNOWN;
  if (!unknown) journal_.Remove(entry.id);
  if (status.ok()) return true;
  if (!unknown) {
    ReportFailure(process, status);
    return false;
  }
  ReportError("unknown_result",
              process + " at " + TargetOf(process) +
                  " did not answer; whether this was executed is unknown. Ask with: tollgate " +
                  (ask.empty() ? "credit status " + entry.id : ask) + " -w " + workspace +
                  "; or repeat the command, which continues with the same request id");
  return false;
}

bool Invocation::OpenWallet(const std::string& workspace) {
  if (!ChannelTo("auth") || !ChannelTo("billing")) return false;
  admin::v1::GetWorkspaceRequest get;
  get.set_name("workspaces/" + workspace);
  admin::v1::Workspace known;
  const grpc::Status found = Repeat("WorkspaceService.GetWorkspace", get, known);
  if (found.error_code() == grpc::StatusCode::NOT_FOUND) {
    ReportError("not_found",
                "there is no workspace \"" + workspace + "\"; see: tollgate workspace list");
    return false;
  }
  if (!found.ok()) {
    ReportFailure("auth", found);
    return false;
  }
  admin::v1::OpenWalletRequest request;
  request.set_name("workspaces/" + workspace + "/balance");
  admin::v1::Balance balance;
  const grpc::Status status = Repeat("LedgerService.OpenWallet", request, balance);
  if (!status.ok()) ReportFailure("billing", status);
  return status.ok();
}

std::string Invocation::ReasonOf(const grpc::Status& status) {
  google::rpc::Status detail;
  google::rpc::ErrorInfo info;
  if (status.ok() || !detail.ParseFromString(status.error_details()) ||
      detail.code() != static_cast<int>(status.error_code()) || detail.details_size() == 0 ||
      !detail.details(0).UnpackTo(&info)) {
    return "";
  }
  return info.reason();
}

void Invocation::ReportFailure(const std::string& process, const grpc::Status& status) {
  if (const std::string reason = ReasonOf(status); !reason.empty()) {
    return ReportError(Lower(reason), status.error_message());
  }
  common::v1::ErrorDetail detail;
  if (!status.error_details().empty() && detail.ParseFromString(status.error_details()) &&
      !detail.message().empty()) {
    std::string message = detail.message();
    if (!detail.param().empty() && message.find(detail.param()) == std::string::npos) {
      message += " (" + detail.param() + ")";
    }
    return ReportError(detail.error().empty() ? "failed" : detail.error(), message);
  }
  const std::string& where = TargetOf(process);
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE) {
    ReportError(
        "unavailable",
        "cannot reach " + process + " at " + where +
            ": is it running, and is the certificate right? Set another address with --target or "
            "TOLLGATE_ADMIN, a certificate with --tls-ca, --tls-cert and --tls-key");
  } else if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
    ReportError("unimplemented",
                process + " at " + where +
                    " does not know this call: the target must be its host.admin_grpc_listen, and "
                    "its version not older than this one");
  } else if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
    ReportError("timeout", process + " at " + where + " did not respond within " +
                               std::to_string(options_.timeout_seconds) +
                               " s; a change may have been applied: repeat " +
                               "the command with the same --request-id");
  } else {
    ReportError(std::string(CodeName(status.error_code())), status.error_message().empty()
                                                                ? process + " refused the call"
                                                                : status.error_message());
  }
}

void Invocation::ShowRecord(const Table& table) const {
  std::fputs((options_.json ? table.RecordAsJson() : table.RecordAsText()).c_str(), stdout);
}

void Invocation::ShowList(const Table& table, const std::string& name,
                          const std::string& when_empty, const Counts& counts) const {
  std::fputs(
      (options_.json ? table.ListAsJson(name, counts) : table.ListAsText(when_empty)).c_str(),
      stdout);
}

void Invocation::ReportError(const std::string& code, const std::string& message) {
  if (options_.json) {
    const std::string error = json::Writer().Text("code", code).Text("message", message).Done();
    std::fprintf(stderr, "%s\n", json::Writer().Raw("error", error).Done().c_str());
  } else {
    std::fprintf(stderr, "tollgate: %s\n", message.c_str());
  }
  exit_code_ = code == "bad_option" ? 2 : 1;
}

}  // namespace tollgate::cli
