// The provider that moves the money of customers: values in, result out, no state of ours. Every
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
    kNotDone,  // surely without effect, for example the connection was refused: repeat it later
    kRefused,  // surely without effect, and a repetition does not help
    kUnknown,  // no or no usable answer: it may have had its effect. Ask by our id.
  };
  Kind kind = Kind::kUnknown;
  std::string code;     // of the provider, or of the transport
  std::string message;  // for logs: without secrets and without data of customers
};

template <typename T>
using ProviderResult = BasicResult<T, ProviderError>;

// One payment as the provider is asked about it.
struct PaymentRef {
  std::string workspace;
  std::string id;  // ours
  int64_t amount_cents = 0;
  std::string customer;     // the provider's
  std::string method;       // the provider's; empty: the customer pays on a page
  std::string provider_id;  // the provider's id of the charge; empty while unknown
  std::string checkout_id;  // the provider's id of the page; empty while unknown or without a page
  int64_t created_us = 0;
};

// What the provider says about a payment now.
struct ChargeView {
  enum class State : uint8_t {
    kNone,  // unknown to the provider
    kOpen,  // not decided yet
    kSucceeded,
    kDeclined,  // will not be paid; reason says why
    kCancelled,
  };
  State state = State::kNone;
  std::string workspace;   // as we told the provider; only in lists
  std::string payment_id;  // the same: our id
  std::string provider_id;
  int64_t received_cents = 0;
  int64_t refunded_cents = 0;
  std::string currency;
  std::string reason;  // code of a decline
  int64_t created_us = 0;
};

// A page of the provider that the customer visits.
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

// A visited page for saving a card.
struct SetupView {
  std::string workspace;
  std::optional<MethodView> method;  // empty: not done
};

struct RefundRef {
  std::string id;  // ours
  std::string workspace;
  PaymentRef payment;
  int64_t amount_cents = 0;
};

struct RefundView {
  std::string id;  // the provider's
  bool failed = false;
  std::string workspace;  // as we told the provider; empty: not made by us
  std::string refund_id;  // the same: our id
};

struct DisputeView {
  // In the order in which they follow each other; the numbers are those of the database.
  enum class State : uint8_t {
    kInquiry = 1,  // no money was taken from us
    kOpen = 2,     // the provider has taken the money
    kLost = 3,
    kWon = 4,  // and has given it back
  };
  std::string id;
  State state = State::kOpen;
  std::string charge;      // the provider_id of the payment
  std::string workspace;   // as we told the provider, if it says so
  std::string payment_id;  // the same: our id
  int64_t amount_cents = 0;
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
  // Whether an operator confirms payments: then none of the calls below is made.
  virtual bool manual() const = 0;

  virtual ProviderResult<std::string> CreateCustomer(const std::string& workspace) = 0;
  // The page on which the customer pays this amount.
  virtual ProviderResult<CheckoutPage> CreateCheckout(const PaymentRef& payment) = 0;
  // The page on which the customer saves a card.
  virtual ProviderResult<CheckoutPage> CreateSetup(const std::string& workspace,
                                                   const std::string& customer,
                                                   const std::string& id) = 0;
  virtual ProviderResult<SetupView> GetSetup(const std::string& checkout_id) = 0;
  virtual ProviderResult<void> DetachMethod(const std::string& method) = 0;

  // Charges the saved method without the customer.
  virtual ProviderResult<ChargeView> Charge(const PaymentRef& payment) = 0;
  // By the provider's id where it is known, else by ours.
  virtual ProviderResult<ChargeView> Find(const PaymentRef& payment) = 0;
  // Makes sure that it cannot be paid any more; returns what it is afterwards.
  virtual ProviderResult<ChargeView> Cancel(const PaymentRef& payment) = 0;

  virtual ProviderResult<RefundView> Refund(const RefundRef& refund) = 0;
  // By the provider's id.
  virtual ProviderResult<RefundView> GetRefund(const std::string& id) = 0;
  virtual ProviderResult<DisputeView> GetDispute(const std::string& id) = 0;
  // Charges made in [start, end), whether they are ours or not.
  virtual ProviderResult<ChargePage> ListCharges(int64_t start_us, int64_t end_us,
                                                 const std::string& cursor) = 0;
  // For the end of the process: running calls return soon without an answer, later ones at once.
  virtual void Abort() {}
};

}  // namespace tollgate::billing::payments
