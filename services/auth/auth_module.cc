#include "services/auth/auth_module.h"

#include <grpcpp/server_builder.h>

#include <thread>

#include "common/keys/key_format.h"
#include "common/observability/log.h"
#include "services/auth/rpc/auth_rpc.h"
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
  AuthModule(HostContext& context, const config::v1::AuthSettings& settings)
      : clock_(context.clock),
        threads_(settings.sql().connections() > 0 ? settings.sql().connections() : kDefaultThreads),
        rpc_(slot_),
        admin_rpc_(slot_),
        people_(settings, context.clock) {
    options_.database.url = settings.sql().url();
    // One more for the change feed.
    options_.database.connections = threads_ + 1;
    options_.pepper = settings.pepper();
    options_.brand = settings.brand().empty() ? "tollgate" : settings.brand();
  }
  ~AuthModule() override { Stop(); }

  std::string_view name() const override { return "auth"; }
  void Register(grpc::ServerBuilder& builder) override { builder.RegisterService(&rpc_); }
  void RegisterAdmin(grpc::ServerBuilder& builder) override {
    builder.RegisterService(&admin_rpc_);
    people_.Register(builder);
  }

  Result<void> Start() override {
    if (options_.pepper.size() < kMinPepperBytes) {
      return Internal("auth.pepper must have at least 32 characters");
    }
    if (!IsBrand(options_.brand)) {
      return Internal("auth.brand must be lower-case letters, digits and inner hyphens");
    }
    auto store = Open();
    if (!store) return Fail{store.error()};
    backend_ = std::make_shared<auth::AuthBackend>(std::move(*store), threads_, clock_);
    backend_->Start();
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

  const Clock& clock_;
  const int threads_;
  auth::StoreOptions options_;
  auth::BackendSlot slot_{nullptr};
  auth::AuthRpc rpc_;
  auth::AuthAdminRpc admin_rpc_;
  std::shared_ptr<auth::AuthBackend> backend_;  // null before Start
  auth::PeoplePart people_;                     // in the backend's database
};

}  // namespace

std::unique_ptr<Module> MakeAuthModule(HostContext& context,
                                       const config::v1::AuthSettings& settings) {
  return std::make_unique<AuthModule>(context, settings);
}

}  // namespace tollgate
