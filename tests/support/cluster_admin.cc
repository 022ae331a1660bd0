// Admin calls of tests, the same as those of the command line.
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <cstdio>

#include "common/rpc/tls.h"
#include "tests/support/cluster_member.h"
#include "tollgate/admin/v1/adjustments.grpc.pb.h"
#include "tollgate/admin/v1/ledger.grpc.pb.h"
#include "tollgate/admin/v1/usage.grpc.pb.h"
#include "tollgate/auth/v1/auth.grpc.pb.h"
#include "tollgate/billing/v1/billing.grpc.pb.h"
#include "tollgate/config/v1/config.pb.h"

namespace tollgate::test {
namespace {

namespace authpb = auth::v1;
namespace billpb = billing::v1;
namespace adminpb = tollgate::admin::v1;

std::string NextRequestId() {
  static std::atomic<int64_t> next{0};
  return "test-" + std::to_string(MonotonicUs()) + "-" + std::to_string(next.fetch_add(1));
}

// One call with a deadline; waits for a server that is starting.
template <typename Stub, typename Method, typename Request, typename Response>
grpc::Status Call(Stub& stub, Method method, const Request& request, Response& response,
                  int64_t seconds = 10) {
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(seconds));
  context.set_wait_for_ready(true);
  const grpc::Status status = (stub.*method)(&context, request, &response);
  if (!status.ok()) {
    std::fprintf(stderr, "admin call failed: %d %s\n", static_cast<int>(status.error_code()),
                 status.error_message().c_str());
  }
  return status;
}

void CopyLimits(const Limits& from, authpb::Limits* to) {
  to->set_requests_per_minute(from.requests_per_minute);
  to->set_tokens_per_minute(from.tokens_per_minute);
  to->set_concurrent_requests(from.concurrent_requests);
}

// "0.000012" as 12,000.
int64_t NanoUsd(const std::string& decimal) {
  const size_t dot = decimal.find('.');
  std::string digits = dot == std::string::npos ? "" : decimal.substr(dot + 1);
  digits.resize(9, '0');
  return std::stoll(decimal.substr(0, dot)) * 1'000'000'000 + std::stoll(digits);
}

ReceiptView ViewOf(const adminpb::Receipt& receipt) {
  ReceiptView view;
  view.request_id = receipt.name().substr(receipt.name().rfind('/') + 1);
  view.client_request_id = receipt.client_request_id();
  view.surface = receipt.surface();
  view.engine = receipt.engine();
  view.state = receipt.state();
  view.outcome = receipt.outcome();
  view.model = receipt.model();
  view.exact_cost_usd = receipt.exact_cost_usd();
  view.prompt_tokens = receipt.tokens().prompt_tokens();
  view.completion_tokens = receipt.tokens().completion_tokens();
  view.charged = NanoUsd(receipt.charged_usd());
  view.entries = receipt.entries_size();
  view.first_token_us = receipt.first_token_us();
  view.streamed = receipt.streamed();
  return view;
}

// Several addresses, with commas between them, are replicas.
std::shared_ptr<grpc::Channel> ChannelTo(
    std::string address, const std::shared_ptr<grpc::ChannelCredentials>& credentials) {
  grpc::ChannelArguments arguments;
  if (address.find(',') != std::string::npos) {
    address = "ipv4:" + address;
    arguments.SetLoadBalancingPolicyName("round_robin");
  }
  // Reconnect to restarted servers at once (docs/design/toolchain.md 2).
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  return grpc::CreateCustomChannel(address, credentials, arguments);
}

// certificates: as in ClusterOptions.
std::shared_ptr<grpc::ChannelCredentials> CredentialsFor(const std::string& certificates,
                                                         const std::string& service) {
  if (certificates.empty()) return grpc::InsecureChannelCredentials();
  config::v1::TlsConfig tls;
  tls.set_authority_file(certificates + "/authority.pem");
  tls.set_certificate_file(certificates + "/operators/admin/certificate.pem");
  tls.set_private_key_file(certificates + "/operators/admin/private_key.pem");
  const auto files = rpc::TlsFiles::Open(tls);
  if (!files.ok()) {
    std::fprintf(stderr, "no certificate for admin calls: %s\n", files.error().c_str());
    return grpc::InsecureChannelCredentials();
  }
  return files->ForClientOf(service);
}

}  // namespace

