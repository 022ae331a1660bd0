#include "services/billing/billing_module.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/impl/service_type.h>

#include <algorithm>

#include "common/audit/refusal_writer.h"
#include "common/base/try.h"
#include "common/host/plain_text.h"
#include "common/money/money.h"
#include "common/observability/disk_metrics.h"
#include "services/billing/alerts/alerts.h"
#include "services/billing/archive/archive_runner.h"
#include "services/billing/commit/audit_mover.h"
#include "services/billing/commit/ledger_service.h"
#include "services/billing/payments/payments.h"
#include "services/billing/reports/rollup_runner.h"
#include "services/billing/rpc/alerts_rpc.h"
#include "services/billing/rpc/billing_rpc.h"
#include "services/billing/rpc/callers.h"
#include "services/billing/rpc/lease_recalls_rpc.h"
#include "services/billing/rpc/payments_rpc.h"
#include "services/billing/verify/checkpoint_writer.h"
#include "services/billing/verify/nightly_verification.h"

namespace tollgate {
namespace {

// Fails for a malformed amount, so that the process does not start.
int64_t SecondPersonAbove(const config::v1::BillingSettings& settings) {
  const auto nano_usd = ParseDecimalUsdToNano(settings.second_person_above_usd());
  return nano_usd.value_or(billing::Policy().second_person_above_nano_usd);
}

billing::LedgerService::Options OptionsFrom(const config::v1::BillingSettings& settings) {
  billing::LedgerService::Options options;
  options.sql.url = settings.sql().url();
  if (settings.sql().connections() > 0) options.sql.connections = settings.sql().connections();
  options.sql.deferred_sync = settings.holds_before_disk();
  options.reports.sql.url = settings.reports_sql().url();
  if (settings.reports_sql().connections() > 0) {
    options.reports.sql.connections = settings.reports_sql().connections();
  }
  if (settings.reports_max_lag_seconds() > 0) {
    options.reports.max_lag_ms = int64_t{settings.reports_max_lag_seconds()} * 1000;
  }
  if (settings.hold_ttl_seconds() > 0) {
    options.policy.hold_ttl_us = int64_t{settings.hold_ttl_seconds()} * 1'000'000;
  }
  if (settings.slice_tokens() > 0) options.policy.slice_tokens = settings.slice_tokens();
  if (settings.has_lease_above_requests_per_second()) {
    options.lease_above_per_second = settings.lease_above_requests_per_second();
  } else if (!options.sql.url.starts_with("postgres")) {
    // SQLite is always available, and a router that waits for its own disk would not be faster.
    options.lease_above_per_second = 0;
  }
  options.policy.held_is_no_credit = settings.held_is_402();
  options.policy.second_person_above_nano_usd = SecondPersonAbove(settings);
  return options;
}

// Limits how long one of these transactions can block others: they lock the last entry of the audit
// log, as ledger commands do (on Citus AuditMover does it for the commands;
// docs/design/failures.md). The server ends an idle transaction after idle_in_transaction_ms, and a
// statement that waits for a lock gives up after the second timeout.
void LimitLocks(sql::Database::Options& options) {
  options.idle_in_transaction_ms = 1000;
  options.lock_timeout_ms = 2000;
}

billing::payments::PaymentsOptions PaymentsFrom(const config::v1::BillingSettings& settings) {
  const config::v1::PaymentSettings& from = settings.payments();
  billing::payments::PaymentsOptions options;
  options.sql.url = settings.sql().url();
  LimitLocks(options.sql);
  if (!from.provider().empty()) options.provider = from.provider();
  options.secret_key_file = from.stripe_secret_key_file();
  options.webhook_secret_file = from.stripe_webhook_secret_file();
  options.webhook_listen = from.webhook_listen();
  if (!from.stripe_base_url().empty()) options.stripe.base_url = from.stripe_base_url();
  options.stripe.success_url = from.success_url();
  options.stripe.cancel_url = from.cancel_url();
  if (from.provider_timeout_seconds() > 0) {
    options.stripe.timeout_ms = std::min(from.provider_timeout_seconds(), 50) * 1000;
  }
  options.engine.second_person_above_nano_usd = SecondPersonAbove(settings);
  // A step makes at most a few calls.
  options.engine.lease_us = int64_t{options.stripe.timeout_ms} * 3000;
  if (from.reload_sweep_seconds() > 0) {
    options.sweep_us = int64_t{from.reload_sweep_seconds()} * 1'000'000;
  }
  billing::payments::ChargeLimits& limits = options.engine.limits;
  if (from.reload_charges_per_hour() > 0) limits.per_hour = from.reload_charges_per_hour();
  if (from.reload_charges_per_day() > 0) limits.per_day = from.reload_charges_per_day();
  return options;
}

billing::alerts::AlertsOptions AlertsFrom(const config::v1::BillingSettings& settings) {
  const config::v1::AlertSettings& from = settings.alerts();
  billing::alerts::AlertsOptions options;
  options.sql.url = settings.sql().url();
  LimitLocks(options.sql);
  options.smtp_password_file = from.smtp_password_file();
  options.seal_key_file = from.seal_key_file();
  options.engine.mail.url = from.smtp_url();
  options.engine.mail.user = from.smtp_user();
  options.engine.mail.from = from.mail_from();
  options.engine.operator_emails = {from.operator_emails().begin(), from.operator_emails().end()};
  options.engine.dashboard_url = from.dashboard_url();
  options.engine.allow_private = from.webhooks_to_private_addresses();
  if (from.webhook_timeout_seconds() > 0) {
    options.engine.timeout_ms = std::min(from.webhook_timeout_seconds(), 30) * 1000;
  }
  if (from.sweep_seconds() > 0) options.sweep_us = int64_t{from.sweep_seconds()} * 1'000'000;
  return options;
}

std::unique_ptr<billing::CheckpointWriter> MakeCheckpoints(
    const config::v1::BillingSettings& settings, const Clock& clock) {
  if (settings.checkpoint_file().empty() && settings.checkpoint_key_file().empty()) return nullptr;
  billing::CheckpointWriter::Options options;
  options.sql = OptionsFrom(settings).sql;
  options.key_file = settings.checkpoint_key_file();
  options.file = settings.checkpoint_file();
  options.payments = true;
  if (settings.checkpoint_seconds() > 0) {
    options.interval_ms = int64_t{settings.checkpoint_seconds()} * 1000;
  }
  return std::make_unique<billing::CheckpointWriter>(std::move(options), clock);
}

std::unique_ptr<billing::ArchiveRunner> MakeArchive(const config::v1::BillingSettings& settings,
                                                    billing::LedgerService& ledger) {
  if (settings.retention_months() <= 0) return nullptr;
  billing::ArchiveRunner::Options options;
  options.sql = OptionsFrom(settings).sql;
  options.folder = settings.archive_folder();
  options.months = settings.retention_months();
  return std::make_unique<billing::ArchiveRunner>(
      std::move(options), [&ledger] { return ledger.NowUs(); },
      [&ledger] { return ledger.Ready(); });
}

std::unique_ptr<billing::NightlyVerification> MakeVerification(
    const config::v1::BillingSettings& settings, billing::LedgerService& ledger) {
  if (settings.no_nightly_verification()) return nullptr;
  billing::NightlyVerification::Options options;
  options.sql = OptionsFrom(settings).sql;
  options.sql.connections = 1;
  if (!settings.checkpoint_file().empty()) {
    options.arguments = {"--checkpoints", settings.checkpoint_file(), "--checkpoint-key",
                         settings.checkpoint_key_file()};
  }
  if (!settings.archive_folder().empty()) {
    options.arguments.insert(options.arguments.end(), {"--archive", settings.archive_folder()});
  }
  return std::make_unique<billing::NightlyVerification>(
      std::move(options), [&ledger] { return ledger.NowUs(); },
      [&ledger] { return ledger.Ready(); });
}

billing::RollUpRunner::Options RollUpsFrom(const config::v1::BillingSettings& settings) {
  billing::RollUpRunner::Options options;
  // Synced after the entries that they come from: a power failure cannot lose the entries and keep
  // the roll-ups.
  options.sql = OptionsFrom(settings).sql;
  options.sql.deferred_sync = true;
  // The first roll-ups are computed from all entries.
  options.sql.statement_timeout_ms = 600'000;
  options.sql.idle_in_transaction_ms = 600'000;
  return options;
}

sql::Database::Options AuditMovesFrom(const config::v1::BillingSettings& settings) {
  sql::Database::Options options = OptionsFrom(settings).sql;
  LimitLocks(options);
  // The server of the outbox waits while entries are written on the server of the audit log.
  options.idle_in_transaction_ms = 5000;
  options.statement_timeout_ms = options.distributed_timeout_ms = 5000;
  return options;
}

class BillingModule : public Module {
 public:
  BillingModule(HostContext& context, const config::v1::BillingSettings& settings)
      : context_(context),
        settings_(settings),
        disk_(metrics::ReportDatabaseDisk("billing", settings.sql().url())),
        ledger_(OptionsFrom(settings), context.clock),
        webhook_listen_(settings.payments().webhook_listen()),
        webhook_insecure_plaintext_(settings.payments().webhook_insecure_plaintext()),
        payments_(PaymentsFrom(settings), context.clock, ledger_),
        alerts_(AlertsFrom(settings), context.clock, ledger_),
        checkpoints_(MakeCheckpoints(settings, context.clock)),
        archive_(MakeArchive(settings, ledger_)),
        verification_(MakeVerification(settings, ledger_)),
        rollups_(RollUpsFrom(settings), context.clock, [this] { return ledger_.Ready(); }),
        audit_mover_(AuditMovesFrom(settings), context.clock,
                     [this] { return ledger_.Ready() && ledger_.NodesServe(); }),
        rpc_(billing::MakeRpcServices(ledger_)),
        recalls_(context.loops.loop(0)),
        admin_services_(billing::MakeAdminServices(
            ledger_, {.second_person_above_nano_usd = SecondPersonAbove(settings)})) {
    admin_services_.push_back(billing::MakePaymentRpc(payments_));
    admin_services_.push_back(billing::MakeClosingRpc(payments_));
    admin_services_.push_back(billing::MakeAlertRpc(alerts_));
    billing::OfferDirect(ledger_, context.direct);
    ledger_.OnCommitted([this](std::span<const billing::Operation> operations) {
      rollups_.OnCommitted(operations);
      audit_mover_.OnCommitted(operations);
    });
    ledger_.OnRecalls(
        [this](std::vector<std::string> workspaces) { recalls_.Publish(std::move(workspaces)); });
  }

