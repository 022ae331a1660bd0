// A payment provider for tests: a real HTTP server that imitates Stripe's API, with state,
// idempotency keys, declines and signed events. It can simulate faults: it loses answers before and
// after it has done the work, fails, returns wrong data and repeats itself. As Stripe documents, it
// repeats the first answer to an idempotency key, errors included; a call that did not reach the
// work (no connection, 409, 429, 503) leaves nothing under its key. Events are delivered by the
// tests, so they decide which are late, repeated, out of order or lost.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "common/http/server.h"
#include "common/runtime/loop.h"
#include "services/billing/payments/stripe_provider.h"

namespace tollgate::billing::payments {

class ScriptedStripe {
 public:
  // Faults per 1,000 calls.
  struct Faults {
    int lost_before = 0;    // the connection breaks; nothing was done
    int lost_after = 0;     // the work is done; the answer is lost
    int error_before = 0;   // 500; nothing was done
    int error_after = 0;    // 500; the work is done
    int charge_error = 0;   // 500 to a charge; nothing was done
    int error_late = 0;     // 500; a charge is made after kLateSeconds, anything else never
    int busy = 0;           // 429
    int refused = 0;        // 400
    int garbage = 0;        // the work is done; the answer is not JSON
    int another = 0;        // the answer is about another payment
    int wrong_amount = 0;   // the answer has another amount
    int not_found_yet = 0;  // a list without its newest elements
  };
  struct Event {
    std::string id;
    std::string body;
  };
  struct Intent {
    std::string id;
    std::string customer;
    std::string payment;  // our id
    std::string workspace;
    int64_t amount_cents = 0;
    std::string status;
    std::string method;
    std::string decline_code;
    std::string advice_code;
    std::string cancel_reason;
    int64_t created = 0;
    int64_t refunded_cents = 0;
    bool disputed = false;
    std::string session;  // its page
    bool reload = false;  // from the metadata
    bool late = false;    // made after the answer to its call
  };

  static constexpr int64_t kLateSeconds = 1800;

  explicit ScriptedStripe(uint64_t seed = 1);
  ~ScriptedStripe();

  StripeOptions options() const;
  void SetFaults(const Faults& faults);
  void SetNow(int64_t seconds);
  // Declines this customer's charges with this code from now on; "": accepts them.
  void DeclineCustomer(const std::string& customer, const std::string& code);
  // Declines charges of this card, with the advice of its issuer or "".
  void DeclineCard(const std::string& card, const std::string& code,
                   const std::string& advice = "");
  // The customer pays on the page.
  void PayPage(const std::string& session);
  // A card is declined on the page; the page stays open.
  void FailPage(const std::string& session, const std::string& code);
  void ExpirePage(const std::string& session);
  // The customer saves a card on the page.
  std::string SaveCard(const std::string& session);
  // The customer disputes a charge; returns the dispute's id.
  std::string Dispute(const std::string& intent, const std::string& status = "needs_response");
  // The issuer of the card reports a charge as probable fraud.
  void WarnOfFraud(const std::string& intent);
  void CloseDispute(const std::string& dispute, const std::string& status);
  // Creates a charge that is not ours, made on the provider's own pages.
  std::string ForeignCharge(int64_t cents);
  void SetRefundRefused(bool refused);
  // Creates a refund that an operator makes in the provider's dashboard. Returns its id.
  std::string RefundElsewhere(const std::string& intent, int64_t cents);
  // Makes an accepted refund fail at payout.
  void FailRefund(const std::string& refund);

  // Without the oldest ones.
  std::vector<Intent> intents(size_t without = 0) const;
  int64_t refunded_cents(const std::string& intent) const;
  int calls() const;
  // Number of calls whose path begins with this.
  int calls(const std::string& path) const;
  // All events since the last call, oldest first.
  std::vector<Event> TakeEvents();
  static std::string Sign(const std::string& secret, int64_t seconds, const std::string& body);

 private:
  struct Session {
    std::string id;
    std::string mode;
    std::string customer;
    std::string status = "open";
    std::string intent;
    std::string card;
    std::string payment;
    std::string workspace;
    int64_t amount_cents = 0;
  };
  struct DisputeRow {
    std::string intent;
    std::string status;
    int64_t cents = 0;
    int64_t created = 0;
    int64_t due = 0;
  };
  struct RefundRow {
    std::string id;
    std::string intent;
    std::string key;  // our id
    std::string workspace;
    std::string status = "succeeded";
    int64_t cents = 0;
  };
  struct Reply {
    int status = 200;
    std::string body;
    bool lost = false;
  };
  using Form = std::map<std::string, std::string>;

  // The first answer to a key, status included. It is repeated for a day, whatever the status.
  struct Kept {
    std::string call;  // path and parameters
    Reply reply;
    int64_t at = 0;
  };

  Task<void> Serve(http::Exchange& exchange);
  const Kept* FindKept(const std::string& key);
  Reply Execute(const std::string& method, const std::string& path, const Form& form,
                const std::function<bool(int)>& hits);
  Reply Run(const http::HttpRequest& request);
  Reply Do(const std::string& method, const std::string& path, const Form& form);
  Reply MakeIntent(const Form& form);
  Reply ListIntents(const Form& form);
  Reply MakeSession(const Form& form);
  Reply MakeRefund(const Form& form);
  Reply DoSession(std::string id);
  Reply DoIntent(std::string id);
  Reply FindRefund(const std::string& id) const;
  Reply FindDispute(const std::string& id, const Form& form) const;
  Reply ListDisputes(const std::string& prefix, const Form& form) const;
  std::string RenderDispute(const std::string& id, bool expanded) const;
  Intent& IntentOf(Session& session);  // created on the first attempt
  std::string NewId(const std::string& prefix);
  std::string Render(const Intent& intent) const;
  std::string Render(const Session& session) const;
  static std::string Render(const RefundRow& refund);
  void AddEvent(const std::string& type, const std::string& object);
  static Reply Missing();

  mutable std::mutex mutex_;
  std::mt19937_64 random_;
  Faults faults_;
  int64_t now_ = 1'763'700'000;
  int next_ = 0;
  std::vector<std::string> paths_;  // of all calls
  bool refund_refused_ = false;
  std::map<std::string, Intent> intents_;
  std::vector<std::string> order_;  // intents, oldest first
  std::map<std::string, Session> sessions_;
  std::map<std::string, DisputeRow> disputes_;
  std::vector<RefundRow> refunds_;
  struct DeclineRow {
    std::string code;
    std::string advice;
  };
  std::map<std::string, DeclineRow> declines_;  // by customer or card
  std::map<std::string, Kept> kept_;            // by idempotency key
  std::vector<std::pair<int64_t, Form>> late_;  // charges to make, with their times
  std::vector<Event> events_;
  LoopPool loops_;
  std::unique_ptr<http::Server> server_;
};

}  // namespace tollgate::billing::payments
