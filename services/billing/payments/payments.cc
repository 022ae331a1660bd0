#include "services/billing/payments/payments.h"

#include <chrono>
#include <fstream>
#include <iterator>
#include <optional>
#include <utility>

#include "common/base/time_units.h"
#include "common/base/try.h"
#include "common/observability/log.h"
#include "services/billing/payments/manual_provider.h"

namespace tollgate::billing::payments {
namespace {

constexpr int kWorkers = 2;
constexpr size_t kMaxSpent = 100'000;
constexpr size_t kMaxSecretFile = 16 * 1024;
constexpr int kMaxConnections = 200;
constexpr int64_t kEventDays = 30;
// A charge takes a few seconds. When it takes longer than this, its credit is not expected soon.
constexpr int64_t kUsualChargeUs = 30'000'000;

// Reads the lines of a file of secrets that are not empty.
Result<std::vector<std::string>> ReadSecrets(const std::string& path, const std::string& setting) {
  std::ifstream file(path, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(file), {}};
  std::vector<std::string> secrets;
  std::string line;
  for (const char c : text + "\n") {
    if (c == '\n') {
      if (!line.empty()) secrets.push_back(std::exchange(line, {}));
    } else if (c != '\r' && c != ' ' && c != '\t') {
      line += c;
    }
  }
  if (!file || text.size() > kMaxSecretFile || secrets.empty()) {
    return Internal("billing.payments." + setting + ": no secret can be read from " + path);
  }
  return secrets;
}

}  // namespace

Payments::Payments(PaymentsOptions options, const Clock& clock, LedgerService& ledger)
    : options_(std::move(options)), clock_(clock), ledger_(ledger), reloading_(ledger.reloading()) {
  // Payments are rare, so each commit is durable at once, whatever the ledger uses.
  options_.sql.deferred_sync = false;
  ledger.OnCommitted([this](std::span<const Operation> operations) { OnCommitted(operations); });
}

Payments::~Payments() { Stop(); }

Result<void> Payments::MakeProvider() {
  if (options_.provider == "manual") {
    provider_ = std::make_unique<ManualProvider>();
    return {};
  }
  if (options_.provider != "stripe") {
    return Internal("billing.payments.provider must be manual or stripe");
  }
  if (options_.stripe.success_url.empty()) {
    return Internal("billing.payments.success_url is required for stripe");
  }
  TRY(auto keys, ReadSecrets(options_.secret_key_file, "stripe_secret_key_file"));
  options_.stripe.secret_key = keys.front();
  if (options_.stripe.cancel_url.empty()) options_.stripe.cancel_url = options_.stripe.success_url;
  provider_ = MakeStripeProvider(options_.stripe);
  return {};
}

Result<void> Payments::Start(LoopPool& loops) {
  TRY(MakeProvider());
  auto database = sql::Database::Open(options_.sql);
  if (!database.ok()) return Fail{sql::ToError(database.error())};
  database_ = std::move(*database);
  store_ = std::make_unique<PaymentStore>(*database_);
  engine_ =
      std::make_unique<PaymentEngine>(options_.engine, *store_, *provider_, ledger_, metrics_);
  admin_ = std::make_unique<PaymentAdmin>(*engine_);
  // SQLite: opens the file now; the process does not start if that fails.
  if (database_->dialect() == sql::Dialect::kSqlite && !Migrate()) {
    return Internal("cannot create the tables of payments; see the log for the reason");
  }
  if (!options_.webhook_listen.empty()) {
    TRY(Listen(loops));
  }
  for (int i = 0; i < kWorkers; ++i) {
    threads_.emplace_back([this, i] { WorkerMain(i == 0); });
  }
  return {};
}

Result<void> Payments::Listen(LoopPool& loops) {
  TRY(auto secrets, ReadSecrets(options_.webhook_secret_file, "stripe_webhook_secret_file"));
  webhook_ = std::make_unique<Webhook>(std::move(secrets), clock_, *store_, metrics_);
  http::ServerOptions options;
  options.max_body_bytes = kMaxWebhookBytes;
  options.max_connections = kMaxConnections;
  server_ = std::make_unique<http::Server>(
      loops, std::move(options), [this](http::Exchange& exchange) { return Serve(exchange); });
  return server_->Listen(options_.webhook_listen);
}

Task<void> Payments::Serve(http::Exchange& exchange) {
  // The job owns its data: it runs to its end even if the connection is closed meanwhile.
  auto request = std::make_shared<http::HttpRequest>(std::move(exchange.mutable_request()));
  auto job = [this, request]() {
    if (!open()) return http::HttpResponse{.status = 503, .body = "starting or stopping\n"};
    bool accepted = false;
    http::HttpResponse response = webhook_->Handle(*request, accepted);
    if (accepted) Wake();
    return response;
  };
  auto handled = co_await RunOnPool(webhook_pool_, exchange.loop(), std::move(job));
  http::HttpResponse response{.status = 503, .body = "try again\n"};
  if (handled) response = std::move(*handled);
  co_await exchange.Send(std::move(response));
}

void Payments::Stop() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
  }
  wake_.notify_all();
  // Answers queued calls at once; running ones do not wait for the provider.
  closing_ = true;
  if (engine_) engine_->Stop();
  if (server_) server_->Stop();
  pool_.Stop();
  webhook_pool_.Stop();
  for (std::thread& thread : threads_) thread.join();
  threads_.clear();
  open_ = false;
}

