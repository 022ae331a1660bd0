// The endpoint that Stripe calls. It checks the signature over the exact bytes, stores which object
// the event is about, and answers; the engine asks Stripe about the object. If the event cannot be
// stored, it answers 503 and Stripe sends the event again.
#pragma once

#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/clock.h"
#include "common/http/exchange.h"
#include "services/billing/payments/payment_metrics.h"
#include "services/billing/payments/payment_store.h"

namespace tollgate::billing::payments {

inline constexpr char kWebhookPath[] = "/webhooks/stripe";
inline constexpr size_t kMaxWebhookBytes = size_t{256} * 1024;

// Whether an event of this type is about a refund.
bool IsRefundEvent(std::string_view type);
bool IsFraudWarning(std::string_view type);

class Webhook {
 public:
  Webhook(std::vector<std::string> secrets, const Clock& clock, PaymentStore& store,
          PaymentMetrics& metrics)
      : secrets_(std::move(secrets)), clock_(clock), store_(store), metrics_(metrics) {}

  // Blocks on the database. accepted: whether the engine has an event to process now.
  http::HttpResponse Handle(const http::HttpRequest& request, bool& accepted);

 private:
  void LogRefused(std::string_view why, const std::string& peer);

  const std::vector<std::string> secrets_;
  const Clock& clock_;
  PaymentStore& store_;
  PaymentMetrics& metrics_;
  std::mutex mutex_;
  int64_t next_line_us_ = 0;
  int64_t unlogged_ = 0;  // refused since the last log line
};

}  // namespace tollgate::billing::payments
