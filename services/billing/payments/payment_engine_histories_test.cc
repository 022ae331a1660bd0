// Random histories of a workspace with auto-reload: spending, grants, debits, top-ups, refunds,
// also in the provider's dashboard, disputes, cards, declines, switches, closings, clocks that
// jump, outages and errors of the provider, charges that appear after their error, lost, late and
// reordered webhooks, restores of an earlier database, two engines that crash and overtake each
// other. After every round the charges that the provider got are compared with the rules of
// docs/design/charging.md; in the end provider, payments and ledger tie out.
//
// TOLLGATE_CHARGING_HISTORIES: number of histories, default 40 (./dev prove charging: 10,000).
// TOLLGATE_CHARGING_SEED: seed of all random choices, default 1. A failure names its history.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <map>
#include <random>
#include <set>
#include <utility>

#include "common/base/clock.h"
#include "common/base/time_units.h"
#include "services/billing/payments/payment_engine.h"
#include "services/billing/payments/reconcile.h"
#include "services/billing/payments/testing/payment_world.h"
#include "services/billing/payments/testing/workspace_backup.h"

namespace tollgate::billing::payments {
namespace {

using Intent = ScriptedStripe::Intent;

constexpr int64_t kThreshold = 5 * kNanoPerUsd;
constexpr int64_t kCeiling = 80 * kNanoPerUsd;
constexpr int kSteps = 60;

int64_t SettingOf(const char* name, int64_t fallback) {
  const char* text = std::getenv(name);
  return text ? std::atoll(text) : fallback;
}

class HistoriesTest : public PaymentTest {
 protected:
  int Below(int bound) { return static_cast<int>(random_() % static_cast<uint64_t>(bound)); }

  // What a person and the provider know about the workspace.
  struct Model {
    std::string workspace;
    std::string customer;
    bool enabled = false;
    bool stopped = false;            // a refund was made since a person confirmed
    bool restored = false;           // no reconciliation has found all that was lost
    int64_t confirmed_us = 0;        // newest lowering of the balance that the person knew
    std::vector<int64_t> sent;       // times of charges of the saved card
    std::set<std::string> payments;  // whose charges were sent
    std::set<std::string> given_up;  // payments
    std::vector<std::string> disputes;
    int operations = 0;
    int cards = 0;
  };

  int64_t NewestLoweringUs() {
    int64_t newest_us = 0;
    auto done = database_->Transact(sql::TxMode::kRead, [&](sql::Connection& db) {
      return db.Query(
          "SELECT at_us, decided_us FROM command WHERE workspace = $1 AND state = 1"
          " AND kind IN (20, 22, 25)",
          {model_.workspace},
          [&](const sql::Row& row) { newest_us = std::max({newest_us, row.Int(0), row.Int(1)}); });
    });
    EXPECT_TRUE(done.ok());
    return newest_us;
  }
  // Cards that may be charged.
  std::vector<std::string> FreeCards() {
    std::vector<std::string> free;
    auto done = calm_->store.Run(model_.workspace, clock_.WallUs(),
                                 [&](WorkspaceTx& tx) -> sql::SqlResult<void> {
                                   free.clear();
                                   auto methods = tx.Methods();
                                   if (!methods.ok()) return Fail{methods.error()};
                                   for (const PaymentMethod& method : *methods) {
                                     auto disputed = tx.IsMethodDisputed(method.id);
                                     if (!disputed.ok()) return Fail{disputed.error()};
                                     if (!*disputed && method.refused.empty()) {
                                       free.push_back(method.id);
                                     }
                                   }
                                   return {};
                                 });
    EXPECT_TRUE(done.ok());
    return free;
  }
  Balance BalanceNow() { return *LedgerServicePort(*ledger_).ReadBalance(model_.workspace); }
  std::vector<Payment> PaymentsNow() {
    return *calm_->store.ListPayments(model_.workspace, 1000, {});
  }

