#include "services/billing/billing_module.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/service_type.h>

#include "services/billing/commit/ledger_service.h"
#include "services/billing/rpc/billing_rpc.h"
#include "services/billing/storage/checkpoint_writer.h"

namespace tollgate {
namespace {

billing::LedgerService::Options OptionsFrom(const config::v1::BillingSettings& settings) {
  billing::LedgerService::Options options;
  options.sql.url = settings.sql().url();
  if (settings.sql().connections() > 0) options.sql.connections = settings.sql().connections();
  options.sql.deferred_sync = settings.holds_before_disk();
  if (settings.hold_ttl_seconds() > 0) {
    options.policy.hold_ttl_us = int64_t{settings.hold_ttl_seconds()} * 1'000'000;
  }
  if (settings.slice_tokens() > 0) options.policy.slice_tokens = settings.slice_tokens();
  options.policy.held_is_no_credit = settings.held_is_402();
  return options;
}

std::unique_ptr<billing::CheckpointWriter> MakeCheckpoints(
    const config::v1::BillingSettings& settings, const Clock& clock) {
  if (settings.checkpoint_file().empty() && settings.checkpoint_key_file().empty()) return nullptr;
  billing::CheckpointWriter::Options options;
  options.sql = OptionsFrom(settings).sql;
  options.key_file = settings.checkpoint_key_file();
  options.file = settings.checkpoint_file();
  if (settings.checkpoint_seconds() > 0) {
    options.interval_ms = int64_t{settings.checkpoint_seconds()} * 1000;
  }
  return std::make_unique<billing::CheckpointWriter>(std::move(options), clock);
}

class BillingModule : public Module {
 public:
  BillingModule(HostContext& context, const config::v1::BillingSettings& settings)
      : ledger_(OptionsFrom(settings), context.clock),
        checkpoints_(MakeCheckpoints(settings, context.clock)),
        services_(billing::MakeRpcServices(ledger_)) {
    billing::OfferDirect(ledger_, context.direct);
  }

  std::string_view name() const override { return "billing"; }
  void Register(grpc::ServerBuilder& builder) override {
    for (const auto& service : services_) builder.RegisterService(service.get());
  }
  Result<void> Start() override {
    auto started = ledger_.Start();
    if (!started.ok() || checkpoints_ == nullptr) return started;
    return checkpoints_->Start();
  }
  bool Ready() const override { return ledger_.Ready(); }
  void Stop() override {
    if (checkpoints_ != nullptr) checkpoints_->Stop();
    ledger_.Stop();
  }

 private:
  billing::LedgerService ledger_;
  std::unique_ptr<billing::CheckpointWriter> checkpoints_;  // null: off
  std::vector<std::unique_ptr<grpc::Service>> services_;
};

}  // namespace

std::unique_ptr<Module> MakeBillingModule(HostContext& context,
                                          const config::v1::BillingSettings& settings) {
  return std::make_unique<BillingModule>(context, settings);
}

}  // namespace tollgate
