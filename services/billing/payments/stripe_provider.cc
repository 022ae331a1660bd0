#include "services/billing/payments/stripe_provider.h"

#include <optional>
#include <utility>

#include "common/base/try.h"
#include "common/http/http_call.h"
#include "services/billing/payments/stripe_client.h"
#include "services/billing/payments/stripe_json.h"

namespace tollgate::billing::payments {
namespace {

using http::Form;
using http::PercentEncode;
using Kind = ProviderError::Kind;

class StripeProvider : public PaymentProvider {
 public:
  explicit StripeProvider(StripeOptions options) : stripe_(std::move(options)) {}

  std::string name() const override { return "stripe"; }
  bool manual() const override { return false; }

  ProviderResult<std::string> CreateCustomer(const std::string& workspace) override {
    TRY(auto answer, stripe_.Create("/v1/customers",
                                    {{"metadata[" + std::string(kWorkspaceKey) + "]", workspace}},
                                    "customer-" + workspace));
    std::string id = TextOf(answer.body.root().Find("id"));
    if (id.empty()) return UnusableAnswer("customer_without_id");
    return id;
  }

  ProviderResult<CheckoutPage> CreateCheckout(const PaymentRef& payment) override {
    Form form{{"mode", "payment"},
              {"customer", payment.customer},
              {"client_reference_id", payment.id},
              {"line_items[0][quantity]", "1"},
              {"line_items[0][price_data][currency]", "usd"},
              {"line_items[0][price_data][unit_amount]", std::to_string(payment.amount_cents)},
              {"line_items[0][price_data][product_data][name]", "Prepaid credit"},
              {"success_url", stripe_.options().success_url},
              {"cancel_url", stripe_.options().cancel_url}};
    AddMetadata(form, "metadata", payment);
    AddMetadata(form, "payment_intent_data[metadata]", payment);
    return Page(stripe_.Create("/v1/checkout/sessions", form, payment.id));
  }

  ProviderResult<CheckoutPage> CreateSetup(const std::string& workspace,
                                           const std::string& customer,
                                           const std::string& id) override {
    const Form form{{"mode", "setup"},
                    {"currency", "usd"},
                    {"customer", customer},
                    {"client_reference_id", id},
                    {"success_url", stripe_.options().success_url},
                    {"cancel_url", stripe_.options().cancel_url},
                    {"metadata[" + std::string(kWorkspaceKey) + "]", workspace}};
    return Page(stripe_.Create("/v1/checkout/sessions", form, id));
  }

  ProviderResult<SetupView> GetSetup(const std::string& checkout_id) override {
    TRY(auto answer, stripe_.Get("/v1/checkout/sessions/" + PercentEncode(checkout_id),
                                 {{"expand[]", "setup_intent.payment_method"}}));
    const json::Value session = answer.body.root();
    SetupView view;
    view.workspace = TextOf(session.Find("metadata").Find(kWorkspaceKey));
    const json::Value intent = session.Find("setup_intent");
    if (TextOf(intent.Find("status")) == "succeeded") {
      view.method = ReadMethod(intent.Find("payment_method"));
      if (view.method->id.empty()) return UnusableAnswer("method_without_id");
    }
    return view;
  }

  ProviderResult<void> DetachMethod(const std::string& method) override {
    auto answer = stripe_.Post("/v1/payment_methods/" + PercentEncode(method) + "/detach", {}, "");
    // The method was detached before: Stripe no longer knows it.
    if (!answer.ok() && answer.error().kind != Kind::kRefused) return Fail{answer.error()};
    return {};
  }

  ProviderResult<ChargeView> Charge(const PaymentRef& payment) override {
    Form form{{"amount", std::to_string(payment.amount_cents)},
              {"currency", "usd"},
              {"customer", payment.customer},
              {"payment_method", payment.method},
              {"payment_method_types[]", "card"},
              {"off_session", "true"},
              {"confirm", "true"},
              {"expand[]", "latest_charge"}};
    AddMetadata(form, "metadata", payment);
    form.emplace_back("metadata[" + std::string(kReloadKey) + "]", "1");
    std::string key = payment.id;
    if (payment.keys > 1) {
      form.emplace_back("metadata[" + std::string(kKeyNumberKey) + "]",
                        std::to_string(payment.keys));
      key += "-" + std::to_string(payment.keys);
    }
    TRY(auto answer, stripe_.Call("POST", "/v1/payment_intents", form, key));
    const json::Value root = answer.body.root();
    if (answer.status < 300) return Checked(ReadIntent(root, true), payment);
    const json::Value error = root.Find("error");
    // Stripe reports a declined card as an error that contains the payment intent.
    if (error.Find("payment_intent").is_object()) {
      ChargeView view = ReadIntent(error.Find("payment_intent"), true);
      if (view.state == ChargeView::State::kOpen) view.state = ChargeView::State::kDeclined;
      if (view.reason.empty()) view.reason = TextOf(error.Find("code"));
      return Checked(std::move(view), payment);
    }
    const ProviderError refused = StripeClient::ErrorOf(answer, true);
    if (refused.kind != Kind::kRefused) return Fail{refused};
    ChargeView view;
    view.state = ChargeView::State::kDeclined;
    view.payment_id = payment.id;
    view.reason = refused.code;
    return view;
  }

