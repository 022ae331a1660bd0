// The rules of auto-reload (docs/design/charging.md): pure functions of its row and of what a
// charge depends on.
#pragma once

#include <optional>
#include <vector>

#include "services/billing/payments/ledger_port.h"
#include "services/billing/payments/payment_types.h"

namespace tollgate::billing::payments {

// Why auto-reload is paused. The last three end by themselves; the bank's confirmation ends when
// its page is paid.
inline constexpr char kPausedWithoutMethod[] = "no_payment_method";
inline constexpr char kPausedByRefund[] = "refunded";
inline constexpr char kPausedByDispute[] = "disputed";
inline constexpr char kPausedByFraudWarning[] = "fraud_warning";
inline constexpr char kPausedByDebit[] = "debited";
inline constexpr char kPausedByCardDispute[] = "card_disputed";
inline constexpr char kPausedByCardRefusal[] = "card_refused";
inline constexpr char kPausedForConfirmation[] = "authentication_required";
inline constexpr char kPausedByCeiling[] = "monthly_ceiling";
inline constexpr char kPausedByHour[] = "hourly_limit";
inline constexpr char kPausedByDay[] = "daily_limit";

// Charges of auto-reload per workspace that may be sent within an hour and within a day.
struct ChargeLimits {
  int per_hour = 3;
  int per_day = 10;
};

// What the ledger says about a workspace.
struct LedgerFacts {
  Balance balance;
  std::optional<LedgerPort::Lowering> lowered;
  // The database was restored, and no reconciliation has run since: credit may be missing.
  bool restored = false;
};

// What a charge depends on, read under the workspace's lock.
struct ChargeFacts {
  LedgerFacts ledger;
  int64_t on_its_way_nano_usd = 0;     // paid, not yet in the ledger
  int64_t month_charged_nano_usd = 0;  // by other charges of auto-reload this month
  // The card to charge.
  std::string customer;
  std::string method;
  bool card_saved = false;
  bool card_disputed = false;
  bool card_refused = false;
  std::vector<int64_t> sent_us;  // other charges of auto-reload, newest first
};

struct Verdict {
  enum class Kind : uint8_t {
    kCharge,
    kEnough,  // the balance is not below the threshold
    kWait,    // not now; nothing changes
    kPause,   // until until_us, or until a person resumes
  };
  Kind kind = Kind::kWait;
  std::string reason;    // of kPause, and why a charge that was not sent is withdrawn
  int64_t until_us = 0;  // 0: until a person resumes
};

// Whether this charge may be sent now. Reads only the settings of the row, never its state.
Verdict MayCharge(const AutoReload& reload, const ChargeFacts& facts, const ChargeLimits& limits,
                  int64_t now_us);

// What a decline says about the card.
enum class Refusal : uint8_t {
  kForNow,      // another try later may succeed
  kForGood,     // stolen, lost, closed or expired: the card is never charged again
  kUnconfirmed  // the bank wants the customer to confirm the charge
};
// Reads the reason of a declined payment.
Refusal RefusalOf(std::string_view reason);

// Delay after the first, second and third decline in a row; 0: pause.
int64_t BackoffUs(int64_t declines);
// Resets the charged amount at the start of a UTC month.
void RollMonth(AutoReload& reload, int64_t now_us);
// A charge that had ended was paid after all: it counts against the ceiling again.
void Charge(AutoReload& reload, const Payment& payment);
// A charge that ended without money no longer counts against the ceiling.
void Uncharge(AutoReload& reload, const Payment& payment);
// Applies a declined or cancelled charge of this reload. Returns whether the reload is paused now.
bool Decline(AutoReload& reload, const Payment& payment, int64_t now_us);
// Ends a pause or a backoff. The count of declines stays.
void Continue(AutoReload& reload);
// Ends a pause or a backoff, and counts declines from zero. in_flight: the newest charge, if it has
// not ended.
void Resume(AutoReload& reload, const Payment* in_flight);
void Pause(AutoReload& reload, std::string reason, int64_t until_us);

}  // namespace tollgate::billing::payments