  // Runs what may send charges, and compares the new ones with the rules before it.
  template <typename Work>
  void Watched(Work work) {
    const Balance balance = BalanceNow();
    const auto cards = FreeCards();
    const int64_t lowered_us = NewestLoweringUs();
    std::vector<std::string> in_flight;
    for (const Payment& payment : PaymentsNow()) {
      if (payment.reload && payment.in_flight()) in_flight.push_back(payment.id);
    }
    work();
    // What has ended meanwhile made room for the next charge.
    std::erase_if(in_flight, [&](const std::string& id) {
      return !calm_->admin.Get(model_.workspace, id)->in_flight();
    });
    for (const Intent& intent : stripe_.intents(seen_intents_)) {
      ++seen_intents_;
      if (intent.workspace != model_.workspace || !intent.session.empty()) continue;
      ++charges_;
      const int64_t now_us = clock_.WallUs();
      late_charges_ += intent.late ? 1 : 0;
      if (intent.late) continue;  // it was sent before
      EXPECT_TRUE(std::ranges::count(cards, intent.method))
          << "the card is deleted, disputed or refused for good";
      EXPECT_TRUE(model_.enabled) << "auto-reload is off";
      EXPECT_FALSE(model_.restored) << "credit that was paid for may be missing";
      EXPECT_FALSE(model_.stopped) << "a refund was made";
      EXPECT_LE(lowered_us, model_.confirmed_us) << "not only spending lowered the balance";
      EXPECT_LT(balance.paid_nano_usd + balance.granted_nano_usd, kThreshold);
      EXPECT_EQ(balance.frozen, Freeze::kNone);
      EXPECT_EQ(balance.receivable_nano_usd, 0);
      EXPECT_LT(std::ranges::count_if(model_.sent, [&](int64_t t) { return t > now_us - kHourUs; }),
                3);
      EXPECT_LT(std::ranges::count_if(model_.sent, [&](int64_t t) { return t > now_us - kDayUs; }),
                10);
      for (const std::string& other : in_flight) {
        EXPECT_EQ(other, intent.payment) << "another charge is in flight";
      }
      if (model_.payments.insert(intent.payment).second) model_.sent.push_back(now_us);
    }
  }