  ProviderResult<ChargeView> Find(const PaymentRef& payment) override {
    // A payment with a page ends with its page: a declined attempt leaves the payment intent open.
    if (!payment.checkout_id.empty()) {
      auto answer = stripe_.Get("/v1/checkout/sessions/" + PercentEncode(payment.checkout_id),
                                {{"expand[]", "payment_intent.latest_charge"}});
      if (answer.ok()) return Checked(ReadSession(answer->body.root()), payment);
      if (!IsMissing(answer.error())) return Fail{answer.error()};
    }
    // Each key may have made a charge.
    if (payment.keys > 1) return FindById(payment);
    if (!payment.provider_id.empty()) {
      auto answer = stripe_.Get("/v1/payment_intents/" + PercentEncode(payment.provider_id),
                                {{"expand[]", "latest_charge"}});
      if (!answer.ok()) return NoneIfMissing(answer.error());
      return Checked(ReadIntent(answer->body.root(), payment.checkout_id.empty()), payment);
    }
    // Without a customer nothing has been sent yet.
    if (payment.customer.empty() || !payment.checkout_id.empty()) return ChargeView();
    return FindById(payment);
  }

  ProviderResult<ChargeView> Cancel(const PaymentRef& payment) override {
    std::string path;
    if (!payment.checkout_id.empty()) {
      // Stripe refuses to cancel the payment intent of a page, so the session is expired.
      path = "/v1/checkout/sessions/" + PercentEncode(payment.checkout_id) + "/expire";
    } else if (!payment.provider_id.empty()) {
      path = "/v1/payment_intents/" + PercentEncode(payment.provider_id) + "/cancel";
    }
    if (!path.empty()) {
      auto answer = stripe_.Post(path, {}, "");
      if (!answer.ok() && answer.error().kind != Kind::kRefused) return Fail{answer.error()};
    }
    return Find(payment);
  }

  ProviderResult<RefundView> Refund(const RefundRef& refund) override {
    // Looks for an existing refund first: the idempotency key lasts only a day.
    TRY(auto made, ListRefunds(refund.payment.provider_id));
    bool made_elsewhere = false;  // for example in Stripe's dashboard
    for (RefundView& one : made) {
      if (one.refund_id == refund.id) return std::move(one);
      made_elsewhere |= one.refund_id.empty();
    }
    auto answer = stripe_.Post("/v1/refunds",
                               {{"payment_intent", refund.payment.provider_id},
                                {"amount", std::to_string(refund.amount_cents)},
                                {"metadata[" + std::string(kRefundKey) + "]", refund.id},
                                {"metadata[" + std::string(kWorkspaceKey) + "]", refund.workspace}},
                               refund.id);
    if (!answer.ok()) {
      ProviderError error = answer.error();
      // The money may have been refunded already, so the credit must not become spendable again. A
      // person decides.
      if (error.kind == Kind::kRefused &&
          (made_elsewhere || error.code == "charge_already_refunded")) {
        error.kind = Kind::kUnknown;
      }
      return Fail{error};
    }
    RefundView view = ReadRefund(answer->body.root());
    if (view.id.empty()) return UnusableAnswer("refund_without_id");
    return view;
  }

  ProviderResult<RefundView> GetRefund(const std::string& id) override {
    TRY(auto answer, stripe_.Get("/v1/refunds/" + PercentEncode(id), {}));
    RefundView view = ReadRefund(answer.body.root());
    if (view.id != id) return UnusableAnswer("another_refund");
    return view;
  }

  ProviderResult<std::vector<RefundView>> ListRefunds(const std::string& charge) override {
    std::vector<RefundView> refunds;
    TRY(stripe_.ForEach("/v1/refunds", {{"payment_intent", charge}},
                        [&](json::Value refund) { refunds.push_back(ReadRefund(refund)); }));
    return refunds;
  }

  ProviderResult<DisputeView> GetDispute(const std::string& id) override {
    TRY(auto answer,
        stripe_.Get("/v1/disputes/" + PercentEncode(id), {{"expand[]", "payment_intent"}}));
    DisputeView view = ReadDispute(answer.body.root());
    if (view.id != id) return UnusableAnswer("another_dispute");
    return view;
  }

  ProviderResult<DisputeView> GetFraudWarning(const std::string& id) override {
    TRY(auto answer, stripe_.Get("/v1/radar/early_fraud_warnings/" + PercentEncode(id),
                                 {{"expand[]", "payment_intent"}}));
    DisputeView view = ReadFraudWarning(answer.body.root());
    if (view.id != id) return UnusableAnswer("another_warning");
    return view;
  }

