#include "services/billing/alerts/alerts.h"

#include <chrono>
#include <fstream>
#include <iterator>
#include <utility>

#include "common/base/crypto.h"
#include "common/base/seal.h"
#include "common/base/time_units.h"
#include "common/base/try.h"
#include "common/observability/log.h"

namespace tollgate::billing::alerts {
namespace {

// Threads that deliver. A receiver that does not answer blocks one of them until the timeout.
constexpr int kDeliverers = 3;
constexpr int64_t kOutboxDays = 30;

Result<std::string> ReadSealKey(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  auto key = HexDecode(text.substr(0, text.find_first_of("\r\n")));
  if (!key || key->size() != kSealKeyBytes) {
    return Internal("billing.alerts.seal_key_file must have 64 hexadecimal digits: " + path);
  }
  return *std::move(key);
}

}  // namespace

Alerts::Alerts(AlertsOptions options, const Clock& clock, LedgerService& ledger)
    : options_(std::move(options)), clock_(clock) {
  // Notices are rare, so each commit is durable at once, whatever the ledger uses.
  options_.sql.deferred_sync = false;
  ledger.OnCommitted([this](std::span<const Operation> operations) { OnCommitted(operations); });
}

Alerts::~Alerts() { Stop(); }

Result<void> Alerts::CheckSettings() {
  if (!options_.seal_key_file.empty()) {
    TRY(auto key, ReadSealKey(options_.seal_key_file));
    seal_key_ = std::move(key);
  }
  MailServer& server = options_.engine.mail;
  if (server.url.empty()) {
    if (options_.engine.operator_emails.empty()) return {};
    return Internal("billing.alerts.operator_emails needs billing.alerts.smtp_url");
  }
  TRY(mail::CheckMailServer("billing.alerts", options_.smtp_password_file, server));
  for (const std::string& email : options_.engine.operator_emails) {
    if (!mail::IsEmail(email)) {
      return Internal(
          "billing.alerts.operator_emails has an entry that is not a plain e-mail address");
    }
  }
  return {};
}

Result<void> Alerts::Start() {
  TRY(CheckSettings());
  auto database = sql::Database::Open(options_.sql);
  if (!database.ok()) return Fail{sql::ToError(database.error())};
  database_ = std::move(*database);
  store_ = std::make_unique<AlertStore>(*database_, seal_key_);
  engine_ = std::make_unique<AlertEngine>(options_.engine, clock_, *store_, metrics_);
  admin_ = std::make_unique<AlertAdmin>(*engine_);
  // SQLite: opens the file now; the process does not start if that fails.
  if (database_->dialect() == sql::Dialect::kSqlite && !Migrate()) {
    return Internal("cannot create the tables of alerts; see the log for the reason");
  }
  threads_.emplace_back([this] { CheckerMain(); });
  for (int i = 0; i < kDeliverers; ++i) threads_.emplace_back([this] { DelivererMain(); });
  return {};
}

void Alerts::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  closing_ = true;  // queued calls are answered at once
  pool_.Stop();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  open_ = false;
}

bool Alerts::Stopping() {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

bool Alerts::Sleep() {
  std::unique_lock lock(mutex_);
  wake_.wait_for(lock, std::chrono::seconds(1), [this] { return stopping_; });
  return !stopping_;
}

bool Alerts::Migrate() {
  auto migrated = store_->Migrate();
  if (migrated.ok()) migrated = store_->SealSecrets();
  if (migrated.ok()) {
    open_ = true;
  } else {
    log::Warn("alerts: cannot open the tables", {{"error", migrated.error().message}});
  }
  return migrated.ok();
}

void Alerts::OnCommitted(std::span<const Operation> operations) {
  const std::lock_guard lock(mutex_);
  if (watched_.empty()) return;
  for (const Operation& operation : operations) {
    const auto& workspace = WorkspaceOf(operation);
    if (watched_.contains(workspace)) spent_.insert(workspace);
  }
}

void Alerts::Sweep() {
  auto found = store_->Watched();
  if (!found.ok()) {
    log::Warn("alerts: the settings cannot be read", {{"error", found.error().message}});
    return;
  }
  {
    const std::lock_guard lock(mutex_);
    watched_ = {found->begin(), found->end()};
  }
  for (const std::string& workspace : *found) {
    if (Stopping()) return;
    engine_->Check(workspace);
  }
}

void Alerts::Maintain() {
  const int64_t now_us = clock_.WallUs();
  if (auto oldest = store_->OldestWaitingUs(); oldest.ok()) metrics_.SetOldest(*oldest, now_us);
  if (now_us - pruned_us_ < kDayUs) return;
  if (store_->Prune(now_us - kOutboxDays * kDayUs).ok()) pruned_us_ = now_us;
}

void Alerts::CheckerMain() {
  int64_t sweep_us = 0;
  while (Sleep()) {
    if (!open_ && !Migrate()) continue;
    std::unordered_set<std::string> spent;
    {
      const std::lock_guard lock(mutex_);
      spent.swap(spent_);
    }
    const int64_t now_us = clock_.MonotonicUs();
    if (sweep_us == 0 || now_us - sweep_us >= options_.sweep_us) {
      sweep_us = now_us;
      Sweep();
      Maintain();
      continue;
    }
    for (const std::string& workspace : spent) {
      if (Stopping()) return;
      engine_->Check(workspace);
    }
  }
}

void Alerts::DelivererMain() {
  while (Sleep()) {
    while (open_ && !Stopping() && engine_->DeliverDue() > 0) {
    }
  }
}

}  // namespace tollgate::billing::alerts
