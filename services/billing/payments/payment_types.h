// The rows of payments: plain values. Amounts are integer nano-USD, times are Unix microseconds.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "services/billing/payments/provider.h"

namespace tollgate::billing::payments {

// The proto and the database use the same numbers.
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
  std::string id;  // 32 hexadecimal digits, derived from the request id or trigger
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
  std::string reference;  // reference of the bank transfer
  std::string actor;
  bool credited = false;
  int64_t refunded_nano_usd = 0;  // taken from the ledger by our refunds
  bool disputed = false;
  int64_t created_us = 0;
  int64_t updated_us = 0;
  int64_t sent_us = 0;       // when it was first sent under its last key; 0: certainly never
  int64_t check_us = 0;      // next check by the worker; 0: never
  int64_t attempts = 0;      // checks without a result
  int64_t last_sent_us = 0;  // when the charge was last sent
  int64_t cancel_us = 0;     // when a person asked to cancel it; 0: never
  // First of two persons who confirm a large bank transfer; "": nobody has confirmed it, or one
  // person was enough.
  std::string confirmed_by;
  int64_t keys = 1;  // number of idempotency keys that the charge was sent under
  // When the provider first answered the last key with an error that it keeps; 0: never.
  int64_t failed_us = 0;
  // Until when the provider is asked for further charges, also after the end; 0: never.
  int64_t watch_us = 0;

  // Whether it may still become a charge, or is one that the ledger does not have yet.
  bool in_flight() const {
    return state == PaymentState::kRequested || state == PaymentState::kSubmitted ||
           state == PaymentState::kUnknown || (state == PaymentState::kSucceeded && !credited);
  }
  bool ended() const { return !in_flight() && state != PaymentState::kAwaitingTransfer; }
  int64_t amount_cents() const { return amount_nano_usd / kNanoPerCent; }
  PaymentRef ref() const {
    return {workspace,   id,          amount_cents(), customer, method,
            provider_id, checkout_id, created_us,     keys};
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

// Auto-reload of a workspace. One row per workspace, so that at most one charge is in flight.
struct AutoReload {
  std::string workspace;
  bool enabled = false;
  int64_t threshold_nano_usd = 0;
  int64_t amount_nano_usd = 0;
  int64_t ceiling_nano_usd = 0;  // per UTC month
  ReloadState state = ReloadState::kIdle;
  std::string pause_reason;
  std::string reload_id;  // newest payment; kept after its end
  int64_t next_us = 0;    // end of a backoff or temporary pause; 0: none
  int64_t declines = 0;   // in a row
  int32_t month = 0;      // YYYYMM of month_charged
  int64_t month_charged_nano_usd = 0;
  int64_t version = 0;  // increases with every change
  std::string actor;    // who configured it
  int64_t updated_us = 0;
  // Ledger time of the newest refund, chargeback or debit that a person knew when they last turned
  // auto-reload on, changed or resumed it. A newer one pauses (docs/design/charging.md).
  int64_t confirmed_us = 0;
  // Payment on whose page the customer confirms to the bank that the card may be charged; "": none.
  std::string confirm_page;

  bool paused() const { return state == ReloadState::kPaused; }
  bool running() const {
    return state == ReloadState::kRequested || state == ReloadState::kSubmitted ||
           state == ReloadState::kUnknown;
  }
};

struct PaymentMethod {
  std::string workspace;
  std::string id;  // provider's id
  std::string provider;
  std::string brand;
  std::string last4;
  std::string expiry;
  int64_t created_us = 0;
  int64_t deleted_us = 0;  // 0: not deleted. The row is kept, so that late events cannot restore it
  int64_t chosen_us = 0;   // when a person made it the default; 0: never
  std::string refused;     // code of the decline after which it is never charged again; "": none
};

// The database uses the same numbers.
enum class RefundState : uint8_t {
  kRequested = 1,  // stored
  kTaken = 2,      // the credit was taken from the wallet
  kSubmitted = 3,  // the provider has it
  kRefused = 4,    // the ledger refused it: nothing was moved
  kFailed = 5,     // the provider cannot pay it out; the credit is returned next
  kReturned = 6,   // the credit was returned
};
std::string_view Name(RefundState state);

struct Refund {
  std::string workspace;
  std::string id;
  std::string payment;
  // The provider's id of a second charge of the payment, whose credit is not in the ledger; empty:
  // the payment's own charge.
  std::string extra_charge;
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

// A dispute of a payment, as far as known.
struct Dispute {
  std::string workspace;
  std::string id;  // provider's id
  std::string payment;
  DisputeView::State state = DisputeView::State::kInquiry;
  int64_t amount_nano_usd = 0;
  bool taken = false;  // the ledger must post the chargeback
  bool fraud_warning = false;
  int64_t due_us = 0;     // until when evidence can be given; 0: none is asked for
  int64_t opened_us = 0;  // when we knew that the money was taken; 0: it was not
  int64_t closed_us = 0;  // when we knew that it was won or lost
};
std::string_view Name(DisputeView::State state);

// The database was restored and ends at lost_since_us. Auto-reload waits until a reconciliation.
struct Restored {
  int64_t restored_us = 0;
  int64_t lost_since_us = 0;
};

// Object named by a verified webhook. The event's content is not used: the engine asks the
// provider.
struct ProviderEvent {
  std::string id;
  std::string type;
  std::string object;     // id of the object
  std::string workspace;  // from the event's metadata, or ""
  std::string payment;    // our payment id, from the metadata
  int64_t received_us = 0;
  int64_t check_us = 0;  // 0: done
  int64_t attempts = 0;
};

// One row of the log of changes.
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
  std::string hash;  // SHA-256 over the previous hash and all of the above
};

}  // namespace tollgate::billing::payments