struct Cluster::Admin {
  Admin(const std::string& auth_address, const std::string& billing_address,
        const std::string& certificates)
      : Admin(ChannelTo(auth_address, CredentialsFor(certificates, "auth")),
              ChannelTo(billing_address, CredentialsFor(certificates, "billing"))) {}
  Admin(const std::shared_ptr<grpc::Channel>& to_auth,
        const std::shared_ptr<grpc::Channel>& to_billing)
      : auth(authpb::AuthAdminService::NewStub(to_auth)),
        billing(billpb::BillingAdminService::NewStub(to_billing)),
        books(adminpb::LedgerService::NewStub(to_billing)),
        usage(adminpb::UsageService::NewStub(to_billing)),
        credits(adminpb::AdjustmentService::NewStub(to_billing)) {}
  std::unique_ptr<authpb::AuthAdminService::Stub> auth;
  std::unique_ptr<billpb::BillingAdminService::Stub> billing;
  std::unique_ptr<adminpb::LedgerService::Stub> books;
  std::unique_ptr<adminpb::UsageService::Stub> usage;
  std::unique_ptr<adminpb::AdjustmentService::Stub> credits;
};

void Cluster::AdminDeleter::operator()(Admin* admin) const { delete admin; }

Cluster::Admin& Cluster::admin() {
  std::call_once(admin_made_, [this] {
    admin_.reset(new Admin(AdminGrpcOf("auth"), AdminBillings(), options_.certificates));
  });
  return *admin_;
}

std::string Cluster::NewWorkspace(const std::string& id, const Limits& limits) {
  authpb::CreateWorkspaceRequest request;
  request.set_request_id(NextRequestId());
  request.set_workspace_id(id);
  request.set_name(id.empty() ? "test" : id);
  request.set_actor("test");
  CopyLimits(limits, request.mutable_limits());
  authpb::CreateWorkspaceResponse response;
  Call(*admin().auth, &authpb::AuthAdminService::Stub::CreateWorkspace, request, response);
  adminpb::OpenWalletRequest open;
  open.set_name("workspaces/" + response.workspace().workspace_id() + "/balance");
  adminpb::Balance balance;
  Call(*admin().books, &adminpb::LedgerService::Stub::OpenWallet, open, balance);
  return response.workspace().workspace_id();
}

ApiKey Cluster::NewKey(const std::string& workspace_id, const KeyOptions& options) {
  authpb::CreateKeyRequest request;
  request.set_request_id(NextRequestId());
  request.set_workspace_id(workspace_id);
  request.set_name("test");
  request.set_expires_at_us(options.expires_at_us);
  for (const std::string& model : options.allowed_models) request.add_allowed_models(model);
  CopyLimits(options.limits, request.mutable_limits());
  if (options.monthly_quota_nano_usd) {
    request.set_monthly_quota_nano_usd(*options.monthly_quota_nano_usd);
  }
  request.set_actor("test");
  authpb::CreateKeyResponse response;
  Call(*admin().auth, &authpb::AuthAdminService::Stub::CreateKey, request, response);
  return {workspace_id, response.key().key_id(), response.secret()};
}

ApiKey Cluster::NewCustomer(int64_t nano_usd, const KeyOptions& options) {
  const std::string workspace = NewWorkspace();
  if (nano_usd > 0) AddCredit(workspace, nano_usd);
  return NewKey(workspace, options);
}

bool Cluster::AddCredit(const std::string& workspace_id, int64_t nano_usd) {
  billpb::AddCreditRequest request;
  request.set_request_id(NextRequestId());
  request.set_workspace_id(workspace_id);
  request.set_amount_nano_usd(nano_usd);
  request.set_actor("test");
  request.set_reason("test");
  billpb::AddCreditResponse response;
  return Call(*admin().billing, &billpb::BillingAdminService::Stub::AddCredit, request, response)
      .ok();
}

bool Cluster::TryAddCredit(const std::string& workspace_id, int64_t nano_usd,
                           const std::string& id) {
  billpb::AddCreditRequest request;
  request.set_request_id(id);
  request.set_workspace_id(workspace_id);
  request.set_amount_nano_usd(nano_usd);
  request.set_actor("test");
  request.set_reason("test");
  billpb::AddCreditResponse response;
  grpc::ClientContext context;
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(2));
  return admin().billing->AddCredit(&context, request, &response).ok();
}

bool Cluster::SetCap(const std::string& workspace_id, std::optional<int64_t> nano_usd) {
  billpb::SetCapRequest request;
  request.set_request_id(NextRequestId());
  request.set_workspace_id(workspace_id);
  if (nano_usd) request.set_cap_nano_usd(*nano_usd);
  request.set_actor("test");
  billpb::SetCapResponse response;
  return Call(*admin().billing, &billpb::BillingAdminService::Stub::SetCap, request, response).ok();
}

