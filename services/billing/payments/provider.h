// The provider that moves customers' money. Values in, result out; it keeps no state of ours. Every
// call is idempotent by our id: repeating it with the same id never moves money twice. Calls block.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "common/base/result.h"

namespace tollgate::billing::payments {

inline constexpr int64_t kNanoPerCent = 10'000'000;

struct ProviderError {
  enum class Kind : uint8_t {
    kNotDone,  // certainly without effect, for example connection refused: retry later
    kRefused,  // certainly without effect; a retry does not help
    kUnknown,  // no usable answer: it may have taken effect. Ask by our id.
  };
  Kind kind = Kind::kUnknown;
  std::string code;     // from the provider or the transport
  std::string message;  // for logs: without secrets and customer data
  // The provider keeps this answer and repeats it to a call under the same idempotency key.
  bool kept = false;
};

template <typename T>
using ProviderResult = BasicResult<T, ProviderError>;

// Ends the code of a decline after which the issuer of the card forbids another try.
inline constexpr char kDoNotTryAgain[] = " (do_not_try_again)";

// Identifies a payment in calls to the provider.
struct PaymentRef {
  std::string workspace;
  std::string id;  // our id
  int64_t amount_cents = 0;
  std::string customer;     // provider's id
  std::string method;       // provider's id; empty: the customer pays on a page
  std::string provider_id;  // the provider's id of the charge; empty while unknown
  std::string checkout_id;  // the provider's id of the page; empty while unknown or without a page
  int64_t created_us = 0;
  // Number of idempotency keys that the charge was sent under. The last one is used.
  int64_t keys = 1;
};

// State of a payment at the provider.
struct ChargeView {
  // A charge that succeeded.
  struct Paid {
    std::string id;
    int64_t cents = 0;
  };
  enum class State : uint8_t {
    kNone,  // unknown to the provider
    kOpen,  // undecided
    kSucceeded,
    kDeclined,  // will not be paid; reason has the code
    kCancelled,
  };
  State state = State::kNone;
  std::string workspace;   // as we sent it to the provider; only in lists
  std::string payment_id;  // our id, likewise
  std::string provider_id;
  int64_t received_cents = 0;
  int64_t refunded_cents = 0;
  std::string currency;
  std::string reason;  // code of a decline, perhaps with kDoNotTryAgain
  std::string customer;
  std::string method;   // the card that was charged
  bool reload = false;  // auto-reload has made it
  int64_t created_us = 0;
  // All charges of the payment that succeeded. Only of payments with several keys.
  std::vector<Paid> paid;
};

// A page of the provider for the customer.
struct CheckoutPage {
  std::string id;
  std::string url;
};

struct MethodView {
  std::string id;
  std::string customer;
  std::string brand;
  std::string last4;
  std::string expiry;  // "2029-04"
};

// A page for saving a card that the customer has visited.
struct SetupView {
  std::string workspace;
  std::optional<MethodView> method;  // empty: not completed
};

struct RefundRef {
  std::string id;  // our id
  std::string workspace;
  PaymentRef payment;
  int64_t amount_cents = 0;
};

struct RefundView {
  std::string id;  // provider's id
  bool failed = false;
  std::string workspace;  // as we sent it to the provider; empty: not made by us
  std::string refund_id;  // our id, likewise
  std::string charge;     // provider_id of the payment
  int64_t amount_cents = 0;
};

struct DisputeView {
  // In the order in which the states follow each other. The database uses the same numbers.
  enum class State : uint8_t {
    kInquiry = 1,  // no money was taken from us; also a fraud warning
    kOpen = 2,     // the provider has taken the money
    kLost = 3,
    kWon = 4,  // the provider has returned the money, or the inquiry was closed
  };
  std::string id;
  State state = State::kOpen;
  std::string charge;      // provider_id of the payment
  std::string workspace;   // as we sent it to the provider, if the answer has it
  std::string payment_id;  // our id, likewise
  int64_t amount_cents = 0;
  bool fraud_warning = false;
  int64_t due_us = 0;  // until when evidence can be given; 0: none is asked for
};

struct ChargePage {
  std::vector<ChargeView> charges;  // newest first
  std::string next;                 // cursor of the next page; empty at the end
};

class PaymentProvider {
 public:
  virtual ~PaymentProvider() = default;
  // "manual" or "stripe"; stored with each payment.
  virtual std::string name() const = 0;
  // Whether an operator confirms payments. Then none of the calls below is made.
  virtual bool manual() const = 0;

  virtual ProviderResult<std::string> CreateCustomer(const std::string& workspace) = 0;
  // Creates the page on which the customer pays this amount.
  virtual ProviderResult<CheckoutPage> CreateCheckout(const PaymentRef& payment) = 0;
  // Creates the page on which the customer saves a card.
  virtual ProviderResult<CheckoutPage> CreateSetup(const std::string& workspace,
                                                   const std::string& customer,
                                                   const std::string& id) = 0;
  virtual ProviderResult<SetupView> GetSetup(const std::string& checkout_id) = 0;
  virtual ProviderResult<void> DetachMethod(const std::string& method) = 0;

  // Charges the saved method without the customer.
  virtual ProviderResult<ChargeView> Charge(const PaymentRef& payment) = 0;
  // Finds the payment by the provider's id if it is known, else by ours.
  virtual ProviderResult<ChargeView> Find(const PaymentRef& payment) = 0;
  // Makes sure that it can no longer be paid. Returns its state afterwards.
  virtual ProviderResult<ChargeView> Cancel(const PaymentRef& payment) = 0;

  virtual ProviderResult<RefundView> Refund(const RefundRef& refund) = 0;
  // Takes the provider's id.
  virtual ProviderResult<RefundView> GetRefund(const std::string& id) = 0;
  // All refunds of a charge, also those that were not made by us. Takes the provider's id.
  virtual ProviderResult<std::vector<RefundView>> ListRefunds(const std::string& charge) = 0;
  virtual ProviderResult<DisputeView> GetDispute(const std::string& id) = 0;
  // A card issuer's report that a charge is probably fraud. Always an inquiry.
  virtual ProviderResult<DisputeView> GetFraudWarning(const std::string& id) = 0;
  // Lists disputes and fraud warnings made in [start, end), of our charges and of others.
  virtual ProviderResult<std::vector<DisputeView>> ListDisputes(int64_t start_us,
                                                                int64_t end_us) = 0;
  // Lists charges made in [start, end), ours and others.
  virtual ProviderResult<ChargePage> ListCharges(int64_t start_us, int64_t end_us,
                                                 const std::string& cursor) = 0;
  // Called when the process stops: running calls return soon without an answer, later ones at once.
  virtual void Abort() {}
};

}  // namespace tollgate::billing::payments
