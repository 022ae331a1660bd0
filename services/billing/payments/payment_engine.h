// The state machine of payments, refunds and auto-reload. Several engines, in several processes,
// may work on one database: each step claims its row under the workspace's lock before it calls the
// provider, stores what it is about to do before it does it, and passes our id to every call.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_set>

#include "services/billing/payments/ledger_port.h"
#include "services/billing/payments/payment_metrics.h"
#include "services/billing/payments/payment_store.h"
#include "services/billing/payments/reload_rules.h"

namespace tollgate::billing::payments {

// Event type of a page for saving a card that the customer has visited.
inline constexpr char kSetupEvent[] = "setup";
// Actor in the log of changes for steps that no person requested.
inline constexpr char kEngineActor[] = "payments";
// Begins the reason of a charge that was cancelled before the provider had it.
inline constexpr char kWithdrawn[] = "withdrawn: ";
// Begins the reason of a payment that a person ended although its result is unknown.
inline constexpr char kGivenUp[] = "given up: ";
inline constexpr char kAmountMismatch[] = "amount_mismatch";

class PaymentEngine {
 public:
  struct Options {
    // How long others leave a claimed row alone: longer than any call to the provider.
    int64_t lease_us = 60'000'000;
    ChargeLimits limits;
    // Bank transfers that one person may confirm alone within 24 h, and the largest refund.
    int64_t second_person_above_nano_usd = Policy().second_person_above_nano_usd;
    // For tests: returning false stops the engine at this point, like a crash.
    std::function<bool(std::string_view point)> survives;
  };

  PaymentEngine(Options options, PaymentStore& store, PaymentProvider& provider, LedgerPort& ledger,
                PaymentMetrics& metrics);

  // Runs one round: everything that is due, then the triggers of auto-reload.
  void RunOnce();
  // Processes payments, refunds and events that are due. Returns how many.
  int RunDue();
  // Ends the rounds above before their next row, and running calls to the provider soon.
  void Stop();
  // Checks the balance of these workspaces, or of all workspaces with auto-reload.
  void RunTriggers(const std::unordered_set<std::string>* only = nullptr);

  // Runs a single step, for calls that need its result at once.
  void StepPayment(const std::string& workspace, const std::string& id);
  void StepRefund(const std::string& workspace, const std::string& id);
  // Records that the provider cannot pay out the refund. Returns false if it must be retried.
  bool FailRefund(const std::string& workspace, const std::string& id);
  void StepEvent(const ProviderEvent& event);
  // Starts a charge if MayCharge allows it and none is in flight.
  void Trigger(const AutoReload& seen);

  // Applies the provider's current answer to the payment. first_send: it answers the first call.
  sql::SqlResult<void> Apply(const Payment& asked, const ProviderResult<ChargeView>& result,
                             bool first_send = false);
  // Pauses auto-reload if it is on; 0: until a person resumes it.
  sql::SqlResult<void> PauseReload(WorkspaceTx& tx, const std::string& reason,
                                   int64_t until_us = 0);
  sql::SqlResult<void> FollowPayment(WorkspaceTx& tx, const Payment& before, const Payment& after);
  // Refunds at the provider whose credit no refund of ours takes, for example those made in the
  // provider's dashboard. Without those that have failed.
  ProviderResult<std::vector<RefundView>> RefundsElsewhere(const Payment& payment);
  // Whether the charge says that it belongs to a payment of ours, and is paid.
  static bool IsOurs(const ChargeView& charge);
  // Makes the row of a paid charge of ours that has none, since the database was restored to an
  // earlier time, and posts its credit.
  enum class Adopted : uint8_t { kNo, kYes, kRetry };
  Adopted AdoptCharge(const ChargeView& charge);
  // Follows the disputes and fraud warnings that the provider lists: webhooks may be lost.
  void PollDisputes();
  // The payment that a dispute concerns.
  sql::SqlResult<std::optional<Payment>> FindDisputed(const DisputeView& view);
  // Returns false if it must be retried.
  bool ApplyDispute(const DisputeView& view);
  // Returns the provider's customer id of the workspace; created on first use.
  ProviderResult<std::string> EnsureCustomer(const std::string& workspace);