void Payments::Wake() {
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  wake_.notify_one();
}

bool Payments::Sleep() {
  std::unique_lock lock(mutex_);
  wake_.wait_for(lock, std::chrono::seconds(1), [this] { return stopping_ || woken_; });
  woken_ = false;
  return !stopping_;
}

bool Payments::Migrate() {
  auto migrated = store_->Migrate();
  if (migrated.ok()) {
    open_ = true;
  } else {
    log::Warn("payments: cannot open the tables", {{"error", migrated.error().message}});
  }
  return migrated.ok();
}

void Payments::OnCommitted(std::span<const Operation> operations) {
  if (!watching_) return;
  const std::lock_guard lock(mutex_);
  for (const Operation& operation : operations) {
    if (spent_.size() < kMaxSpent) spent_.insert(WorkspaceOf(operation));
  }
}

// Once a day: removes completed events that the provider no longer repeats.
void Payments::Prune() {
  const int64_t now_us = engine_->NowUs();
  if (now_us - pruned_us_ < kDayUs) return;
  auto pruned = store_->PruneEvents(now_us - kEventDays * kDayUs);
  if (pruned.ok()) pruned_us_ = now_us;
}

// Once an hour: webhooks may be lost.
void Payments::PollDisputes() {
  const int64_t now_us = engine_->NowUs();
  if (now_us - disputes_us_ < kHourUs) return;
  disputes_us_ = now_us;
  engine_->PollDisputes();
}

// Keeps the list even if the database does not answer: the ledger's does not, either.
void Payments::FindReloading() {
  auto workspaces = store_->ReloadingSince(engine_->NowUs() - kUsualChargeUs);
  if (workspaces.ok()) reloading_.Set(*workspaces);
}

// The first worker also checks triggers, looks for charges under way, and updates the gauges.
void Payments::WorkerMain(bool first) {
  int64_t sweep_us = 0;
  while (Sleep()) {
    if (!open_ && (!first || !Migrate())) continue;
    // Pauses between rounds: rows that cannot be written stay due.
    while (engine_->RunDue() > 0) {
      if (!Sleep()) return;
    }
    if (!first) continue;
    std::unordered_set<std::string> spent;
    {
      const std::lock_guard lock(mutex_);
      spent.swap(spent_);
    }
    const int64_t now_us = clock_.MonotonicUs();
    if (sweep_us == 0 || now_us - sweep_us >= options_.sweep_us) {
      sweep_us = now_us;
      engine_->RunTriggers();
      Prune();
    } else if (!spent.empty()) {
      engine_->RunTriggers(&spent);
    }
    PollDisputes();
    FindReloading();
    if (auto counts = store_->Count(); counts.ok()) {
      metrics_.SetCounts(*counts, engine_->NowUs());
      watching_ = counts->enabled_reloads > 0;
    }
  }
}

}  // namespace tollgate::billing::payments