  void RunEngines() {
    Watched([&] { replicas_[static_cast<size_t>(Below(2))]->engine.RunOnce(); });
  }
  // The other engine works while this one is stopped, perhaps until its claims have ended.
  void Overtake(Replica& other) {
    overtaking_ = true;
    ++overtaken_;
    if (Below(2) == 0) Advance(70);
    other.engine.RunOnce();
    overtaking_ = false;
  }
  std::string NextId() { return "op-" + std::to_string(++model_.operations); }
  void Confirmed() {
    model_.stopped = false;
    model_.confirmed_us = std::max(model_.confirmed_us, NewestLoweringUs());
  }
  void AddCard() {
    const std::string card = "pm_" + model_.workspace + "_" + std::to_string(++model_.cards);
    auto done = calm_->store.Run(model_.workspace, clock_.WallUs(), [&](WorkspaceTx& tx) {
      return tx.Put(PaymentMethod{model_.workspace, card, "stripe", "visa", "4242", "2029-04",
                                  clock_.WallUs()});
    });
    ASSERT_TRUE(done.ok());
  }
  void Switch(bool on) {
    const bool was = model_.enabled;
    const int64_t ten = kTen;
    auto set = calm_->admin.UpdateReload(model_.workspace, {on, kThreshold, ten, kCeiling},
                                         audit::Origin{"ann"});
    ASSERT_TRUE(set.ok()) << set.error().message;
    model_.enabled = on;
    if (on && !was) Confirmed();
  }
  void RefundSome() {
    for (const Payment& payment : PaymentsNow()) {
      const int64_t left = payment.amount_nano_usd - payment.refunded_nano_usd;
      if (!payment.credited || payment.disputed || left <= 0) continue;
      const int64_t amount = std::min<int64_t>(left, (1 + Below(10)) * kNanoPerUsd);
      bool taken = false;
      Watched([&] {
        taken = calm_->admin
                    .RefundPayment(model_.workspace, payment.id, amount, "left", NextId(), "ann")
                    .ok();
      });
      if (model_.enabled && taken) model_.stopped = true;
      return;
    }
  }
  // A person of the operator refunds a charge in the provider's dashboard.
  void RefundElsewhere() {
    for (const Intent& intent : stripe_.intents(first_intent_)) {
      const int64_t left = intent.amount_cents - intent.refunded_cents;
      if (intent.workspace != model_.workspace || intent.status != "succeeded") continue;
      if (intent.disputed || left == 0 || Below(2) == 0) continue;
      stripe_.RefundElsewhere(intent.id, std::min<int64_t>(left, (1 + Below(10)) * 100));
      ++elsewhere_;
      return;
    }
  }
  // Takes the credit of what was refunded in the provider's dashboard, or by us before a restore.
  // Returns whether nothing is left to take.
  bool AdoptRefunds() {
    bool done = true;
    for (const Payment& payment : PaymentsNow()) {
      if (!payment.credited || payment.provider_id.empty()) continue;
      const auto elsewhere = calm_->engine.RefundsElsewhere(payment);
      if (!elsewhere.ok()) return false;
      for (const RefundView& view : *elsewhere) {
        const auto taken = calm_->admin.RefundPayment(model_.workspace, payment.id,
                                                      view.amount_cents * kNanoPerCent,
                                                      "made elsewhere", NextId(), "ann", view.id);
        if (model_.enabled && taken.ok()) model_.stopped = true;
        if (!taken.ok()) refusal_ = view.id + ": " + taken.error().message;
        done &= taken.ok();
      }
    }
    return done;
  }
  // The customer pays for credit on a page.
  void BuySome() {
    const auto made = calm_->admin.Create(model_.workspace, kTen, NextId(), "ann");
    if (made.ok() && !made->checkout_id.empty()) stripe_.PayPage(made->checkout_id);
  }
  void Backup() {
    ASSERT_TRUE(backup_->Take(model_.workspace).ok());
    backed_up_ = model_;
    backup_us_ = clock_.WallUs();
  }
  // The database is what it was at the backup. The provider is not, nor are ids given again.
  void Restore() {
    if (backed_up_.workspace != model_.workspace) return;
    ++restores_;
    ASSERT_TRUE(backup_->Restore(model_.workspace).ok());
    Model now = std::exchange(model_, backed_up_);
    model_.disputes = std::move(now.disputes);
    model_.operations = now.operations;
    model_.cards = now.cards;
    model_.restored = true;
    MarkRestored(clock_.WallUs() - backup_us_);
  }
  void ReconcileNow() {
    const auto books = Reconcile(calm_->engine, start_us_, clock_.WallUs() + kSecondUs, true);
    if (!books.ok()) return;
    adopted_ += static_cast<int>(books->adopted);
    if (!books->reloads_wait) model_.restored = false;
  }
  void DisputeSome() {
    for (const Intent& intent : stripe_.intents(first_intent_)) {
      if (intent.workspace != model_.workspace || intent.status != "succeeded") continue;
      if (intent.disputed || intent.refunded_cents > 0 || Below(2) == 0) continue;
      model_.disputes.push_back(
          stripe_.Dispute(intent.id, Below(3) == 0 ? "warning_needs_response" : "needs_response"));
      return;
    }
  }
  void CloseSome() {
    if (model_.disputes.empty()) return;
    stripe_.CloseDispute(model_.disputes.back(), Below(2) == 0 ? "won" : "lost");
    model_.disputes.pop_back();
  }
  void DeliverSome(bool all) {
    auto events = std::exchange(late_events_, {});
    for (ScriptedStripe::Event& event : stripe_.TakeEvents()) events.push_back(std::move(event));
    std::shuffle(events.begin(), events.end(), random_);
    for (const ScriptedStripe::Event& event : events) {
      const int fate = all ? 7 : Below(8);
      if (fate == 0) late_events_.push_back(event);
      if (fate <= 1) continue;
      EXPECT_EQ(Deliver(*calm_, event.body), 200);
      if (Below(4) == 0) EXPECT_EQ(Deliver(*calm_, event.body), 200);
    }
  }
  void SpendSome() {
    const Balance balance = BalanceNow();
    const int64_t available =
        balance.paid_nano_usd + balance.granted_nano_usd - balance.held_nano_usd;
    const int64_t amount =
        std::min<int64_t>(available, (1 + Below(500)) * kNanoPerCent) / kNanoPerCent * kNanoPerCent;
    if (balance.frozen == Freeze::kNone && amount > 0) Spend(model_.workspace, amount);
  }
  void DebitSome() {
    const Balance balance = BalanceNow();
    const int64_t amount = std::min<int64_t>(balance.paid_nano_usd - balance.held_nano_usd,
                                             (1 + Below(200)) * kNanoPerCent);
    if (amount > 0) Adjust(model_.workspace, CommandKind::kDebitAdjustment, amount, NextId());
  }
  void CancelNewest() {
    const auto reload = calm_->admin.GetReload(model_.workspace);
    if (!reload.ok() || reload->reload_id.empty()) return;
    const bool give_up = Below(2) == 0;
    Watched([&] {
      const auto cancelled = calm_->admin.Cancel(model_.workspace, reload->reload_id, NextId(),
                                                 audit::Origin{"ann"}, give_up);
      if (give_up && cancelled.ok()) model_.given_up.insert(reload->reload_id);
    });
  }
  void ChooseSome() {
    const auto methods = calm_->admin.Methods(model_.workspace);
    if (!methods.ok() || methods->empty()) return;
    EXPECT_TRUE(
        calm_->admin.ChooseMethod(model_.workspace, methods->back().id, audit::Origin{"ann"}).ok());
  }
  // The customer pays on the page that confirms a charge to the bank.
  void PayConfirmPage() {
    const auto reload = calm_->admin.GetReload(model_.workspace);
    if (!reload.ok() || reload->confirm_page.empty()) return;
    const auto page = calm_->admin.Get(model_.workspace, reload->confirm_page);
    if (page.ok() && !page->checkout_id.empty()) stripe_.PayPage(page->checkout_id);
  }
  // A workspace without credit closes, and may be opened again by what comes next.
  void Close() {
    const Balance balance = BalanceNow();
    const int64_t left = balance.paid_nano_usd + balance.granted_nano_usd;
    if (balance.frozen != Freeze::kNone || balance.receivable_nano_usd > 0 ||
        balance.held_nano_usd > 0 || left % kNanoPerCent != 0) {
      return;
    }
    if (left > 0) Spend(model_.workspace, left);
    model_.enabled = false;
    Watched([&] { EXPECT_TRUE(calm_->admin.PrepareClose(model_.workspace, "auth").ok()); });
    EXPECT_TRUE(calm_->admin.Methods(model_.workspace)->empty());
  }
  void Jump() {
    constexpr int64_t kSeconds[] = {70, 70, 700, 3700, 3700, 90'000, 40 * 86'400};
    Advance(kSeconds[Below(7)]);
  }
  void BreakProvider() {
    ScriptedStripe::Faults faults;
    switch (Below(12)) {
      case 6:
        faults.error_late = 700;
        break;
      case 7:
      case 10:
      case 11:
        faults.charge_error = 1000;
        break;
      case 8:
        faults = {.error_before = 200, .error_after = 200, .error_late = 200, .not_found_yet = 200};
        break;
      case 9: {
        const auto free = FreeCards();
        const char* codes[] = {"stolen_card", "expired_card", "authentication_required", ""};
        if (!free.empty()) stripe_.DeclineCard(free.front(), codes[Below(4)]);
        break;
      }
      case 0:
        faults.busy = 1000;
        break;
      case 1:
        faults.lost_before = 500;
        break;
      case 2:
        faults.lost_after = 500;
        break;
      case 3:
        faults = {.lost_before = 100, .lost_after = 100, .error_after = 100, .not_found_yet = 200};
        break;
      case 4:
        declined_ = !declined_;
        stripe_.DeclineCustomer(model_.customer, declined_ ? "card_declined" : "");
        break;
      default:
        break;
    }
    stripe_.SetFaults(faults);
  }