  PaymentStore& store() { return store_; }
  PaymentProvider& provider() { return provider_; }
  LedgerPort& ledger() { return ledger_; }
  PaymentMetrics& metrics() { return metrics_; }
  int64_t NowUs() const { return ledger_.NowUs(); }
  int64_t lease_us() const { return options_.lease_us; }
  int64_t second_person_above_nano_usd() const { return options_.second_person_above_nano_usd; }

 private:
  bool Survives(std::string_view point) const {
    return !options_.survives || options_.survives(point);
  }
  struct Claimed {
    Payment payment;
    bool first_send = false;  // the charge was never sent before
  };
  std::optional<Claimed> Claim(const std::string& workspace, const std::string& id);
  ProviderResult<ChargeView> Ask(Payment& payment);
  ProviderResult<ChargeView> ResendOrGiveUp(Payment& payment);
  // Returns why the charge must not be sent now, or "" after writing that it is sent now.
  ProviderResult<std::string> MarkResent(Payment& payment);
  std::optional<LedgerFacts> ReadLedger(const std::string& workspace);
  // own: the charge that is about to be sent; null: one that would be new.
  sql::SqlResult<ChargeFacts> ReadChargeFacts(WorkspaceTx& tx, const AutoReload& reload,
                                              const LedgerFacts& ledger, const Payment* own);
  // "": the charge may be sent now. Pauses auto-reload where the rules say so.
  sql::SqlResult<std::string> WhyNotSend(WorkspaceTx& tx, const Payment& payment,
                                         const LedgerFacts& ledger);
  ProviderResult<ChargeView> MakePage(const Payment& payment);
  void Credit(const Payment& payment);
  // Rules of Apply: change the payment and the workspace's auto-reload if the payment belongs to
  // it.
  void ApplyView(WorkspaceTx& tx, const ChargeView& view, Payment& payment);
  void ApplyError(const ProviderError& error, bool unsent, Payment& payment);
  sql::SqlResult<void> WriteChange(WorkspaceTx& tx, const Payment& before, Payment after);
  // Asks the customer to pay on a page, where the bank can ask for a confirmation.
  sql::SqlResult<void> OpenConfirmPage(WorkspaceTx& tx, const Payment& declined,
                                       AutoReload& reload);
  sql::SqlResult<void> StartReload(WorkspaceTx& tx, AutoReload reload, const ChargeFacts& facts);
  // Gives back the charges of a paid payment whose credit is not in the ledger.
  sql::SqlResult<void> RefundExtraCharges(WorkspaceTx& tx, const Payment& payment,
                                          const std::vector<ChargeView::Paid>& paid);
  bool TakeCredit(Refund& refund);
  void SendRefund(Refund refund, const Payment& payment);
  ProviderResult<RefundView> MakeRefund(const Refund& refund, const Payment& payment);
  void AskRefund(Refund refund);
  // What gives the credit of a failed refund back.
  Operation CreditOf(const Refund& refund) const;
  void ReturnCredit(Refund refund);
  void WriteRefund(const Refund& refund, RefundState was);
  sql::SqlResult<void> StoreAdopted(WorkspaceTx& tx, const ChargeView& charge,
                                    const Payment& payment, bool& made);
  sql::SqlResult<Dispute> StoreDispute(const DisputeView& view, const Payment& payment);
  bool RunEvent(const ProviderEvent& event);
  bool AdoptFromEvent(const ProviderEvent& event);
  bool RunRefundEvent(const ProviderEvent& event);
  bool StoreMethod(const ProviderEvent& event);
  void LogError(std::string_view what, const sql::SqlError& error) const;

  const Options options_;
  PaymentStore& store_;
  PaymentProvider& provider_;
  LedgerPort& ledger_;
  PaymentMetrics& metrics_;
  std::atomic<bool> stopping_ = false;
};

// Id of the ledger's command that posts the credit of a charge. It is the same for every engine
// that finds the charge paid.
std::string CreditCommandId(const std::string& provider, const std::string& provider_id);
// 32 hexadecimal digits derived from these texts.
std::string DerivedId(std::string_view kind, std::string_view workspace, std::string_view key);

}  // namespace tollgate::billing::payments
