// Reads and writes the rows of payments. Every change of a workspace is a transaction that locks
// its row of payment_head. So the changes of one workspace are ordered, also across replicas, and
// each one is in the log.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "common/admin/failure.h"
#include "common/audit/log.h"
#include "common/sql/sql.h"
#include "services/billing/payments/payment_types.h"
#include "services/billing/storage/credit_by_hand.h"
#include "services/billing/storage/request_ids.h"

namespace tollgate::billing::payments {

// Transaction on one workspace, under its lock.
class WorkspaceTx {
 public:
  WorkspaceTx(sql::Connection& db, std::string workspace, int64_t now_us);
  // Takes the lock.
  sql::SqlResult<void> Lock();

  int64_t now_us() const { return now_us_; }
  // Runs this once if the transaction is committed: what is counted and logged has happened.
  void AfterCommit(std::function<void()> then) { after_commit_.push_back(std::move(then)); }
  const std::vector<std::function<void()>>& after_commit() const { return after_commit_; }
  sql::SqlResult<std::optional<Payment>> FindPayment(const std::string& id);
  sql::SqlResult<void> Put(const Payment& payment);
  // Sum of payments whose credit is not yet in the ledger.
  sql::SqlResult<int64_t> PaidNotCredited();
  sql::SqlResult<std::optional<AutoReload>> FindReload();
  // Increments the version.
  sql::SqlResult<void> Put(AutoReload reload);
  sql::SqlResult<std::optional<Refund>> FindRefund(const std::string& id);
  sql::SqlResult<void> Put(const Refund& refund);
  sql::SqlResult<std::vector<Refund>> RefundsOf(const std::string& payment);  // oldest first
  sql::SqlResult<std::string> FindCustomer(const std::string& provider);      // "": none
  sql::SqlResult<void> PutCustomer(const std::string& provider, const std::string& customer);
  sql::SqlResult<void> Put(const PaymentMethod& method);
  sql::SqlResult<bool> RemoveMethod(const std::string& id);  // false: not found
  // Whether the method is saved or was saved before.
  sql::SqlResult<bool> KnowsMethod(const std::string& id);
  // Methods that are not deleted: the default one, then the newest first.
  sql::SqlResult<std::vector<PaymentMethod>> Methods();
  // Makes it the default. False: not found.
  sql::SqlResult<bool> ChooseMethod(const std::string& id);
  // Never charges it again.
  sql::SqlResult<void> RefuseMethod(const std::string& id, const std::string& code);
  sql::SqlResult<std::optional<Dispute>> FindDispute(const std::string& id);
  sql::SqlResult<void> Put(const Dispute& dispute);
  // When the newest charges of auto-reload were sent, newest first, without that payment.
  sql::SqlResult<std::vector<int64_t>> SentReloads(int limit, const std::string& without);
  // Whether a payment with this card is under inquiry, disputed, or its dispute was lost.
  sql::SqlResult<bool> IsMethodDisputed(const std::string& method);
  // Whether a dispute of this payment is open or lost.
  sql::SqlResult<bool> IsDisputed(const std::string& payment);
  // Appends to the log.
  sql::SqlResult<void> Log(std::string subject, std::string_view from, std::string_view to,
                           int64_t amount_nano_usd, std::string_view actor,
                           std::string_view reason);
  // Whether the account may confirm this payment alone (credit_by_hand.h).
  sql::SqlResult<bool> CountCreditByHand(const std::string& account, const Payment& payment,
                                         int64_t limit_nano_usd) {
    return billing::CountCreditByHand(
        db_, {account, workspace_, payment.id, payment.amount_nano_usd}, limit_nano_usd, now_us_);
  }
  // Whether this call was made before, by its request id. content: all parameters of the call.
  sql::SqlResult<SeenRequest> See(const audit::Origin& by, std::string_view content);
  // Like Log, for a call by a person: also writes to the audit log. Must be last in the
  // transaction.
  sql::SqlResult<void> LogCall(const audit::Origin& by, std::string action, std::string subject,
                               std::string_view from, std::string_view to, int64_t amount_nano_usd,
                               std::string_view reason);

 private:
  sql::Connection& db_;
  const std::string workspace_;
  const int32_t shard_;
  const int64_t now_us_;
  int64_t sequence_ = 0;
  std::string head_;
  std::vector<std::function<void()>> after_commit_;
};

class PaymentStore {
 public:
  explicit PaymentStore(sql::Database& database) : database_(database) {}

  sql::SqlResult<void> Migrate();

