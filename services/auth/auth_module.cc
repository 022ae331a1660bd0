#include "services/auth/auth_module.h"

#include <grpcpp/server_builder.h>

#include <thread>

#include "common/keys/key_format.h"
#include "common/observability/log.h"
#include "services/auth/rpc/admin_rpc.h"
#include "services/auth/rpc/auth_rpc.h"
#include "services/auth/rpc/callers.h"
#include "services/auth/rpc/limit_rpc.h"
#include "services/auth/rpc/people_part.h"

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
        threads_(settings.sql().connections() > 0 ? settings.sql().connections() : kDefaultThreads),
        rpc_(slot_),
        admin_rpc_(slot_),
        workspaces_(auth::MakeWorkspaceAdmin(slot_)),
        keys_(auth::MakeKeyAdmin(slot_)),
        audit_(auth::MakeAuditAdmin(slot_)),
        limits_(auth::MakeLimitAdmin(slot_)),
        people_(settings, context.clock) {
    options_.database.url = settings.sql().url();
    // One more for the change feed.
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
    builder.RegisterService(&admin_rpc_);
    for (const auto& service : {&workspaces_, &keys_, &audit_, &limits_}) {
      builder.RegisterService(service->get());
    }
    people_.Register(builder);
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
          "auth.retired_peppers wants auth.people.seal_key_file: without it second steps are "
          "sealed "
          "with a key that comes from auth.pepper, and would be lost with it");
    }
    if (!IsBrand(options_.brand)) {
      return Internal("auth.brand must be lower-case letters, digits and inner hyphens");
    }
    auto store = Open();
    if (!store) return Fail{store.error()};
    if (reaches_billing_) OpenBilling();
    backend_ =
        std::make_shared<auth::AuthBackend>(std::move(*store), threads_, clock_, backend_options_);
    if (auto started = backend_->Start(); !started) return started;
    slot_ = backend_.get();
    return people_.Start(backend_->store().database());
  }
  bool Ready() const override {
    const auth::AuthBackend* backend = slot_.load();
    return backend && backend_->feed().healthy();
  }
  // Watch streams have no end of their own.
  void Drain(int64_t deadline_us) override {
    if (auth::AuthBackend* backend = slot_.load()) backend->CloseStreams();
  }
  void Stop() override {
    slot_ = nullptr;
    people_.Stop();
    if (backend_) backend_->Stop();
    if (billing_) context_.loops.loop(0).RunAndWait([this] { billing_.reset(); });
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

  // Its client lives on the first loop; running calls keep it.
  void OpenBilling() {
    Loop& loop = context_.loops.loop(0);
    loop.RunAndWait([&] { billing_ = context_.clients.BillingAdmin(loop); });
    backend_options_.open_wallet = [&loop, client = billing_](
                                       std::string workspace,
                                       std::function<void(admin::AdminResult<void>)> done) {
      loop.Post(
          [&loop, client, workspace = std::move(workspace), done = std::move(done)]() mutable {
            loop.Spawn(OpenWallet(client, std::move(workspace), std::move(done)));
          });
    };
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
  const bool reaches_billing_;
  const int threads_;
  auth::StoreOptions options_;
  bool has_seal_key_ = false;
  auth::BackendSlot slot_{nullptr};
  auth::AuthRpc rpc_;
  auth::AuthAdminRpc admin_rpc_;
  const std::unique_ptr<grpc::Service> workspaces_, keys_, audit_, limits_;
  auth::BackendOptions backend_options_;
  std::shared_ptr<BillingAdminClient> billing_;  // null: not configured, or before Start
  std::shared_ptr<auth::AuthBackend> backend_;   // null before Start
  auth::PeoplePart people_;                      // in the backend's database
};

}  // namespace

std::unique_ptr<Module> MakeAuthModule(HostContext& context,
                                       const config::v1::AuthSettings& settings,
                                       const config::v1::TargetsConfig* targets) {
  return std::make_unique<AuthModule>(context, settings, targets);
}

}  // namespace tollgate
