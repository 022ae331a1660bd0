// Payments of one billing process: provider, database, engine, threads and webhook listener.
#pragma once

#include <atomic>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

#include "common/http/server.h"
#include "common/runtime/thread_pool.h"
#include "services/billing/payments/payment_admin.h"
#include "services/billing/payments/stripe_provider.h"
#include "services/billing/payments/webhook.h"

namespace tollgate::billing::payments {

struct PaymentsOptions {
  sql::Database::Options sql;
  std::string provider = "manual";
  std::string secret_key_file;
  std::string webhook_secret_file;
  std::string webhook_listen;  // empty: no listener
  StripeOptions stripe;
  int64_t sweep_us = 30'000'000;
  PaymentEngine::Options engine;
};

class Payments {
 public:
  // ledger must outlive the object and must not have been started.
  Payments(PaymentsOptions options, const Clock& clock, LedgerService& ledger);
  ~Payments();

  // Reads the secrets, opens the database (PostgreSQL: in the background) and starts the threads.
  Result<void> Start(LoopPool& loops);
  void Stop();
  // The address of the webhook listener; empty without one.
  std::string webhook_address() const { return server_ ? server_->address() : ""; }

  // Whether calls are accepted: the database is open and payments are not stopping.
  bool open() const { return open_ && !closing_; }
  PaymentAdmin& admin() { return *admin_; }
  PaymentEngine& engine() { return *engine_; }
  // Threads for calls that block.
  ThreadPool& pool() { return pool_; }
  // Makes the worker check for due rows at once.
  void Wake();

 private:
  Result<void> MakeProvider();
  Result<void> Listen(LoopPool& loops);
  Task<void> Serve(http::Exchange& exchange);
  bool Migrate();
  void Prune();
  void PollDisputes();
  void WorkerMain(bool first);
  void OnCommitted(std::span<const Operation> operations);
  void FindReloading();
  // Returns false when stopping.
  bool Sleep();

  PaymentsOptions options_;
  const Clock& clock_;
  LedgerServicePort ledger_;
  ReloadingWorkspaces& reloading_;
  PaymentMetrics metrics_;
  std::unique_ptr<PaymentProvider> provider_;
  std::unique_ptr<sql::Database> database_;
  std::unique_ptr<PaymentStore> store_;
  std::unique_ptr<PaymentEngine> engine_;
  std::unique_ptr<PaymentAdmin> admin_;
  std::unique_ptr<Webhook> webhook_;
  std::unique_ptr<http::Server> server_;
  ThreadPool pool_{8, 256, "payments"};
  // Separate from the pool for admin calls, which may wait for the provider.
  ThreadPool webhook_pool_{2, 256, "webhooks"};

  std::atomic<bool> open_ = false;
  std::atomic<bool> closing_ = false;
  std::atomic<bool> watching_ = false;  // some workspace has auto-reload
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  bool woken_ = false;
  int64_t pruned_us_ = 0;                  // used by the first worker only
  int64_t disputes_us_ = 0;                // likewise: when they were asked for
  std::unordered_set<std::string> spent_;  // workspaces that spent since the last check
  std::vector<std::thread> threads_;
};

}  // namespace tollgate::billing::payments
