// The rows of alerts: plain values. Amounts are integer nano-USD, times are Unix microseconds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tollgate::billing::alerts {

// The database uses the same numbers.
enum class AlertKind : uint8_t {
  kLowBalance = 1,
  kCapPercent = 2,
  kReloadFailed = 3,
  kReloadPaused = 4,
  kBooksDisagree = 5,  // for the operator: the ledger froze the workspace after a failed check
  kDisputeOpened = 6,
  kDisputeWon = 7,
  kDisputeLost = 8,
  kFrozen = 9,  // by an operator or by a dispute
};
std::string_view Name(AlertKind kind);

inline constexpr int kCapPercents[] = {50, 80, 100};
inline constexpr size_t kMaxEmails = 10;
inline constexpr size_t kMaxWebhooks = 10;

struct AlertSetting {
  std::string workspace;
  std::vector<std::string> emails;
  int64_t low_balance_nano_usd = 0;  // 0: off
  std::vector<int> cap_percents{50, 80, 100};
  bool reload_paused = true;
  std::string actor;
  int64_t updated_us = 0;  // 0: never set
};

struct AlertWebhook {
  std::string workspace;
  std::string id;
  std::string url;
  std::string secret;  // never logged
  int64_t created_us = 0;
};

// Whether a notice of this kind and level was sent and its cause still holds. Changed by
// compare-and-set on the version.
struct AlertState {
  AlertKind kind = AlertKind::kLowBalance;
  int level = 0;  // percent; 0 for the other kinds
  bool fired = false;
  int32_t month = 0;  // kCapPercent: month of the notice, YYYYMM
  // kCapPercent: the cap; kLowBalance: the newest entry checked; disputes: time of the newest one
  // that was told.
  int64_t mark = 0;
  int64_t version = 0;  // 0: no row yet
  int64_t changed_us = 0;
};

// The newest dispute that reached a state.
struct DisputeFact {
  int64_t at_us = 0;  // 0: none within the last days
  std::string payment;
  int64_t amount_nano_usd = 0;
};

// Current values of a workspace in the ledger and auto-reload.
struct Facts {
  int64_t available_nano_usd = 0;
  int64_t sequence = 0;  // newest entry
  std::optional<int64_t> cap_nano_usd;
  int32_t month = 0;
  int64_t month_spent_nano_usd = 0;
  bool topped_up = false;  // since the mark of kLowBalance
  bool books_disagree = false;
  bool reload_enabled = false;
  bool reload_paused = false;
  bool reload_declined = false;  // the newest charge was declined
  std::string reload_reason;
  DisputeFact dispute_opened;
  DisputeFact dispute_won;
  DisputeFact dispute_lost;
  bool frozen = false;  // not after a failed check
  bool frozen_by_dispute = false;
  std::string confirm_url;  // page on which the customer confirms a charge to the bank
};

enum class Channel : uint8_t { kMail = 1, kWebhook = 2 };
std::string_view Name(Channel channel);

enum class DeliveryState : uint8_t { kWaiting = 1, kDelivered = 2, kGivenUp = 3 };

// A row of the outbox: one notice for one receiver.
struct Delivery {
  std::string workspace;
  std::string id;      // id of the row
  std::string notice;  // the same for all receivers
  std::string kind;
  std::string payload;  // JSON
  Channel channel = Channel::kMail;
  std::string target;  // address, or id of the webhook
  int64_t attempts = 0;
  int64_t next_us = 0;
  DeliveryState state = DeliveryState::kWaiting;
  std::string last_error;
  int64_t created_us = 0;
};

}  // namespace tollgate::billing::alerts
