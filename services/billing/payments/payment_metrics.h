// Metrics and alerts of payments.
#pragma once

#include <string>

#include "services/billing/payments/payment_store.h"

namespace tollgate::billing::payments {

class PaymentMetrics {
 public:
  PaymentMetrics();
  void OnPayment(const Payment& payment);  // called when a state is reached
  void OnReloadPaused();
  void OnProviderError(const ProviderError& error);
  void OnMismatch();  // the provider's amount or currency differs
  // result: accepted, duplicate, bad_signature, malformed or unavailable.
  void OnWebhook(const std::string& result);
  void OnCreditRefused();
  void OnRefundFailed();
  void OnPaymentAdopted();
  void OnDispute(const Dispute& dispute);  // called when a state is reached
  void SetCounts(const PaymentStore::Counts& counts, int64_t now_us);
};

}  // namespace tollgate::billing::payments
