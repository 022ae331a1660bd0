// Admin calls of tests, the same as those of the command line.
#include <grpcpp/grpcpp.h>

#include <atomic>
#include <chrono>
#include <cstdio>

#include "common/base/clock.h"
#include "common/base/crypto.h"
#include "common/money/money.h"
#include "common/rpc/tls.h"
#include "tests/support/cluster_member.h"
#include "tollgate/admin/v1/adjustments.grpc.pb.h"
#include "tollgate/admin/v1/dead_letters.grpc.pb.h"
#include "tollgate/admin/v1/keys.grpc.pb.h"
#include "tollgate/admin/v1/ledger.grpc.pb.h"
#include "tollgate/admin/v1/limits.grpc.pb.h"
#include "tollgate/admin/v1/usage.grpc.pb.h"
#include "tollgate/admin/v1/verifications.grpc.pb.h"
#include "tollgate/admin/v1/workspaces.grpc.pb.h"
#include "tollgate/common/v1/identity.pb.h"
#include "tollgate/config/v1/config.pb.h"

namespace tollgate::test {
namespace {

namespace pb = tollgate::admin::v1;

std::string NextRequestId() {
  static std::atomic<int64_t> next{0};
  return "test-" + std::to_string(MonotonicUs()) + "-" + std::to_string(next.fetch_add(1));
}

// Over plain TCP, calls as the operator of the installation who has just signed in; a client
// certificate names its caller itself.
void SpeakAsOperator(grpc::ClientContext& context) {
  common::v1::Identity identity;
  identity.set_actor("operator:test");
  identity.set_installation(true);
  identity.set_signed_in_us(SystemClock::Get().WallUs());
  context.AddMetadata("tollgate-identity-bin", identity.SerializeAsString());
}

// One call with a deadline; waits for a server that is starting.
template <typename Stub, typename Method, typename Request, typename Response>
grpc::Status Call(Stub& stub, Method method, const Request& request, Response& response,
                  int64_t seconds = 10) {
  grpc::ClientContext context;
  SpeakAsOperator(context);
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(seconds));
  context.set_wait_for_ready(true);
  const grpc::Status status = (stub.*method)(&context, request, &response);
  if (!status.ok()) {
    std::fprintf(stderr, "admin call failed: %d %s\n", static_cast<int>(status.error_code()),
                 status.error_message().c_str());
  }
  return status;
}

template <typename Message>
void CopyLimits(const Limits& from, Message* to) {
  to->set_requests_per_minute(from.requests_per_minute);
  to->set_tokens_per_minute(from.tokens_per_minute);
  to->set_concurrent_requests(from.concurrent_requests);
}

int64_t NanoUsd(const std::string& decimal) { return ParseDecimalUsdToNano(decimal).value_or(-1); }

std::string LastPart(const std::string& name) { return name.substr(name.rfind('/') + 1); }

ReceiptView ViewOf(const pb::Receipt& receipt) {
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
  view.reasoning_tokens = receipt.tokens().reasoning_tokens();
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
      : workspaces(pb::WorkspaceService::NewStub(to_auth)),
        keys(pb::KeyService::NewStub(to_auth)),
        limits(pb::LimitService::NewStub(to_auth)),
        books(pb::LedgerService::NewStub(to_billing)),
        dead_letters(pb::DeadLetterService::NewStub(to_billing)),
        verifications(pb::LedgerVerificationService::NewStub(to_billing)),
        usage(pb::UsageService::NewStub(to_billing)),
        credits(pb::AdjustmentService::NewStub(to_billing)) {}
  std::unique_ptr<pb::WorkspaceService::Stub> workspaces;
  std::unique_ptr<pb::KeyService::Stub> keys;
  std::unique_ptr<pb::LimitService::Stub> limits;
  std::unique_ptr<pb::LedgerService::Stub> books;
  std::unique_ptr<pb::DeadLetterService::Stub> dead_letters;
  std::unique_ptr<pb::LedgerVerificationService::Stub> verifications;
  std::unique_ptr<pb::UsageService::Stub> usage;
  std::unique_ptr<pb::AdjustmentService::Stub> credits;
};

void Cluster::AdminDeleter::operator()(Admin* admin) const { delete admin; }

Cluster::Admin& Cluster::admin() {
  std::call_once(admin_made_, [this] {
    admin_.reset(new Admin(AdminGrpcOf("auth"), AdminBillings(), options_.certificates));
  });
  return *admin_;
}

std::string Cluster::NewWorkspace(const std::string& id, const Limits& limits) {
  pb::CreateWorkspaceRequest request;
  request.set_request_id(NextRequestId());
  request.set_workspace_id(id);
  request.mutable_workspace()->set_display_name(id.empty() ? "test" : id);
  pb::Workspace workspace;
  Call(*admin().workspaces, &pb::WorkspaceService::Stub::CreateWorkspace, request, workspace);
  pb::UpdateLimitsRequest update;
  CopyLimits(limits, update.mutable_limits()->mutable_workspace_limits());
  if (update.limits().workspace_limits().ByteSizeLong() > 0) {
    update.mutable_limits()->set_name(workspace.name() + "/limits");
    pb::Limits set;
    Call(*admin().limits, &pb::LimitService::Stub::UpdateLimits, update, set);
  }
  pb::OpenWalletRequest open;
  open.set_name(workspace.name() + "/balance");
  pb::Balance balance;
  Call(*admin().books, &pb::LedgerService::Stub::OpenWallet, open, balance);
  return LastPart(workspace.name());
}

ApiKey Cluster::NewKey(const std::string& workspace_id, const KeyOptions& options) {
  pb::CreateKeyRequest request;
  request.set_request_id(NextRequestId());
  request.set_parent("workspaces/" + workspace_id);
  pb::Key& key = *request.mutable_key();
  key.set_display_name("test");
  if (options.expires_at_us > 0) {
    key.mutable_expire_time()->set_seconds(options.expires_at_us / 1'000'000);
    key.mutable_expire_time()->set_nanos(
        static_cast<int32_t>(options.expires_at_us % 1'000'000 * 1000));
  }
  for (const std::string& model : options.allowed_models) key.add_allowed_models(model);
  CopyLimits(options.limits, key.mutable_limits());
  if (options.monthly_quota_nano_usd) {
    key.set_monthly_quota_usd(NanoToDecimalUsd(*options.monthly_quota_nano_usd));
  }
  pb::CreateKeyResponse response;
  Call(*admin().keys, &pb::KeyService::Stub::CreateKey, request, response);
  return {workspace_id, LastPart(response.key().name()), response.secret()};
}

bool Cluster::ImportKeys(const std::string& workspace_id, const std::vector<std::string>& secrets) {
  pb::ImportKeysRequest request;
  request.set_request_id(NextRequestId());
  request.set_parent("workspaces/" + workspace_id);
  for (const std::string& secret : secrets) {
    pb::ImportedKey& key = *request.add_keys();
    key.mutable_key()->set_display_name("test");
    key.set_sha256(Sha256(secret));
  }
  pb::ImportKeysResponse response;
  return Call(*admin().keys, &pb::KeyService::Stub::ImportKeys, request, response, 60).ok();
}

ApiKey Cluster::NewCustomer(int64_t nano_usd, const KeyOptions& options) {
  const std::string workspace = NewWorkspace();
  if (nano_usd > 0) AddCredit(workspace, nano_usd);
  return NewKey(workspace, options);
}

namespace {

pb::CreateCreditGrantRequest PaidCredit(const std::string& workspace_id, int64_t nano_usd,
                                        const std::string& id) {
  pb::CreateCreditGrantRequest request;
  request.set_request_id(id);
  request.set_parent("workspaces/" + workspace_id);
  request.mutable_credit_grant()->set_amount_usd(NanoToDecimalUsd(nano_usd));
  request.mutable_credit_grant()->set_paid(true);
  request.mutable_credit_grant()->set_reason("test");
  return request;
}

}  // namespace

bool Cluster::AddCredit(const std::string& workspace_id, int64_t nano_usd) {
  pb::CreditGrant grant;
  return Call(*admin().credits, &pb::AdjustmentService::Stub::CreateCreditGrant,
              PaidCredit(workspace_id, nano_usd, NextRequestId()), grant)
      .ok();
}

bool Cluster::TryAddCredit(const std::string& workspace_id, int64_t nano_usd,
                           const std::string& id) {
  pb::CreditGrant grant;
  grpc::ClientContext context;
  SpeakAsOperator(context);
  context.set_deadline(std::chrono::system_clock::now() + std::chrono::seconds(2));
  return admin()
      .credits->CreateCreditGrant(&context, PaidCredit(workspace_id, nano_usd, id), &grant)
      .ok();
}

bool Cluster::SetCap(const std::string& workspace_id, std::optional<int64_t> nano_usd) {
  pb::UpdateCapRequest request;
  request.set_request_id(NextRequestId());
  request.mutable_cap()->set_name("workspaces/" + workspace_id + "/cap");
  if (nano_usd) request.mutable_cap()->set_cap_usd(NanoToDecimalUsd(*nano_usd));
  request.mutable_update_mask()->add_paths("cap_usd");
  pb::Cap cap;
  return Call(*admin().books, &pb::LedgerService::Stub::UpdateCap, request, cap).ok();
}

bool Cluster::Freeze(const std::string& workspace_id) {
  pb::FreezeWorkspaceRequest request;
  request.set_name("workspaces/" + workspace_id);
  request.set_reason("test");
  request.set_request_id(NextRequestId());
  pb::Balance balance;
  return Call(*admin().books, &pb::LedgerService::Stub::FreezeWorkspace, request, balance).ok();
}

bool Cluster::SetKeyState(const ApiKey& key, KeyState state) {
  const auto change = [&](auto request, auto method) {
    request.set_name("workspaces/" + key.workspace_id + "/keys/" + key.key_id);
    request.set_request_id(NextRequestId());
    pb::Key changed;
    return Call(*admin().keys, method, request, changed).ok();
  };
  switch (state) {
    case KeyState::kActive:
      return change(pb::EnableKeyRequest(), &pb::KeyService::Stub::EnableKey);
    case KeyState::kDisabled:
      return change(pb::DisableKeyRequest(), &pb::KeyService::Stub::DisableKey);
    case KeyState::kRevoked:
      return change(pb::RevokeKeyRequest(), &pb::KeyService::Stub::RevokeKey);
  }
  return false;
}

std::optional<ReceiptView> Cluster::Receipt(const std::string& workspace_id,
                                            const std::string& id) {
  pb::GetRequestRequest request;
  request.set_name("workspaces/" + workspace_id + "/requests/" + id);
  pb::Receipt receipt;
  if (!Call(*admin().usage, &pb::UsageService::Stub::GetRequest, request, receipt).ok()) {
    return std::nullopt;
  }
  return ViewOf(receipt);
}

std::optional<std::vector<ReceiptView>> Cluster::Receipts(const std::string& workspace_id) {
  std::vector<ReceiptView> views;
  pb::ListRequestsRequest request;
  request.set_parent("workspaces/" + workspace_id);
  request.set_page_size(1000);
  do {
    pb::ListRequestsResponse page;
    if (!Call(*admin().usage, &pb::UsageService::Stub::ListRequests, request, page).ok()) {
      return std::nullopt;
    }
    for (const pb::Receipt& receipt : page.receipts()) views.push_back(ViewOf(receipt));
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return views;
}

std::optional<std::vector<CreditView>> Cluster::Credits(const std::string& workspace_id) {
  std::vector<CreditView> views;
  pb::ListCreditGrantsRequest request;
  request.set_parent("workspaces/" + workspace_id);
  request.set_page_size(1000);
  do {
    pb::ListCreditGrantsResponse page;
    if (!Call(*admin().credits, &pb::AdjustmentService::Stub::ListCreditGrants, request, page)
             .ok()) {
      return std::nullopt;
    }
    for (const pb::CreditGrant& grant : page.credit_grants()) {
      views.push_back(
          {grant.name().substr(grant.name().rfind('/') + 1), NanoUsd(grant.amount_usd())});
    }
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return views;
}

int64_t Cluster::OpenDeadLetters() {
  int64_t count = 0;
  pb::ListDeadLettersRequest request;
  request.set_page_size(200);
  do {
    pb::ListDeadLettersResponse page;
    if (!Call(*admin().dead_letters, &pb::DeadLetterService::Stub::ListDeadLetters, request, page)
             .ok()) {
      return -1;
    }
    count += page.dead_letters_size();
    request.set_page_token(page.next_page_token());
  } while (!request.page_token().empty());
  return count;
}

std::optional<BalanceView> Cluster::Balance(const std::string& workspace_id) {
  pb::GetBalanceRequest request;
  request.set_name("workspaces/" + workspace_id + "/balance");
  pb::Balance balance;
  if (!Call(*admin().books, &pb::LedgerService::Stub::GetBalance, request, balance).ok()) {
    return std::nullopt;
  }
  return BalanceView{NanoUsd(balance.available_usd()),
                     NanoUsd(balance.paid_usd()) + NanoUsd(balance.granted_usd()),
                     NanoUsd(balance.held_usd()),
                     NanoUsd(balance.month_spent_usd()),
                     NanoUsd(balance.month_held_usd()),
                     balance.open_holds()};
}

LedgerCheck Cluster::VerifyLedger() {
  using Stub = pb::LedgerVerificationService::Stub;
  pb::CreateLedgerVerificationRequest request;
  request.set_request_id(NextRequestId());
  pb::LedgerVerification found;
  LedgerCheck check;
  check.violations = "the call failed";
  if (!Call(*admin().verifications, &Stub::CreateLedgerVerification, request, found).ok()) {
    return check;
  }
  pb::GetLedgerVerificationRequest get;
  get.set_name(found.name());
  const bool ended = WaitUntil(
      [&] {
        return Call(*admin().verifications, &Stub::GetLedgerVerification, get, found).ok() &&
               found.state() != pb::LEDGER_VERIFICATION_STATE_RUNNING;
      },
      300'000, 20);
  if (!ended) return check;
  check.violations = found.state() == pb::LEDGER_VERIFICATION_STATE_BROKEN_OFF ? "broken off" : "";
  check.ok = found.state() == pb::LEDGER_VERIFICATION_STATE_CONSISTENT;
  check.entries = found.entries();
  check.holds = found.holds();
  check.usage_records = found.usage_records();
  for (const std::string& violation : found.violations()) check.violations += violation + "\n";
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