bool Cluster::SetKeyState(const std::string& key_id, KeyState state) {
  authpb::SetKeyStateRequest request;
  request.set_request_id(NextRequestId());
  request.set_key_id(key_id);
  request.set_state(static_cast<authpb::KeyState>(state));
  request.set_actor("test");
  authpb::SetKeyStateResponse response;
  return Call(*admin().auth, &authpb::AuthAdminService::Stub::SetKeyState, request, response).ok();
}

std::optional<ReceiptView> Cluster::Receipt(const std::string& workspace_id,
                                            const std::string& id) {
  adminpb::GetRequestRequest request;
  request.set_name("workspaces/" + workspace_id + "/requests/" + id);
  adminpb::Receipt receipt;
  if (!Call(*admin().usage, &adminpb::UsageService::Stub::GetRequest, request, receipt).ok()) {
    return std::nullopt;
  }
  return ViewOf(receipt);
}

std::optional<std::vector<ReceiptView>> Cluster::Receipts(const std::string& workspace_id) {
  std::vector<ReceiptView> views;
  adminpb::ListRequestsRequest request;
  request.set_parent("workspaces/" + workspace_id);
  request.set_page_size(1000);
  do {
    adminpb::ListRequestsResponse page;
    if (!Call(*admin().usage, &adminpb::UsageService::Stub::ListRequests, request, page).ok()) {
      return std::nullopt;
    }
    for (const adminpb::Receipt& receipt : page.receipts()) views.push_back(ViewOf(receipt));
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return views;
}

std::optional<std::vector<CreditView>> Cluster::Credits(const std::string& workspace_id) {
  std::vector<CreditView> views;
  adminpb::ListCreditGrantsRequest request;
  request.set_parent("workspaces/" + workspace_id);
  request.set_page_size(1000);
  do {
    adminpb::ListCreditGrantsResponse page;
    if (!Call(*admin().credits, &adminpb::AdjustmentService::Stub::ListCreditGrants, request, page)
             .ok()) {
      return std::nullopt;
    }
    for (const adminpb::CreditGrant& grant : page.credit_grants()) {
      views.push_back(
          {grant.name().substr(grant.name().rfind('/') + 1), NanoUsd(grant.amount_usd())});
    }
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return views;
}

int64_t Cluster::OpenDeadLetters() {
  billpb::ListDeadLettersRequest request;
  request.set_page_size(1000);
  billpb::ListDeadLettersResponse response;
  const auto status = Call(*admin().billing, &billpb::BillingAdminService::Stub::ListDeadLetters,
                           request, response);
  return status.ok() ? response.dead_letters_size() : -1;
}

std::optional<BalanceView> Cluster::Balance(const std::string& workspace_id) {
  billpb::GetBalanceRequest request;
  request.set_workspace_id(workspace_id);
  billpb::GetBalanceResponse response;
  if (!Call(*admin().billing, &billpb::BillingAdminService::Stub::GetBalance, request, response)
           .ok()) {
    return std::nullopt;
  }
  const billpb::Balance& balance = response.balance();
  return BalanceView{
      balance.available_nano_usd(),  balance.paid_nano_usd() + balance.granted_nano_usd(),
      balance.held_nano_usd(),       balance.month_spent_nano_usd(),
      balance.month_held_nano_usd(), balance.open_holds()};
}

LedgerCheck Cluster::VerifyLedger() {
  billpb::VerifyLedgerRequest request;
  billpb::VerifyLedgerResponse response;
  LedgerCheck check;
  if (!Call(*admin().billing, &billpb::BillingAdminService::Stub::VerifyLedger, request, response,
            /*seconds=*/300)
           .ok()) {
    check.violations = "the call failed";
    return check;
  }
  check.ok = response.ok();
  check.entries = response.entries();
  check.holds = response.holds();
  check.usage_records = response.usage_records();
  for (const std::string& violation : response.violations()) check.violations += violation + "\n";
  return check;
}

bool Cluster::WaitIdle(const std::string& workspace_id, int64_t timeout_ms) {
  return WaitUntil(
      [&] {
        const std::optional<BalanceView> balance = Balance(workspace_id);
        return balance && balance->held == 0 && balance->open_holds == 0;
      },
      timeout_ms, 10);
}

}  // namespace tollgate::test
