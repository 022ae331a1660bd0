#include "services/billing/payments/payment_metrics.h"

#include "common/observability/metrics.h"

namespace tollgate::billing::payments {
namespace {

prometheus::Counter& Payments(const Payment& payment) {
  return metrics::Counter(
      "tollgate_billing_payments_total",
      "Payments that reached a state, by state and whether auto-reload made them.",
      {{"state", std::string(Name(payment.state))}, {"reload", payment.reload ? "yes" : "no"}});
}

prometheus::Counter& Webhooks(const std::string& result) {
  return metrics::Counter("tollgate_billing_webhooks_total",
                          "Webhooks of the payment provider by result.", {{"result", result}});
}

// Indexed by ProviderError::kind.
constexpr const char* kProviderErrors[] = {"not_done", "refused", "unknown"};

prometheus::Counter& ProviderErrors(const char* kind) {
  return metrics::Counter("tollgate_billing_provider_errors_total",
                          "Failed calls of the payment provider by kind.", {{"kind", kind}});
}

prometheus::Counter& ReloadsPaused() {
  return metrics::Counter(
      "tollgate_billing_reloads_paused_total",
      "Auto-reloads that were paused: charges were declined, no payment method, "
      "or the month's ceiling is reached.");
}

prometheus::Counter& Mismatches() {
  return metrics::Counter(
      "tollgate_billing_payment_mismatches_total",
      "Answers of the provider with another amount or currency than the payment. "
      "No credit is posted for them. Page.");
}

prometheus::Counter& CreditRefused() {
  return metrics::Counter("tollgate_billing_payment_credit_refused_total",
                          "Paid payments whose credit the ledger refused. Page.");
}

prometheus::Gauge& UnknownAge() {
  return metrics::Gauge("tollgate_billing_payment_unknown_seconds",
                        "Age of the oldest payment whose result is unknown.");
}

prometheus::Gauge& Paused() {
  return metrics::Gauge("tollgate_billing_reloads_paused", "Enabled auto-reloads that are paused.");
}

prometheus::Gauge& FailedRefunds() {
  return metrics::Gauge("tollgate_billing_refunds_failed",
                        "Refunds that could not be paid out and whose credit is not back yet. "
                        "Page.");
}

prometheus::Counter& RefundFailures() {
  return metrics::Counter("tollgate_billing_refund_failures_total",
                          "Refunds that the provider could not pay out, at once or later. Their "
                          "credit is given back; the customer waits for the money.");
}

prometheus::Counter& AdoptedPayments() {
  return metrics::Counter("tollgate_billing_payments_adopted_total",
                          "Paid charges of ours whose payment was missing, for example after a "
                          "restore, and was made from the provider's answer.");
}

// fraud_warning, or the state of a dispute.
prometheus::Counter& Disputes(const std::string& kind) {
  return metrics::Counter("tollgate_billing_disputes_total",
                          "Disputes that reached a state, inquiries, and fraud warnings of card "
                          "issuers.",
                          {{"kind", kind}});
}

prometheus::Gauge& OpenDisputes() {
  return metrics::Gauge("tollgate_billing_disputes_open",
                        "Disputes and inquiries that the provider has not decided.");
}

prometheus::Gauge& DisputeDue() {
  return metrics::Gauge("tollgate_billing_dispute_due_timestamp_seconds",
                        "Unix time until when evidence for the most urgent dispute can be given "
                        "at the provider; 0: no dispute asks for evidence.");
}

prometheus::Gauge& ReloadsWait() {
  return metrics::Gauge("tollgate_billing_reloads_wait",
                        "1: the database was restored, and auto-reload charges nothing until "
                        "tollgate reconcile has run.");
}

}  // namespace

PaymentMetrics::PaymentMetrics() {
  // All counters exist from the start, so that alerts see them rise from zero.
  for (const char* result :
       {"accepted", "duplicate", "bad_signature", "malformed", "unavailable"}) {
    Webhooks(result);
  }
  for (const char* kind : kProviderErrors) ProviderErrors(kind);
  ReloadsPaused();
  Mismatches();
  CreditRefused();
  UnknownAge();
  Paused();
  FailedRefunds();
  RefundFailures();
  AdoptedPayments();
  for (const char* kind : {"inquiry", "open", "lost", "won", "fraud_warning"}) Disputes(kind);
  OpenDisputes();
  DisputeDue();
  ReloadsWait();
  Payment payment;
  for (const bool reload : {false, true}) {
    payment.reload = reload;
    for (auto state = static_cast<uint8_t>(PaymentState::kRequested);
         state <= static_cast<uint8_t>(PaymentState::kUnknown); ++state) {
      payment.state = static_cast<PaymentState>(state);
      Payments(payment);
    }
  }
}

void PaymentMetrics::OnPayment(const Payment& payment) { Payments(payment).Increment(); }
void PaymentMetrics::OnReloadPaused() { ReloadsPaused().Increment(); }
void PaymentMetrics::OnProviderError(const ProviderError& error) {
  ProviderErrors(kProviderErrors[static_cast<size_t>(error.kind)]).Increment();
}
void PaymentMetrics::OnMismatch() { Mismatches().Increment(); }
void PaymentMetrics::OnWebhook(const std::string& result) { Webhooks(result).Increment(); }
void PaymentMetrics::OnRefundFailed() { RefundFailures().Increment(); }
void PaymentMetrics::OnPaymentAdopted() { AdoptedPayments().Increment(); }
void PaymentMetrics::OnDispute(const Dispute& dispute) {
  Disputes(dispute.fraud_warning ? "fraud_warning" : std::string(Name(dispute.state))).Increment();
}
void PaymentMetrics::OnCreditRefused() { CreditRefused().Increment(); }

void PaymentMetrics::SetCounts(const PaymentStore::Counts& counts, int64_t now_us) {
  const int64_t age_us = counts.oldest_unknown_us > 0 ? now_us - counts.oldest_unknown_us : 0;
  UnknownAge().Set(static_cast<double>(age_us) / 1e6);
  Paused().Set(static_cast<double>(counts.paused_reloads));
  FailedRefunds().Set(static_cast<double>(counts.failed_refunds));
  OpenDisputes().Set(static_cast<double>(counts.open_disputes));
  DisputeDue().Set(static_cast<double>(counts.first_due_us) / 1e6);
  ReloadsWait().Set(static_cast<double>(counts.waiting_reloads));
}

}  // namespace tollgate::billing::payments
