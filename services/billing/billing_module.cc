#include "services/billing/billing_module.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/service_type.h>

#include "common/money/money.h"
#include "services/billing/commit/ledger_service.h"
#include "services/billing/rpc/billing_rpc.h"

namespace tollgate {
namespace {

// A malformed amount is refused at the start.
int64_t SecondPersonAbove(const config::v1::BillingSettings& settings) {
  const auto nano_usd = ParseDecimalUsdToNano(settings.second_person_above_usd());
  return nano_usd.value_or(billing::Policy().second_person_above_nano_usd);
}

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
  options.policy.second_person_above_nano_usd = SecondPersonAbove(settings);
  return options;
}

class BillingModule : public Module {
 public:
  BillingModule(HostContext& context, const config::v1::BillingSettings& settings)
      : settings_(settings),
        ledger_(OptionsFrom(settings), context.clock),
        services_(billing::MakeRpcServices(
            ledger_, {.known_caller_above_nano_usd = SecondPersonAbove(settings)})) {
    billing::OfferDirect(ledger_, context.direct);
  }

  std::string_view name() const override { return "billing"; }
  void Register(grpc::ServerBuilder& builder) override {
    for (const auto& service : services_) builder.RegisterService(service.get());
  }
  Result<void> Start() override {
    const std::string& amount = settings_.second_person_above_usd();
    if (!amount.empty() && ParseDecimalUsdToNano(amount).value_or(-1) < 0) {
      return Internal("billing.second_person_above_usd must be an amount in USD such as 100");
    }
    return ledger_.Start();
  }
  bool Ready() const override { return ledger_.Ready(); }
  void Stop() override { ledger_.Stop(); }

 private:
  const config::v1::BillingSettings settings_;
  billing::LedgerService ledger_;
  std::vector<std::unique_ptr<grpc::Service>> services_;
};

}  // namespace

std::unique_ptr<Module> MakeBillingModule(HostContext& context,
                                          const config::v1::BillingSettings& settings) {
  return std::make_unique<BillingModule>(context, settings);
}

}  // namespace tollgate
