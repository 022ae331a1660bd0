// The rows of payments: plain values. Amounts are integer nano-USD, times Unix microseconds.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "services/billing/payments/provider.h"

namespace tollgate::billing::payments {

// The numbers are those of the proto and of the database.
enum class PaymentState : uint8_t {
  kRequested = 1,
  kSubmitted = 2,
  kAwaitingTransfer = 3,
  kSucceeded = 4,
  kDeclined = 5,
  kCancelled = 6,
  kUnknown = 7,
};
std::string_view Name(PaymentState state);

struct Payment {
  std::string workspace;
  std::string id;  // 32 hexadecimal digits, made from the request id or the trigger
  std::string provider;
  PaymentState state = PaymentState::kRequested;
  bool reload = false;
  int64_t amount_nano_usd = 0;
  std::string customer;
  std::string method;
  std::string provider_id;
  std::string checkout_id;
  std::string checkout_url;
  std::string reason;
  std::string reference;  // of the bank transfer
  std::string actor;
  bool credited = false;
  int64_t refunded_nano_usd = 0;  // taken from the ledger by our refunds
  bool disputed = false;
  int64_t created_us = 0;
  int64_t updated_us = 0;
  int64_t sent_us = 0;   // first time that the charge was sent
  int64_t check_us = 0;  // when the worker looks at it; 0: never
  int64_t attempts = 0;  // checks without a decision

  int64_t amount_cents() const { return amount_nano_usd / kNanoPerCent; }
  PaymentRef ref() const {
    return {workspace, id, amount_cents(), customer, method, provider_id, checkout_id, created_us};
  }
};

enum class ReloadState : uint8_t {
  kIdle = 1,
  kRequested = 2,
  kSubmitted = 3,
  kUnknown = 4,
  kBackoff = 5,
  kPaused = 6,
};
std::string_view Name(ReloadState state);

// One per workspace, so that at most one charge is in flight.
struct AutoReload {
  std::string workspace;
  bool enabled = false;
  int64_t threshold_nano_usd = 0;
  int64_t amount_nano_usd = 0;
  int64_t ceiling_nano_usd = 0;  // of a UTC month
  ReloadState state = ReloadState::kIdle;
  std::string pause_reason;
  std::string reload_id;  // of the newest payment; stays after its end
  int64_t next_us = 0;    // backoff, and a pause that ends by itself; 0: never
  int64_t declines = 0;   // in a row
  int32_t month = 0;      // YYYYMM of month_charged
  int64_t month_charged_nano_usd = 0;
  int64_t version = 0;  // grows with every change
  std::string actor;    // who set it
  int64_t updated_us = 0;

  bool running() const {
    return state == ReloadState::kRequested || state == ReloadState::kSubmitted ||
           state == ReloadState::kUnknown;
  }
};

struct PaymentMethod {
  std::string workspace;
  std::string id;  // the provider's
  std::string provider;
  std::string brand;
  std::string last4;
  std::string expiry;
  int64_t created_us = 0;
  int64_t deleted_us = 0;  // not 0: deleted; the row stays, so that no late event brings it back
};

// The numbers are those of the database.
enum class RefundState : uint8_t {
  kRequested = 1,  // stored
  kTaken = 2,      // the credit is out of the wallet
  kSubmitted = 3,  // the provider has it
  kRefused = 4,    // the ledger refused it: nothing was moved
  kFailed = 5,     // the provider cannot pay it out: the credit is on its way back
  kReturned = 6,   // the credit is back
};
std::string_view Name(RefundState state);

struct Refund {
  std::string workspace;
  std::string id;
  std::string payment;
  RefundState state = RefundState::kRequested;
  int64_t amount_nano_usd = 0;
  std::string provider_id;
  std::string reason;
  std::string actor;
  int64_t created_us = 0;
  int64_t updated_us = 0;
  int64_t check_us = 0;
  int64_t attempts = 0;
};

// A dispute of a payment, as far as we know it.
struct Dispute {
  std::string workspace;
  std::string id;  // the provider's
  std::string payment;
  DisputeView::State state = DisputeView::State::kInquiry;
  int64_t amount_nano_usd = 0;
  bool taken = false;  // the chargeback belongs into the ledger
};
std::string_view Name(DisputeView::State state);

// What a verified webhook named. Its content is never used: the provider is asked.
struct ProviderEvent {
  std::string id;
  std::string type;
  std::string object;     // id of the object
  std::string workspace;  // as the event's metadata says, or ""
  std::string payment;    // the same: our id of the payment
  int64_t received_us = 0;
  int64_t check_us = 0;  // 0: done
  int64_t attempts = 0;
};

// One line of the log of changes.
struct PaymentEvent {
  std::string workspace;
  int64_t sequence = 0;  // gapless within the workspace
  int64_t at_us = 0;
  std::string subject;  // "payment/ID", "reload", "refund/ID", "method/ID", "dispute/ID"
  std::string from;
  std::string to;
  int64_t amount_nano_usd = 0;
  std::string actor;
  std::string reason;
  std::string hash;  // SHA-256 over the hash before and all of the above
};

}  // namespace tollgate::billing::payments
