// Compares the provider's charges with payments and with the ledger's postings, as a closed sum:
// each top-up and each refund of the ledger belongs to a payment or stands in the result as made by
// hand.
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
    kAmount,         // all have it, but the amounts differ
    kUnknownCharge,  // a charge without a payment of ours, or a second one for a payment
    kLostPayment,    // a charge of ours without its payment, for example after a restore
    kRefund,         // the refunded amounts differ
    kDispute,        // a dispute or fraud warning that is not known here, or not its state
    kLog,            // a workspace's log of changes was tampered with
    kTotal,          // the totals differ, and none of the above says why
  };
  Kind kind = Kind::kMissingCredit;
  std::string workspace;
  std::string payment;
  std::string provider_id;
  int64_t provider_nano_usd = 0;
  int64_t ledger_nano_usd = 0;
};
std::string_view Name(Difference::Kind kind);

// The same money in three books.
struct Totals {
  int64_t provider_nano_usd = 0;
  int64_t payments_nano_usd = 0;
  int64_t ledger_nano_usd = 0;
  int64_t by_hand_nano_usd = 0;  // in the ledger, in addition

  bool tie_out() const {
    return provider_nano_usd == payments_nano_usd && payments_nano_usd == ledger_nano_usd;
  }
};

struct Reconciliation {
  int64_t charges = 0;   // paid charges of the provider
  int64_t payments = 0;  // payments compared
  Totals charged;        // of the compared payments and of what has no payment
  Totals refunded;
  std::vector<Difference> differences;
  // Top-ups and refunds of the ledger that belong neither to a payment of the provider nor to a
  // bank transfer with a reference.
  std::vector<LedgerPort::Posting> by_hand;
  int64_t adopted = 0;        // payments made and disputes followed
  bool reloads_wait = false;  // the database was restored, and this run has not cleared it
};

// Reconciles what was paid, posted, refunded or disputed in [start, end). adopt: makes lost
// payments, posts their credit, and follows disputes. Fails if the provider or the database fails:
// a partial result would be misleading. After a restore it lets auto-reload go on, if the period
// has all that was lost and no credit is missing.
Result<Reconciliation> Reconcile(PaymentEngine& engine, int64_t start_us, int64_t end_us,
                                 bool adopt = false);

}  // namespace tollgate::billing::payments
