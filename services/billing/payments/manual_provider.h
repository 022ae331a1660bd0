// Bank transfers: an operator confirms that the money has arrived. The provider makes no calls.
#pragma once

#include "services/billing/payments/provider.h"

namespace tollgate::billing::payments {

class ManualProvider : public PaymentProvider {
 public:
  std::string name() const override { return "manual"; }
  bool manual() const override { return true; }
  ProviderResult<std::string> CreateCustomer(const std::string&) override { return None(); }
  ProviderResult<CheckoutPage> CreateCheckout(const PaymentRef&) override { return None(); }
  ProviderResult<CheckoutPage> CreateSetup(const std::string&, const std::string&,
                                           const std::string&) override {
    return None();
  }
  ProviderResult<SetupView> GetSetup(const std::string&) override { return None(); }
  ProviderResult<void> DetachMethod(const std::string&) override { return None(); }
  ProviderResult<ChargeView> Charge(const PaymentRef&) override { return None(); }
  ProviderResult<ChargeView> Find(const PaymentRef&) override { return None(); }
  ProviderResult<ChargeView> Cancel(const PaymentRef&) override { return None(); }
  ProviderResult<RefundView> Refund(const RefundRef& refund) override {
    // The operator sends the money back. The refund's own id is the reference.
    RefundView view;
    view.id = "manual-" + refund.id;
    view.workspace = refund.workspace;
    view.refund_id = refund.id;
    return view;
  }
  ProviderResult<RefundView> GetRefund(const std::string&) override { return None(); }
  ProviderResult<std::vector<RefundView>> ListRefunds(const std::string&) override {
    return std::vector<RefundView>();
  }
  ProviderResult<DisputeView> GetDispute(const std::string&) override { return None(); }
  ProviderResult<DisputeView> GetFraudWarning(const std::string&) override { return None(); }
  ProviderResult<std::vector<DisputeView>> ListDisputes(int64_t, int64_t) override {
    return std::vector<DisputeView>();
  }
  ProviderResult<ChargePage> ListCharges(int64_t, int64_t, const std::string&) override {
    return ChargePage();
  }

 private:
  static Fail<ProviderError> None() {
    return Fail{ProviderError{ProviderError::Kind::kRefused, "manual_provider",
                              "bank transfers need no calls to a provider"}};
  }
};

}  // namespace tollgate::billing::payments
