// A workspace with auto-reload and a saved card, for tests.
#pragma once

#include "services/billing/payments/testing/payment_world.h"

namespace tollgate::billing::payments {

class ChargingWorld : public PaymentTest {
 protected:
  void SetUp() override {
    PaymentTest::SetUp();
    if (!Runs()) return;
    replica_ = Make();
    SaveCard(*replica_, "acme");
  }
  void Run() {
    for (int i = 0; i < 5; ++i) {
      replica_->engine.RunOnce();
      Advance(2);
    }
  }
  // Buys ten USD and turns auto-reload on: below 5 USD, 10 USD are charged.
  Payment Start() {
    Payment bought = Buy(*replica_, "first");
    Run();
    EnableReload(*replica_, "acme");
    Run();
    EXPECT_EQ(Charges(), 0u) << "the balance is above the threshold";
    return bought;
  }
  AutoReload Reload() { return *replica_->admin.GetReload("acme"); }
  void AddCard(const std::string& id) {
    Advance(1);
    auto done = replica_->store.Run("acme", clock_.WallUs(), [&](WorkspaceTx& tx) {
      return tx.Put(
          PaymentMethod{"acme", id, "stripe", "visa", "4242", "2029-04", clock_.WallUs()});
    });
    ASSERT_TRUE(done.ok());
  }
  // Charges of the saved card.
  size_t Charges() {
    size_t count = 0;
    for (const ScriptedStripe::Intent& intent : stripe_.intents()) {
      count += intent.session.empty() ? 1 : 0;
    }
    return count;
  }
  void Resume() {
    ASSERT_TRUE(replica_->admin.ResumeReload("acme", "ann").ok());
    Run();
  }
  Payment Newest() { return *replica_->admin.Get("acme", Reload().reload_id); }

  std::unique_ptr<Replica> replica_;
};

}  // namespace tollgate::billing::payments