  void Step() {
    switch (Below(58)) {
      case 48:
      case 49:
        return RefundElsewhere();
      case 50:
        return (void)AdoptRefunds();
      case 51:
        return BuySome();
      case 52:
        return Backup();
      case 53:
      case 57:
        return Restore();
      case 56:
        return calm_->engine.PollDisputes();
      case 54:
      case 55:
        return Watched([&] { ReconcileNow(); });
      case 40:
        return ChooseSome();
      case 41:
        return PayConfirmPage();
      case 42:
        return Below(3) == 0 ? Close() : AddCard();
      case 43:
      case 44:
        return Jump();
      case 45:
      case 46:
        return stripe_.SetFaults({});
      case 47:
        return BreakProvider();
      case 0:
        return Switch(false);
      case 1:
      case 2:
        return Switch(true);
      case 3: {
        const auto resumed = calm_->admin.ResumeReload(model_.workspace, audit::Origin{"ann"});
        if (resumed.ok() && !resumed->paused()) Confirmed();
        return;
      }
      case 4:
        return RefundSome();
      case 5:
        return DisputeSome();
      case 6:
        return CloseSome();
      case 7:
        return DebitSome();
      case 8:
        return Grant(model_.workspace, (1 + Below(300)) * kNanoPerCent, NextId());
      case 9:
        return AddCard();
      case 10: {
        const auto methods = calm_->admin.Methods(model_.workspace);
        if (methods.ok() && !methods->empty()) {
          (void)calm_->admin.DeleteMethod(model_.workspace, methods->front().id,
                                          audit::Origin{"ann"});
        }
        return;
      }
      case 11:
        return BreakProvider();
      case 12:
        return CancelNewest();
      case 13:
      case 14:
        return DeliverSome(false);
      case 15:
        return Advance(Below(2) == 0 ? 3700 : 70);
      default:
        SpendSome();
        Advance(1 + Below(120));
        return RunEngines();
    }
  }

