#include "services/cli/invocation.h"

#include <google/rpc/error_details.pb.h>
#include <google/rpc/status.pb.h>
#include <grpcpp/create_channel.h>
#include <grpcpp/security/credentials.h>

#include <chrono>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <string_view>

#include "common/base/clock.h"
#include "common/base/id.h"
#include "common/json/writer.h"
#include "tollgate/common/v1/error.pb.h"

namespace tollgate::cli {
namespace {

bool ReadFile(const std::string& path, std::string& into) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return false;
  into.assign(std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>());
  return true;
}

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

}  // namespace

std::string Invocation::RequestId() const {
  return options_.request_id.empty() ? Id::New().ToHex() : options_.request_id;
}

std::shared_ptr<grpc::Channel> Invocation::Connect(const std::string& own_target) {
  std::shared_ptr<grpc::ChannelCredentials> credentials = grpc::InsecureChannelCredentials();
  if (!options_.authority_file.empty()) {
    grpc::SslCredentialsOptions tls;
    for (const auto& [path, into] : {std::pair(&options_.authority_file, &tls.pem_root_certs),
                                     std::pair(&options_.certificate_file, &tls.pem_cert_chain),
                                     std::pair(&options_.private_key_file, &tls.pem_private_key)}) {
      if (!path->empty() && !ReadFile(*path, *into)) {
        ReportError("bad_option", "cannot read " + *path);
        return nullptr;
      }
    }
    credentials = grpc::SslCredentials(tls);
  }
  grpc::ChannelArguments arguments;
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // Otherwise the resolver also queries a TXT record and waits for it.
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  return grpc::CreateCustomChannel(TargetOf(own_target), credentials, arguments);
}

std::unique_ptr<auth::v1::AuthAdminService::Stub> Invocation::Auth() {
  const auto channel = Connect(options_.auth_target);
  return channel ? auth::v1::AuthAdminService::NewStub(channel) : nullptr;
}

std::unique_ptr<billing::v1::BillingAdminService::Stub> Invocation::Billing() {
  const auto channel = Connect(options_.billing_target);
  return channel ? billing::v1::BillingAdminService::NewStub(channel) : nullptr;
}

std::unique_ptr<admin::v1::PaymentService::Stub> Invocation::Payments() {
  const auto channel = Connect(options_.billing_target);
  return channel ? admin::v1::PaymentService::NewStub(channel) : nullptr;
}

std::unique_ptr<admin::v1::AlertService::Stub> Invocation::Alerts() {
  const auto channel = Connect(options_.billing_target);
  return channel ? admin::v1::AlertService::NewStub(channel) : nullptr;
}

int64_t Invocation::NowSeconds() const { return SystemClock::Get().WallUs() / 1'000'000; }

bool Invocation::Call(const char* service,
                      const std::function<grpc::Status(grpc::ClientContext&)>& call) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() +
                       std::chrono::seconds(options_.timeout_seconds));
  // Counts over local sockets only; elsewhere the client certificate names the operator.
  std::string actor = options_.actor.substr(0, 100);
  for (char& c : actor) {
    if (c < ' ' || c > '~') c = '?';  // metadata is plain ASCII
  }
  context.AddMetadata("tollgate-operator", actor);
  const grpc::Status status = call(context);
  if (status.ok()) return true;
  // The admin services have details of their own, whose first is the reason.
  if (google::rpc::Status rich; !status.error_details().empty() &&
                                rich.ParseFromString(status.error_details()) &&
                                rich.code() == static_cast<int>(status.error_code())) {
    google::rpc::ErrorInfo info;
    const bool known = rich.details_size() > 0 && rich.details(0).UnpackTo(&info);
    ReportError(known ? info.reason() : std::string(CodeName(status.error_code())), rich.message());
    return false;
  }
  common::v1::ErrorDetail detail;
  if (!status.error_details().empty() && detail.ParseFromString(status.error_details()) &&
      !detail.message().empty()) {
    std::string message = detail.message();
    if (!detail.param().empty() && message.find(detail.param()) == std::string::npos) {
      message += " (" + detail.param() + ")";
    }
    ReportError(detail.error().empty() ? "failed" : detail.error(), message);
    return false;
  }
  const std::string where = TargetOf(std::string_view(service) == "auth" ? options_.auth_target
                                                                         : options_.billing_target);
  if (status.error_code() == grpc::StatusCode::UNAVAILABLE) {
    ReportError("unavailable",
                std::string("cannot reach ") + service + " at " + where +
                    ": is it running? Set another address with --target or TOLLGATE_ADMIN");
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
  return false;
}

void Invocation::ShowRecord(const Table& table) const {
  std::fputs((options_.json ? table.RecordAsJson() : table.RecordAsText()).c_str(), stdout);
}

void Invocation::ShowList(const Table& table, const std::string& name,
                          const std::string& when_empty) const {
  std::fputs((options_.json ? table.ListAsJson(name) : table.ListAsText(when_empty)).c_str(),
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