  ProviderResult<std::vector<DisputeView>> ListDisputes(int64_t start_us, int64_t end_us) override {
    std::vector<DisputeView> found;
    Form form = CreatedBetween(start_us, end_us);
    form.emplace_back("expand[]", "data.payment_intent");
    for (const auto& [path, read] :
         {std::pair{"/v1/disputes", &ReadDispute},
          std::pair{"/v1/radar/early_fraud_warnings", &ReadFraudWarning}}) {
      TRY(stripe_.ForEach(path, form, [&](json::Value one) { found.push_back(read(one)); }));
    }
    return found;
  }

  ProviderResult<ChargePage> ListCharges(int64_t start_us, int64_t end_us,
                                         const std::string& cursor) override {
    Form form = CreatedBetween(start_us, end_us);
    form.emplace_back("limit", "100");
    form.emplace_back("expand[]", "data.latest_charge");
    if (!cursor.empty()) form.emplace_back("starting_after", cursor);
    TRY(auto answer, stripe_.Get("/v1/payment_intents", form));
    const json::Value root = answer.body.root();
    if (!root.Find("data").is_array()) return UnusableAnswer("list_without_data");
    ChargePage page;
    for (const json::Value intent : root.Find("data")) {
      page.charges.push_back(ReadIntent(intent, false));
    }
    const json::Value more = root.Find("has_more");
    if (more.is_bool() && more.boolean() && !page.charges.empty()) {
      page.next = page.charges.back().provider_id;
    }
    return page;
  }

  void Abort() override { stripe_.Abort(); }

 private:
  static void AddMetadata(Form& form, const std::string& under, const PaymentRef& payment) {
    form.emplace_back(under + "[" + kPaymentKey + "]", payment.id);
    form.emplace_back(under + "[" + kWorkspaceKey + "]", payment.workspace);
  }

  static Form CreatedBetween(int64_t start_us, int64_t end_us) {
    return {{"created[gte]", std::to_string(start_us / 1'000'000)},
            {"created[lt]", std::to_string(end_us / 1'000'000)}};
  }

  // Checks that the answer is about this payment.
  static ProviderResult<ChargeView> Checked(ChargeView view, const PaymentRef& payment) {
    if (view.payment_id != payment.id) return UnusableAnswer("another_payment");
    return view;
  }

  static bool IsMissing(const ProviderError& error) {
    return error.kind == Kind::kRefused && error.code == "resource_missing";
  }
  static ProviderResult<ChargeView> NoneIfMissing(const ProviderError& error) {
    if (IsMissing(error)) return ChargeView();
    return Fail{error};
  }

  // Searches the list of the customer's payment intents, which is up to date; Stripe's search may
  // lag. If no charge succeeded, that of the last key decides.
  ProviderResult<ChargeView> FindById(const PaymentRef& payment) {
    // A wide margin: a payment not found because our clock is wrong would count as lost.
    constexpr int64_t kClockMarginSeconds = 7 * 86400;
    ChargeView found;
    std::string after;
    while (true) {
      Form form{
          {"customer", payment.customer},
          {"created[gte]", std::to_string(payment.created_us / 1'000'000 - kClockMarginSeconds)},
          {"limit", "100"},
          {"expand[]", "data.latest_charge"}};
      if (!after.empty()) form.emplace_back("starting_after", after);
      TRY(auto answer, stripe_.Get("/v1/payment_intents", form));
      const json::Value root = answer.body.root();
      if (!root.Find("data").is_array()) return UnusableAnswer("list_without_data");
      after.clear();
      for (const json::Value intent : root.Find("data")) {
        ChargeView view = ReadIntent(intent, true);
        after = view.provider_id;
        if (view.payment_id != payment.id) continue;
        if (payment.keys == 1) return view;
        const bool last =
            TextOf(intent.Find("metadata").Find(kKeyNumberKey)) == std::to_string(payment.keys);
        AddCharge(std::move(view), last, payment, found);
      }
      const json::Value more = root.Find("has_more");
      if (!more.is_bool() || !more.boolean() || after.empty()) return found;
    }
  }

  // The list begins with the newest: of several that succeeded, the known or the oldest one counts.
  static void AddCharge(ChargeView view, bool last, const PaymentRef& payment, ChargeView& found) {
    std::vector<ChargeView::Paid> paid = std::move(found.paid);
    const bool succeeded = view.state == ChargeView::State::kSucceeded;
    if (succeeded) paid.push_back({view.provider_id, view.received_cents});
    const bool known =
        found.state == ChargeView::State::kSucceeded && found.provider_id == payment.provider_id;
    if (succeeded ? !known : last && paid.empty()) found = std::move(view);
    found.paid = std::move(paid);
  }

  static ProviderResult<CheckoutPage> Page(ProviderResult<StripeAnswer> answer) {
    if (!answer.ok()) return Fail{answer.error()};
    const json::Value root = answer->body.root();
    CheckoutPage page{TextOf(root.Find("id")), TextOf(root.Find("url"))};
    if (page.id.empty()) return UnusableAnswer("page_without_id");
    return page;
  }

  StripeClient stripe_;
};

}  // namespace

std::unique_ptr<PaymentProvider> MakeStripeProvider(StripeOptions options) {
  return std::make_unique<StripeProvider>(std::move(options));
}

}  // namespace tollgate::billing::payments