  std::string_view name() const override { return "billing"; }
  void Register(grpc::ServerBuilder& builder) override {
    for (const auto& service : rpc_.services) builder.RegisterService(service.get());
    builder.RegisterService(&recalls_);
  }
  std::span<const rpc::MethodCallers> Callers() const override { return billing::kCallers; }
  std::span<const rpc::MethodCallers> AdminCallers() const override {
    return billing::kAdminCallers;
  }
  void RegisterAdmin(grpc::ServerBuilder& builder) override {
    for (const auto& service : admin_services_) builder.RegisterService(service.get());
  }
  Result<void> Start() override {
    const std::string& amount = settings_.second_person_above_usd();
    if (!amount.empty() && ParseDecimalUsdToNano(amount).value_or(-1) < 0) {
      return Internal("billing.second_person_above_usd must be an amount in USD such as 100");
    }
    TRY(host::CheckPlainHttp("billing.payments.webhook_listen", webhook_listen_, /*has_tls=*/false,
                             webhook_insecure_plaintext_ || context_.insecure_plaintext,
                             "an address of this machine, or, behind a proxy that ends TLS, "
                             "billing.payments.webhook_insecure_plaintext: true"));
    TRY(ledger_.Start());
    TRY(payments_.Start(context_.loops));
    TRY(alerts_.Start());
    TRY(StartRefusals());
    if (const std::string address = payments_.webhook_address(); !address.empty()) {
      context_.report_address("billing_webhooks", address);
    }
    if (archive_ != nullptr) {
      TRY(archive_->Start());
    }
    if (verification_ != nullptr) {
      TRY(verification_->Start());
    }
    rollups_.Start();
    audit_mover_.Start();
    return checkpoints_ == nullptr ? Result<void>() : checkpoints_->Start();
  }
  bool Ready() const override { return ledger_.Ready(); }
  void Stop() override {
    rpc_.close_streams();
    recalls_.Close();
    refusals_.reset();
    alerts_.Stop();
    payments_.Stop();
    if (verification_ != nullptr) verification_->Stop();
    if (archive_ != nullptr) archive_->Stop();
    rollups_.Stop();
    audit_mover_.Stop();
    ledger_.Stop();
    if (checkpoints_ != nullptr) checkpoints_->Stop();
  }

