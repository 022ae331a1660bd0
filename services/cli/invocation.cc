#include "services/cli/invocation.h"

#include <google/rpc/error_details.pb.h>
#include <google/rpc/status.pb.h>
#include <grpcpp/create_channel.h>
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
#include "tollgate/common/v1/error.pb.h"

namespace tollgate::cli {
namespace {

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

std::shared_ptr<grpc::Channel> Invocation::Connect(const std::string& own_target,
                                                   const char* service) {
  const std::string target = TargetOf(own_target);
  std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
  // A unix socket needs no certificate: file permissions control access.
  if (rpc::TlsIsOn(options_.tls) && !target.starts_with("unix:")) {
    const auto files = rpc::TlsFiles::Open(options_.tls);
    if (!files.ok()) {
      ReportError("bad_option", files.error() + " (--tls-ca, --tls-cert, --tls-key)");
      return nullptr;
    }
    credentials = files->ForClientOf(service);
  }
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // Otherwise the resolver also queries a TXT record and waits for it.
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  rpc::KeepErrnoOfConnect();
  return grpc::CreateCustomChannel(target, credentials, arguments);
}

std::unique_ptr<admin::v1::WorkspaceService::Stub> Invocation::Workspaces() {
  const auto channel = Connect(options_.auth_target, "auth");
  return channel ? admin::v1::WorkspaceService::NewStub(channel) : nullptr;
}

std::unique_ptr<admin::v1::KeyService::Stub> Invocation::Keys() {
  const auto channel = Connect(options_.auth_target, "auth");
  return channel ? admin::v1::KeyService::NewStub(channel) : nullptr;
}

std::unique_ptr<admin::v1::AuditService::Stub> Invocation::Audit() {
  const auto channel = Connect(options_.auth_target, "auth");
  return channel ? admin::v1::AuditService::NewStub(channel) : nullptr;
}

std::unique_ptr<admin::v1::LimitService::Stub> Invocation::Limits() {
  const auto channel = Connect(options_.auth_target, "auth");
  return channel ? admin::v1::LimitService::NewStub(channel) : nullptr;
}

std::unique_ptr<admin::v1::LedgerVerificationService::Stub> Invocation::Verifications() {
  const auto channel = Connect(options_.billing_target, "billing");
  return channel ? admin::v1::LedgerVerificationService::NewStub(channel) : nullptr;
}

std::unique_ptr<admin::v1::PaymentService::Stub> Invocation::Payments() {
  const auto channel = Connect(options_.billing_target, "billing");
  return channel ? admin::v1::PaymentService::NewStub(channel) : nullptr;
}

std::unique_ptr<admin::v1::AlertService::Stub> Invocation::Alerts() {
  const auto channel = Connect(options_.billing_target, "billing");
  return channel ? admin::v1::AlertService::NewStub(channel) : nullptr;
}

std::unique_ptr<admin::v1::DeadLetterService::Stub> Invocation::DeadLetters() {
  const auto channel = Connect(options_.billing_target, "billing");
  return channel ? admin::v1::DeadLetterService::NewStub(channel) : nullptr;
}

std::unique_ptr<admin::v1::StatementService::Stub> Invocation::Statements() {
  const auto channel = Connect(options_.billing_target, "billing");
  return channel ? admin::v1::StatementService::NewStub(channel) : nullptr;
}

std::unique_ptr<admin::v1::UserService::Stub> Invocation::Users() {
  const auto channel = Connect(options_.auth_target, "auth");
  return channel ? admin::v1::UserService::NewStub(channel) : nullptr;
}

std::unique_ptr<admin::v1::InvitationService::Stub> Invocation::Invitations() {
  const auto channel = Connect(options_.auth_target, "auth");
  return channel ? admin::v1::InvitationService::NewStub(channel) : nullptr;
}

int64_t Invocation::NowSeconds() const { return SystemClock::Get().WallUs() / 1'000'000; }

std::unique_ptr<admin::v1::LedgerService::Stub> Invocation::Books() {
  const auto channel = Connect(options_.billing_target, "billing");
  return channel ? admin::v1::LedgerService::NewStub(channel) : nullptr;
}

std::unique_ptr<admin::v1::AdjustmentService::Stub> Invocation::Adjustments() {
  const auto channel = Connect(options_.billing_target, "billing");
  return channel ? admin::v1::AdjustmentService::NewStub(channel) : nullptr;
}

std::unique_ptr<admin::v1::UsageService::Stub> Invocation::Usage() {
  const auto channel = Connect(options_.billing_target, "billing");
  return channel ? admin::v1::UsageService::NewStub(channel) : nullptr;
}

void Invocation::Prepare(grpc::ClientContext& context, int64_t timeout_ms) const {
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(timeout_ms));
  std::string name = OperatorName();
  for (char& c : name) {
    if (c < ' ' || c > '~') c = '?';  // metadata is plain ASCII
  }
  context.AddMetadata(tollgate::admin::kOperatorKey, name);
}

bool Invocation::Call(const char* service, const CallFn& call) {
  grpc::ClientContext context;
  Prepare(context, int64_t{options_.timeout_seconds} * 1000);
  const grpc::Status status = call(context);
  if (!status.ok()) ReportFailure(service, status);
  return status.ok();
}

grpc::Status Invocation::Repeat(const CallFn& call) {
  const auto give_up =
      std::chrono::steady_clock::now() + std::chrono::seconds(options_.timeout_seconds);
  for (int64_t pause_ms = 100;; pause_ms = std::min<int64_t>(2 * pause_ms, 1000)) {
    const int64_t left_ms = std::chrono::duration_cast<std::chrono::milliseconds>(
                                give_up - std::chrono::steady_clock::now())
                                .count();
    grpc::ClientContext context;
    Prepare(context, std::max<int64_t>(left_ms, 1));
    grpc::Status status = call(context);
    const bool unknown = status.error_code() == grpc::StatusCode::UNAVAILABLE ||
                         status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED;
    if (!unknown || left_ms <= pause_ms) return status;
    std::this_thread::sleep_for(std::chrono::milliseconds(pause_ms));
  }
}

bool Invocation::CallMoney(const std::string& workspace, const std::string& what,
                           const MoneyFn& call, const std::string& ask) {
  RequestJournal::Request request{RequestId(), workspace, what, SystemClock::Get().WallUs()};
  const auto earlier = journal_.FindSame(workspace, what);
  const bool goes_on = options_.request_id.empty() && earlier.has_value();
  if (goes_on) request.id = earlier->id;
  const bool kept = goes_on || journal_.Keep(request);
  if (options_.json) {
    std::fprintf(stderr, "%s\n", json::Writer().Text("request_id", request.id).Done().c_str());
  } else {
    std::fprintf(stderr, "request id: %s%s\n", request.id.c_str(),
                 goes_on ? " (of an earlier try whose result is unknown)" : "");
  }
  if (!kept && !options_.json) {
    std::fputs("The request id could not be kept in a file: note it.\n", stderr);
  }
  const auto send = [&](grpc::ClientContext& context) { return call(context, request.id); };
  grpc::Status status = Repeat(send);
  if (ReasonOf(status) == "WALLET_NOT_FOUND") {
    // The workspace was created before wallets existed, or its creation was interrupted.
    if (!OpenWallet(workspace)) {
      journal_.Remove(request.id);
      return false;
    }
    status = Repeat(send);
  }
  const bool unknown = status.error_code() == grpc::StatusCode::UNAVAILABLE ||
                       status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED ||
                       status.error_code() == grpc::StatusCode::INTERNAL ||
                       status.error_code() == grpc::StatusCode::UNKNOWN;
  if (!unknown) journal_.Remove(request.id);
  if (status.ok()) return true;
  if (!unknown) {
    ReportFailure("billing", status);
    return false;
  }
  ReportError("unknown_result",
              "billing at " + TargetOf(options_.billing_target) +
                  " did not answer; whether this was executed is unknown. Ask with: tollgate " +
                  (ask.empty() ? "credit status " + request.id : ask) + " -w " + workspace +
                  "; or repeat the command, which continues with the same request id");
  return false;
}

bool Invocation::OpenWallet(const std::string& workspace) {
  const auto workspaces = Workspaces();
  const auto books = Books();
  if (!workspaces || !books) return false;
  admin::v1::GetWorkspaceRequest get;
  get.set_name("workspaces/" + workspace);
  admin::v1::Workspace known;
  const grpc::Status found = Repeat([&](grpc::ClientContext& context) {
    return workspaces->GetWorkspace(&context, get, &known);
  });
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
  const grpc::Status status = Repeat(
      [&](grpc::ClientContext& context) { return books->OpenWallet(&context, request, &balance); });
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

void Invocation::ReportFailure(const char* service, const grpc::Status& status) {
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
  const std::string where = TargetOf(std::string_view(service) == "auth" ? options_.auth_target
                                                                         : options_.billing_target);
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE) {
    ReportError("unavailable",
                std::string("cannot reach ") + service + " at " + where +
                    ": is it running, and is the certificate right? Set another address with "
                    "--target or TOLLGATE_ADMIN, a certificate with --tls-ca, --tls-cert and "
                    "--tls-key");
  } else if (status.error_code() == grpc::StatusCode::UNIMPLEMENTED) {
    ReportError("unimplemented",
                std::string(service) + " at " + where +
                    " does not know this call: the target must be its host.admin_grpc_listen, and "
                    "its version not older than this one");
  } else if (status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED) {
    ReportError("timeout", std::string(service) + " at " + where + " did not respond within " +
                               std::to_string(options_.timeout_seconds) +
                               " s; a change may have been applied: repeat " +
                               "the command with the same --request-id");
  } else {
    ReportError(std::string(CodeName(status.error_code())),
                status.error_message().empty() ? std::string(service) + " refused the call"
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
