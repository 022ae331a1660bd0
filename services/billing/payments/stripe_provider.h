// Stripe over its HTTP API. Our id is the Idempotency-Key, and also in the metadata of every
// object, so that the object can be found after a lost answer and after the key has expired.
#pragma once

#include <memory>
#include <string>

#include "services/billing/payments/provider.h"

namespace tollgate::billing::payments {

// API version that this code uses. Stripe keeps serving it.
inline constexpr char kStripeVersion[] = "2026-08-26.dahlia";

struct StripeOptions {
  std::string base_url = "https://api.stripe.com";
  std::string secret_key;
  // URLs to which Stripe's pages redirect the customer.
  std::string success_url;
  std::string cancel_url;
  int connect_timeout_ms = 5'000;
  int timeout_ms = 20'000;
};

std::unique_ptr<PaymentProvider> MakeStripeProvider(StripeOptions options);

}  // namespace tollgate::billing::payments
