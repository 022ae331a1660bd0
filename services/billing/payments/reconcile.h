// Compares the provider's charges with payments and with the ledger's postings, both ways.
#pragma once

#include <string>
#include <vector>

#include "common/error/error.h"
#include "services/billing/payments/payment_engine.h"

namespace tollgate::billing::payments {

struct Difference {
  enum class Kind : uint8_t {
    kMissingCredit,  // charged by the provider, but no credit in the ledger
    kMissingCharge,  // credit in the ledger, but no charge of the provider
    kAmount,         // both have it, but the amounts differ
    kUnknownCharge,  // a charge without a payment of ours, or a second one for a payment
    kRefund,         // the refunded amounts differ
    kLog,            // a workspace's log of changes was tampered with
  };
  Kind kind = Kind::kMissingCredit;
  std::string workspace;
  std::string payment;
  std::string provider_id;
  int64_t provider_nano_usd = 0;
  int64_t ledger_nano_usd = 0;
};
std::string_view Name(Difference::Kind kind);

struct Reconciliation {
  int64_t charges = 0;   // paid charges of the provider
  int64_t payments = 0;  // payments compared
  std::vector<Difference> differences;
};

// Reconciles payments made in [start, end). Fails if the provider or the database fails: a partial
// result would be misleading.
Result<Reconciliation> Reconcile(PaymentEngine& engine, int64_t start_us, int64_t end_us);

}  // namespace tollgate::billing::payments
