#include "services/auth/auth_module.h"

#include <grpcpp/server_builder.h>

#include <thread>

#include "common/base/try.h"
#include "common/keys/key_format.h"
#include "common/observability/disk_metrics.h"
#include "common/observability/log.h"
#include "services/auth/rpc/admin_rpc.h"
#include "services/auth/rpc/auth_rpc.h"
#include "services/auth/rpc/billing_audit.h"
#include "services/auth/rpc/callers.h"
#include "services/auth/rpc/limit_rpc.h"

namespace tollgate {
namespace {

constexpr int kDefaultThreads = 4;
constexpr size_t kMinPepperBytes = 32;
// How long to retry a database that is still starting.
constexpr int64_t kOpenTimeoutUs = 15'000'000;
constexpr auto kOpenRetryPeriod = std::chrono::milliseconds(250);

class AuthModule : public Module {
 public:
  AuthModule(HostContext& context, const config::v1::AuthSettings& settings,
             const config::v1::TargetsConfig* targets)
      : context_(context),
        clock_(context.clock),
        reaches_billing_(targets == nullptr || !targets->billing_admin().empty()),
        reaches_limiter_(targets == nullptr || !targets->ratelimit().empty()),
        threads_(settings.sql().connections() > 0 ? settings.sql().connections() : kDefaultThreads),
        rpc_(slot_),
        workspaces_(auth::MakeWorkspaceAdmin(slot_)),
        keys_(auth::MakeKeyAdmin(slot_)),
        audit_(auth::MakeAuditAdmin(slot_)),
        limits_(auth::MakeLimitAdmin(slot_)),
        front_(auth::MakeFrontRpc(slot_)) {
    options_.database.url = settings.sql().url();
    disk_ = metrics::ReportDatabaseDisk("auth", options_.database.url);
    // One connection more than threads, for the change feed.
    options_.database.connections = threads_ + 1;
    options_.pepper = settings.pepper();
    options_.brand = settings.brand().empty() ? "tollgate" : settings.brand();
    for (const auto& retired : settings.retired_peppers()) {
      options_.retired_peppers.push_back(retired.pepper());
    }
    has_seal_key_ = !settings.people().seal_key_file().empty();
    backend_options_.policy = {.refusals_per_minute = settings.key_policy().refusals_per_minute(),
                               .addresses_per_hour = settings.key_policy().addresses_per_hour()};
    backend_options_.self_service = settings.people().self_service_workspaces();
    backend_options_.housekeeping.checkpoint_file = settings.audit_checkpoint_file();
    backend_options_.housekeeping.checkpoint_key_file = settings.audit_checkpoint_key_file();
    if (settings.audit_checkpoint_seconds() > 0) {
      backend_options_.housekeeping.checkpoint_ms =
          int64_t{settings.audit_checkpoint_seconds()} * 1000;
    }
    if (settings.vouch_seconds() > 0) {
      backend_options_.feed.vouch_us = int64_t{settings.vouch_seconds()} * 1'000'000;
    }
  }
  ~AuthModule() override { Stop(); }

  std::string_view name() const override { return "auth"; }
  void Register(grpc::ServerBuilder& builder) override { builder.RegisterService(&rpc_); }
  std::span<const rpc::MethodCallers> Callers() const override { return auth::kCallers; }
  std::span<const rpc::MethodCallers> AdminCallers() const override { return auth::kAdminCallers; }
  void RegisterAdmin(grpc::ServerBuilder& builder) override {
    for (const auto& service : {&workspaces_, &keys_, &audit_, &limits_, &front_}) {
      builder.RegisterService(service->get());
    }
  }

  Result<void> Start() override {
    if (options_.pepper.size() < kMinPepperBytes) {
      return Internal("auth.pepper must have at least 32 characters");
    }
    for (const std::string& pepper : options_.retired_peppers) {
      if (pepper.size() < kMinPepperBytes || pepper == options_.pepper) {
        return Internal(
            "auth.retired_peppers must have at least 32 characters each and not have auth.pepper");
      }
    }
    if (!options_.retired_peppers.empty() && !has_seal_key_) {
      return Internal(
          "auth.retired_peppers requires auth.people.seal_key_file: without it, second steps are "
          "sealed with a key derived from auth.pepper and would be lost with it");
    }
    if (!IsBrand(options_.brand)) {
      return Internal("auth.brand must be lower-case letters, digits and inner hyphens");
    }
    TRY(auto store, Open());
    if (reaches_billing_) OpenBilling();
    if (reaches_limiter_) OpenLimiter();
    backend_ =
        std::make_shared<auth::AuthBackend>(std::move(store), threads_, clock_, backend_options_);
    TRY(backend_->Start());
    slot_ = backend_.get();
    return {};
  }
  bool Ready() const override {
    const auth::AuthBackend* backend = slot_.load();
    return backend && backend_->feed().healthy();
  }
  // Watch streams do not end by themselves.
  void Drain(int64_t deadline_us) override {
    if (auth::AuthBackend* backend = slot_.load()) backend->CloseStreams();
  }
  void Stop() override {
    slot_ = nullptr;
    if (backend_) backend_->Stop();
    if (billing_ || limiter_) {
      context_.loops.loop(0).RunAndWait([this] {
        billing_.reset();
        billing_replicas_.reset();
        limiter_.reset();
      });
    }
  }