 private:
  // Writes audit entries about refused calls, over a separate connection.
  Result<void> StartRefusals() {
    sql::Database::Options options = OptionsFrom(settings_).sql;
    options.connections = 1;
    options.deferred_sync = false;
    LimitLocks(options);
    auto database = sql::Database::Open(std::move(options));
    if (!database.ok()) return Fail{sql::ToError(database.error())};
    refusal_database_ = std::move(*database);
    refusals_ =
        std::make_unique<audit::RefusalWriter>(*refusal_database_, audit::kEntries, context_.clock);
    refusals_->Start();
    return {};
  }

  HostContext& context_;
  const config::v1::BillingSettings settings_;
  const std::shared_ptr<void> disk_;  // for its metrics
  billing::LedgerService ledger_;
  const std::string webhook_listen_;
  const bool webhook_insecure_plaintext_;
  billing::payments::Payments payments_;
  billing::alerts::Alerts alerts_;
  std::unique_ptr<billing::CheckpointWriter> checkpoints_;      // null: off
  std::unique_ptr<billing::ArchiveRunner> archive_;             // null: off
  std::unique_ptr<billing::NightlyVerification> verification_;  // null: off
  billing::RollUpRunner rollups_;
  billing::AuditMover audit_mover_;
  std::unique_ptr<sql::Database> refusal_database_;
  std::unique_ptr<audit::RefusalWriter> refusals_;
  billing::RpcServices rpc_;
  billing::LeaseRecallRpc recalls_;
  std::vector<std::unique_ptr<grpc::Service>> admin_services_;
};

}  // namespace

std::unique_ptr<Module> MakeBillingModule(HostContext& context,
                                          const config::v1::BillingSettings& settings) {
  return std::make_unique<BillingModule>(context, settings);
}

}  // namespace tollgate
