// The state machine of payments, refunds and auto-reload. Several engines, in several processes,
// may work on one database: each step claims its row under the workspace's lock before it calls the
// provider, writes what it is about to do before it does it, and every call carries our id.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

#include "common/base/clock.h"
#include "services/billing/payments/ledger_port.h"
#include "services/billing/payments/payment_metrics.h"
#include "services/billing/payments/payment_store.h"

namespace tollgate::billing::payments {

// Type of the events that stand for a visited page for saving a card.
inline constexpr char kSetupEvent[] = "setup";
// For the log of changes: steps that no person asked for.
inline constexpr char kEngineActor[] = "payments";

class PaymentEngine {
 public:
  struct Options {
    // How long a claimed row is left alone: longer than any call of the provider.
    int64_t lease_us = 60'000'000;
    // For tests: false makes the engine stop at this point as a crash would.
    std::function<bool(std::string_view point)> survives;
  };

  PaymentEngine(Options options, const Clock& clock, PaymentStore& store, PaymentProvider& provider,
                LedgerPort& ledger, PaymentMetrics& metrics);

  // One round: everything that is due, then the triggers of auto-reload.
  void RunOnce();
  // Payments, refunds and events that are due. Returns how many.
  int RunDue();
  // The rounds above end before their next row, and running calls of the provider soon.
  void Stop();
  // Looks at the balance of workspaces with auto-reload: of these, or of all.
  void RunTriggers(const std::unordered_set<std::string>* only = nullptr);

  // The single steps, for calls that want their result at once.
  void StepPayment(const std::string& workspace, const std::string& id);
  void StepRefund(const std::string& workspace, const std::string& id);
  void StepEvent(const ProviderEvent& event);
  // Starts a charge if the available credit is below the threshold and none is running.
  void Trigger(const AutoReload& seen);

  // What the provider says now, applied to the payment.
  sql::SqlResult<void> Apply(const Payment& asked, const ProviderResult<ChargeView>& result);
  // The provider's id of the workspace; created on first use.
  ProviderResult<std::string> EnsureCustomer(const std::string& workspace);

  PaymentStore& store() { return store_; }
  PaymentProvider& provider() { return provider_; }
  LedgerPort& ledger() { return ledger_; }
  PaymentMetrics& metrics() { return metrics_; }
  int64_t NowUs() const { return clock_.WallUs(); }
  int64_t lease_us() const { return options_.lease_us; }

 private:
  bool Survives(std::string_view point) const {
    return !options_.survives || options_.survives(point);
  }
  struct Claimed {
    Payment payment;
    bool first_send = false;  // the charge has never been sent
  };
  std::optional<Claimed> Claim(const std::string& workspace, const std::string& id);
  ProviderResult<ChargeView> Ask(const Payment& payment);
  ProviderResult<ChargeView> ResendOrGiveUp(const Payment& payment);
  ProviderResult<ChargeView> MakePage(const Payment& payment);
  void Credit(const Payment& payment);
  // Rules of Apply: change payment and, if it belongs to it, the workspace's reload.
  void ApplyView(const ChargeView& view, Payment& payment);
  void ApplyError(const ProviderError& error, Payment& payment);
  sql::SqlResult<void> WriteChange(WorkspaceTx& tx, const Payment& before, Payment after);
  sql::SqlResult<void> FollowPayment(WorkspaceTx& tx, const Payment& before, const Payment& after);
  sql::SqlResult<void> StartReload(WorkspaceTx& tx, AutoReload reload, bool& paused);
  bool TakeCredit(Refund& refund);
  void SendRefund(Refund refund, const Payment& payment);
  void AskRefund(Refund refund);
  void ReturnCredit(Refund refund);
  // The provider says that it cannot pay it out. False: try again later.
  bool FailRefund(const std::string& workspace, const std::string& id);
  void WriteRefund(const Refund& refund, RefundState was);
  // False: try again later.
  bool ApplyDispute(const DisputeView& view);
  sql::SqlResult<std::optional<Payment>> FindDisputed(const DisputeView& view);
  sql::SqlResult<Dispute> StoreDispute(const DisputeView& view, const Payment& payment);
  bool RunEvent(const ProviderEvent& event);
  bool RunRefundEvent(const ProviderEvent& event);
  bool StoreMethod(const ProviderEvent& event);
  void LogError(std::string_view what, const sql::SqlError& error) const;

  const Options options_;
  const Clock& clock_;
  PaymentStore& store_;
  PaymentProvider& provider_;
  LedgerPort& ledger_;
  PaymentMetrics& metrics_;
  std::atomic<bool> stopping_ = false;
};

// The id of the ledger's command that posts the credit of a charge: the same whoever finds out that
// it was paid.
std::string CreditCommandId(const std::string& provider, const std::string& provider_id);
// 32 hexadecimal digits from these words.
std::string DerivedId(std::string_view kind, std::string_view workspace, std::string_view key);

}  // namespace tollgate::billing::payments