  // Runs change in a transaction, possibly several times, so change must reset its results each
  // time. An error of change rolls back.
  using Change = std::function<sql::SqlResult<void>(WorkspaceTx&)>;
  sql::SqlResult<void> Run(const std::string& workspace, int64_t now_us, const Change& change);
  // Like Run, for a call with a request id. Sets the failure and changes nothing if another call
  // has used the id; a repetition runs again. content: all parameters of the call.
  struct Call {
    const audit::Origin& by;
    std::string content;
    std::optional<admin::Failure>* failure;
  };
  sql::SqlResult<void> Run(const Call& call, const std::string& workspace, int64_t now_us,
                           const Change& change);

  sql::SqlResult<std::optional<Payment>> FindPayment(const std::string& workspace,
                                                     const std::string& id);
  sql::SqlResult<std::optional<Payment>> FindByProviderId(const std::string& provider_id);
  // Position and filter of a list: payments after this one, newest first.
  struct Position {
    int64_t created_us = INT64_MAX;
    std::string id;
    std::optional<PaymentState> state;  // unset: all
    std::optional<bool> reload;         // whether made by auto-reload
  };
  // Newest first. An empty workspace means all workspaces.
  sql::SqlResult<std::vector<Payment>> ListPayments(const std::string& workspace, int limit,
                                                    const Position& before);
  // Payments made in [start, end), ordered by time.
  sql::SqlResult<std::vector<Payment>> PaymentsBetween(int64_t start_us, int64_t end_us);
  sql::SqlResult<std::vector<Payment>> DuePayments(int64_t now_us, int limit);
  sql::SqlResult<std::vector<Refund>> DueRefunds(int64_t now_us, int limit);
  sql::SqlResult<std::optional<Refund>> FindRefund(const std::string& workspace,
                                                   const std::string& id);
  sql::SqlResult<std::optional<AutoReload>> FindReload(const std::string& workspace);
  // Enabled auto-reloads that may start a charge: idle, or due for a retry.
  sql::SqlResult<std::vector<AutoReload>> TriggerableReloads(int64_t now_us);
  sql::SqlResult<std::vector<PaymentMethod>> Methods(const std::string& workspace);
  sql::SqlResult<std::vector<Refund>> RefundsOf(const std::string& workspace);
  sql::SqlResult<std::vector<PaymentEvent>> Events(const std::string& workspace);
  sql::SqlResult<std::optional<Dispute>> FindDispute(const std::string& workspace,
                                                     const std::string& id);
  sql::SqlResult<std::optional<Restored>> FindRestored();
  // Lets auto-reload go on, unless the database was restored again.
  sql::SqlResult<void> ClearRestored(const Restored& seen);
  // Workspaces whose log does not end where its head is (payment_head), or has none.
  sql::SqlResult<std::vector<std::string>> CutLogs();

  // Writes an audit entry without a change in these tables.
  sql::SqlResult<void> Log(audit::Record record);
  // Stores an event of a webhook once; returns whether it is new. A record is written to the audit
  // log in the same transaction.
  sql::SqlResult<bool> AddEvent(const ProviderEvent& event, const audit::Record* record = nullptr);
  sql::SqlResult<std::vector<ProviderEvent>> DueEvents(int64_t now_us, int limit);
  // Reserves the event for the caller until then. False if it is done or another replica has it.
  sql::SqlResult<bool> ClaimEvent(const ProviderEvent& seen, int64_t until_us);
  // Writes check_us and attempts, unless the claim has expired and another replica has it.
  sql::SqlResult<void> FinishEvent(const ProviderEvent& event, int64_t claimed_until_us);
  // Removes completed events received before this time.
  sql::SqlResult<void> PruneEvents(int64_t before_us);

  struct Counts {
    int64_t unknown_payments = 0;
    int64_t oldest_unknown_us = 0;  // created_us; 0: none
    int64_t paused_reloads = 0;
    int64_t enabled_reloads = 0;
    int64_t due_events = 0;
    int64_t failed_refunds = 0;
    int64_t open_disputes = 0;    // and inquiries; without fraud warnings
    int64_t first_due_us = 0;     // of their evidence; 0: none is asked for
    int64_t waiting_reloads = 0;  // 1: auto-reload waits for a reconciliation
  };
  sql::SqlResult<Counts> Count();
  // Workspaces with a charge of auto-reload that is under way and was requested at this time or
  // later.
  sql::SqlResult<std::vector<std::string>> ReloadingSince(int64_t created_us);

 private:
  static sql::SqlResult<void> CountDisputes(sql::Connection& db, Counts& counts);

  sql::Database& database_;
};

// Recomputes the hashes of a workspace's log. Returns "" or the first error.
std::string CheckEvents(const std::vector<PaymentEvent>& events);

}  // namespace tollgate::billing::payments