  // The provider works and webhooks arrive: everything ends, and the ledger ties out.
  void Finish() {
    stripe_.SetFaults({});
    Switch(false);
    crashing_ = false;
    for (int i = 0; i < 14; ++i) {
      DeliverSome(true);
      Watched([&] { calm_->engine.RunOnce(); });
      Advance(i < 8 ? 70 : i < 12 ? 3700 : 90'000);
    }
    Settle();
    ExpectBooksTieOut();
    ExpectLimitsKept();
    ExpectVerified(*calm_, model_.workspace);
  }
  // An operator reconciles until nothing is left to adopt. Credit that was spent cannot be taken,
  // so the customer pays for more.
  void Settle() {
    for (int i = 0; i < 12; ++i) {
      ReconcileNow();
      const bool done = AdoptRefunds();
      calm_->engine.RunOnce();
      Advance(3700);
      if (done) return;
      BuySome();
      Advance(60);
      calm_->engine.RunOnce();
    }
    ADD_FAILURE() << "refunds of the provider cannot be adopted: " << refusal_;
  }
  // What the provider kept, what the payments say and what the ledger posted is the same.
  void ExpectBooksTieOut() {
    int64_t kept = 0, credited = 0, posted = 0;
    for (const Intent& intent : stripe_.intents(first_intent_)) {
      if (intent.workspace != model_.workspace || intent.status != "succeeded") continue;
      kept += (intent.amount_cents - intent.refunded_cents) * kNanoPerCent;
    }
    for (const Payment& payment : PaymentsNow()) {
      const bool open_page = !payment.reload && payment.state == PaymentState::kSubmitted;
      EXPECT_TRUE(open_page || !payment.in_flight()) << payment.id << " " << Name(payment.state);
      if (payment.credited) credited += payment.amount_nano_usd - payment.refunded_nano_usd;
      second_keys_ += payment.keys > 1 ? 1 : 0;
    }
    for (const auto& posting : *LedgerServicePort(*ledger_).ReadPostings(model_.workspace)) {
      posted += posting.refund() ? -posting.amount_nano_usd : posting.amount_nano_usd;
    }
    EXPECT_EQ(kept, posted) << "provider and ledger";
    EXPECT_EQ(credited, posted) << "payments and ledger";
    const auto books = Reconcile(calm_->engine, start_us_, clock_.WallUs());
    ASSERT_TRUE(books.ok());
    for (const Difference& one : books->differences) {
      ADD_FAILURE() << Name(one.kind) << " " << one.payment << " " << one.provider_id;
    }
  }
  void ExpectLimitsKept() {
    const auto payments = PaymentsNow();
    std::map<int32_t, int64_t> charged;  // by month
    for (const Payment& payment : payments) {
      if (!payment.reload) continue;
      const int64_t amount = payment.credited ? payment.amount_nano_usd : 0;
      if (!model_.given_up.contains(payment.id)) charged[UtcMonth(payment.created_us)] += amount;
      if (RefusalOf(payment.reason) != Refusal::kForGood) continue;
      for (const Payment& later : payments) {
        EXPECT_FALSE(later.method == payment.method && later.created_us > payment.updated_us)
            << "charged after " << payment.reason;
      }
    }
    for (const auto& [month, amount] : charged) EXPECT_LE(amount, kCeiling) << month;
  }

  void Run(int64_t number) {
    model_ = {};
    model_.workspace = "history-" + std::to_string(number);
    declined_ = false;
    crashing_ = false;
    stripe_.SetFaults({});
    late_events_.clear();
    calm_->port.CountFrom(ledger_->NowUs());
    model_.customer = *calm_->engine.EnsureCustomer(model_.workspace);
    first_intent_ = seen_intents_;
    start_us_ = clock_.WallUs();
    AddCard();
    auto made = calm_->admin.Create(model_.workspace, kTen, "first", "ann");
    ASSERT_TRUE(made.ok()) << made.error().message;
    stripe_.PayPage(made->checkout_id);
    Advance(60);
    Watched([&] { calm_->engine.RunOnce(); });
    crashing_ = true;
    Switch(true);
    for (int step = 0; step < kSteps && !HasFailure(); ++step) Step();
    if (!HasFailure()) Finish();
  }

  std::mt19937_64 random_;
  Model model_;
  bool crashing_ = false;
  bool overtaking_ = false;
  bool declined_ = false;
  int crashes_ = 0;
  int overtaken_ = 0;
  int restores_ = 0;
  int adopted_ = 0;    // payments made and disputes followed by reconciliations
  int elsewhere_ = 0;  // refunds made in the provider's dashboard
  int charges_ = 0;
  int late_charges_ = 0;
  int second_keys_ = 0;
  int64_t start_us_ = 0;
  size_t seen_intents_ = 0;
  size_t first_intent_ = 0;
  std::unique_ptr<Replica> calm_;
  std::vector<std::unique_ptr<Replica>> replicas_;
  std::vector<ScriptedStripe::Event> late_events_;
  std::string refusal_;  // of the newest refund that could not be adopted
  std::unique_ptr<WorkspaceBackup> backup_;
  Model backed_up_;
  int64_t backup_us_ = 0;
};
INSTANTIATE_TEST_SUITE_P(All, HistoriesTest,
                         ::testing::Values(sql::Dialect::kSqlite, sql::Dialect::kPostgres),
                         Dialect);

TEST_P(HistoriesTest, NoChargeBreaksARule) {
  const int64_t histories = SettingOf("TOLLGATE_CHARGING_HISTORIES", 40);
  const int64_t seed = SettingOf("TOLLGATE_CHARGING_SEED", 1);
  calm_ = Make();
  backup_ = std::make_unique<WorkspaceBackup>(*database_);
  for (size_t i = 0; i < 2; ++i) {
    PaymentEngine::Options options;
    options.survives = [this, i](std::string_view) {
      if (!crashing_) return true;
      if (!overtaking_ && Below(100) < 5) Overtake(*replicas_[1 - i]);
      const bool crashes = Below(100) < 5;
      crashes_ += crashes ? 1 : 0;
      return !crashes;
    };
    replicas_.push_back(Make(std::move(options)));
  }
  for (int64_t i = 0; i < histories && !HasFailure(); ++i) {
    SCOPED_TRACE("history " + std::to_string(i) + " of seed " + std::to_string(seed));
    random_.seed(static_cast<uint64_t>(seed * 1'000'003 + i));
    Run(i);
  }
  std::printf(
      "CHARGING database=%s histories=%lld charges=%d late=%d second_keys=%d crashes=%d"
      " overtaken=%d restores=%d adopted=%d elsewhere=%d calls=%d seed=%lld\n",
      GetParam() == sql::Dialect::kSqlite ? "sqlite" : "postgres",
      static_cast<long long>(histories), charges_, late_charges_, second_keys_, crashes_,
      overtaken_, restores_, adopted_, elsewhere_, stripe_.calls(), static_cast<long long>(seed));
  EXPECT_GT(
      std::min({charges_, second_keys_, crashes_, overtaken_, restores_, adopted_, elsewhere_}), 0);
}

}  // namespace
}  // namespace tollgate::billing::payments