 private:
  Result<std::unique_ptr<auth::AuthStore>> Open() {
    const int64_t deadline_us = clock_.MonotonicUs() + kOpenTimeoutUs;
    while (true) {
      auto store = auth::AuthStore::Open(options_, clock_);
      if (store || store.error().id != ErrorId::kServiceUnavailable ||
          clock_.MonotonicUs() >= deadline_us) {
        return store;
      }
      log::Warn("key database unreachable; retrying", {{"error", store.error().ToString()}});
      std::this_thread::sleep_for(kOpenRetryPeriod);
    }
  }

  // The clients are created and destroyed on the first loop; running calls keep them alive.
  void OpenBilling() {
    Loop& loop = context_.loops.loop(0);
    loop.RunAndWait([&] {
      billing_ = context_.clients.BillingAdmin(loop);
      billing_replicas_ = context_.clients.AdminReplicas(AdminTarget::kBilling, loop);
    });
    backend_options_.audit_sources = {auth::BillingAuditSource(loop, billing_replicas_)};
    auth::Peers& peers = backend_options_.peers;
    peers.open_wallet = [&loop, weak = std::weak_ptr<BillingAdminClient>(billing_)](
                            std::string workspace,
                            std::function<void(admin::AdminResult<void>)> done) {
      loop.Post([&loop, weak, workspace = std::move(workspace), done = std::move(done)]() mutable {
        std::shared_ptr<BillingAdminClient> open = weak.lock();
        if (!open) return done(Fail{admin::FromError(Unavailable("auth is not running").error)});
        loop.Spawn(OpenWallet(std::move(open), std::move(workspace), std::move(done)));
      });
    };
    peers.prepare_close =
        AskOn<std::string, bool>(loop, billing_, &BillingAdminClient::PrepareClose);
    peers.key_spend = AskOn<billing::v1::ListKeySpendRequest, billing::v1::ListKeySpendResponse>(
        loop, billing_, &BillingAdminClient::ListKeySpend);
  }
  void OpenLimiter() {
    Loop& loop = context_.loops.loop(0);
    loop.RunAndWait([&] { limiter_ = context_.clients.RateLimit(loop); });
    backend_options_.peers.limit_use =
        AskOn<ratelimit::v1::GetUseRequest, ratelimit::v1::GetUseResponse>(
            loop, limiter_, &RateLimitClient::GetUse);
  }
  template <typename Request, typename Response, typename Client>
  static auth::Peers::Ask<Request, Response> AskOn(
      Loop& loop, const std::shared_ptr<Client>& client,
      Task<Result<Response>> (Client::*method)(Request)) {
    return [&loop, weak = std::weak_ptr<Client>(client), method](
               Request request, std::function<void(Result<Response>)> done) {
      loop.Post(
          [&loop, weak, method, request = std::move(request), done = std::move(done)]() mutable {
            std::shared_ptr<Client> open = weak.lock();
            if (!open) return done(Unavailable("auth is not running"));
            loop.Spawn(Call(std::move(open), method, std::move(request), std::move(done)));
          });
    };
  }
  template <typename Request, typename Response, typename Client>
  static Task<void> Call(std::shared_ptr<Client> client,
                         Task<Result<Response>> (Client::*method)(Request), Request request,
                         std::function<void(Result<Response>)> done) {
    done(co_await (client.get()->*method)(std::move(request)));
  }
  static Task<void> OpenWallet(std::shared_ptr<BillingAdminClient> client, std::string workspace,
                               std::function<void(admin::AdminResult<void>)> done) {
    const auto opened = co_await client->OpenWallet(workspace);
    if (opened) {
      done({});
      co_return;
    }
    admin::Failure failure = admin::FromError(opened.error());
    failure.message = "the workspace " + workspace +
                      " was created, but billing did not open its wallet: repeat the call with the "
                      "same request_id";
    done(Fail{std::move(failure)});
  }

  HostContext& context_;
  const Clock& clock_;
  const bool reaches_billing_, reaches_limiter_;
  const int threads_;
  auth::StoreOptions options_;
  std::shared_ptr<void> disk_;  // the metrics of the database's disk
  bool has_seal_key_ = false;
  auth::BackendSlot slot_{nullptr};
  auth::AuthRpc rpc_;
  const std::unique_ptr<grpc::Service> workspaces_, keys_, audit_, limits_, front_;
  auth::BackendOptions backend_options_;
  std::shared_ptr<BillingAdminClient> billing_;  // null: not configured, or before Start
  std::shared_ptr<rpc::Replicas> billing_replicas_;
  std::shared_ptr<RateLimitClient> limiter_;    // as billing_
  std::shared_ptr<auth::AuthBackend> backend_;  // null before Start
};

}  // namespace

std::unique_ptr<Module> MakeAuthModule(HostContext& context,
                                       const config::v1::AuthSettings& settings,
                                       const config::v1::TargetsConfig* targets) {
  return std::make_unique<AuthModule>(context, settings, targets);
}

}  // namespace tollgate
