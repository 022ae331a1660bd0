#include "services/billing/payments/reconcile.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "common/base/try.h"

namespace tollgate::billing::payments {
namespace {

constexpr char kManual[] = "manual";

Fail<Error> ProviderUnavailable(const ProviderError& error) {
  return Unavailable("the payment provider failed: " + error.code + " " + error.message);
}

// What payments and the ledger know of one workspace.
struct Books {
  std::map<std::string, LedgerPort::Posting> postings;  // by command
  std::map<std::string, Payment> payments;              // by id
  std::map<std::string, std::string> credited;       // id of the payment, by its credit's command
  std::map<std::string, int64_t> refunded_nano_usd;  // by payment: refunds that took credit
  std::set<std::string> extra;  // commands of credit for second charges, if there is any
};

// Whether the engine has posted it.
bool IsOfPayments(const LedgerPort::Posting& posting) {
  return posting.command_id.starts_with(posting.refund() ? "refund-" : "pay-");
}

// An operator says that the money has arrived, and nothing proves it.
bool IsUnproved(const Payment& payment) {
  return payment.provider == kManual && payment.reference.empty();
}

bool HoldsCredit(RefundState state) {
  return state == RefundState::kTaken || state == RefundState::kSubmitted ||
         state == RefundState::kFailed;
}

class Reconciler {
 public:
  Reconciler(PaymentEngine& engine, bool adopt)
      : engine_(engine), store_(engine.store()), adopt_(adopt) {}

  Result<Reconciliation> Run(int64_t start_us, int64_t end_us) {
    TRY(ReadCharges(start_us, end_us));
    auto ours = store_.PaymentsBetween(start_us, end_us);
    if (!ours.ok()) return Fail{sql::ToError(ours.error())};
    for (const Payment& payment : *ours) {
      if (payment.state != PaymentState::kSucceeded) continue;
      if (payment.credited && IsUnproved(payment)) continue;  // CheckPosting says so
      TRY(CheckOurs(payment));
    }
    TRY(auto postings, engine_.ledger().PostingsBetween(start_us, end_us));
    for (const LedgerPort::Posting& posting : postings) {
      TRY(CheckPosting(posting));
    }
    TRY(CheckDisputes(start_us, end_us));
    TRY(CheckLogs());
    if (result_.differences.empty()) {
      for (const Totals* totals : {&result_.charged, &result_.refunded}) {
        if (totals->tie_out()) continue;
        Add(Difference::Kind::kTotal, "", "", "", totals->provider_nano_usd,
            totals->ledger_nano_usd);
      }
    }
    TRY(EndRestore(start_us, end_us));
    return std::move(result_);
  }

 private:
  void Add(Difference::Kind kind, const std::string& workspace, const std::string& payment,
           const std::string& provider_id, int64_t provider_nano_usd, int64_t ledger_nano_usd) {
    result_.differences.push_back(
        {kind, workspace, payment, provider_id, provider_nano_usd, ledger_nano_usd});
  }

  Result<void> ReadCharges(int64_t start_us, int64_t end_us) {
    if (engine_.provider().manual()) return {};
    std::string cursor;
    do {
      auto page = engine_.provider().ListCharges(start_us, end_us, cursor);
      if (!page.ok()) return ProviderUnavailable(page.error());
      for (const ChargeView& charge : page->charges) {
        if (charge.state != ChargeView::State::kSucceeded) continue;
        TRY(CheckCharge(charge));
      }
      cursor = page->next;
    } while (!cursor.empty());
    return {};
  }

  Result<void> CheckCharge(const ChargeView& charge) {
    ++result_.charges;
    auto found = store_.FindPayment(charge.workspace, charge.payment_id);
    if (!found.ok()) return Fail{sql::ToError(found.error())};
    const bool lost = !*found && PaymentEngine::IsOurs(charge);
    if (lost && adopt_ && engine_.AdoptCharge(charge) == PaymentEngine::Adopted::kYes) {
      ++result_.adopted;
      books_.erase(charge.workspace);  // read again
      found = store_.FindPayment(charge.workspace, charge.payment_id);
      if (!found.ok()) return Fail{sql::ToError(found.error())};
    }
    if (*found && !(*found)->provider_id.empty() && (*found)->provider_id != charge.provider_id) {
      return CheckExtra(**found, charge);
    }
    if (*found) return Compare(**found, charge);
    const int64_t received_nano_usd = charge.received_cents * kNanoPerCent;
    Add(lost ? Difference::Kind::kLostPayment : Difference::Kind::kUnknownCharge, charge.workspace,
        charge.payment_id, charge.provider_id, received_nano_usd, 0);
    result_.charged.provider_nano_usd += received_nano_usd;
    result_.refunded.provider_nano_usd += charge.refunded_cents * kNanoPerCent;
    return {};
  }

  // A second charge of a payment must have been given back, or have become credit.
  Result<void> CheckExtra(const Payment& payment, const ChargeView& charge) {
    TRY(auto found, BooksOf(payment.workspace));
    const std::string command = CreditCommandId(payment.provider, charge.provider_id);
    const auto credit = found->postings.find(command);
    const int64_t credit_nano_usd =
        credit == found->postings.end() ? 0 : credit->second.amount_nano_usd;
    const int64_t kept_nano_usd = (charge.received_cents - charge.refunded_cents) * kNanoPerCent;
    if (kept_nano_usd != credit_nano_usd) {
      Add(Difference::Kind::kUnknownCharge, payment.workspace, payment.id, charge.provider_id,
          kept_nano_usd, credit_nano_usd);
    }
    extra_compared_.insert(payment.workspace + "/" + command);
    AddExtra(kept_nano_usd, credit_nano_usd);
    return {};
  }

  void AddExtra(int64_t kept_nano_usd, int64_t credit_nano_usd) {
    result_.charged.provider_nano_usd += kept_nano_usd;
    result_.charged.payments_nano_usd += credit_nano_usd;
    result_.charged.ledger_nano_usd += credit_nano_usd;
  }

  // Compares a payment of ours that the provider's list lacks: it was made outside of the period,
  // or the provider does not have it.
  Result<void> CheckOurs(const Payment& payment) {
    if (compared_.contains(payment.workspace + "/" + payment.id)) return {};
    if (payment.provider == kManual) {
      ChargeView transfer;
      transfer.provider_id = payment.provider_id;
      transfer.received_cents = payment.amount_cents();
      return Compare(payment, transfer);
    }
    // A provider that is not configured any more cannot be asked.
    if (payment.provider != engine_.provider().name()) return Compare(payment, std::nullopt);
    auto view = engine_.provider().Find(payment.ref());
    if (!view.ok()) return ProviderUnavailable(view.error());
    if (view->state != ChargeView::State::kSucceeded) return Compare(payment, std::nullopt);
    return Compare(payment, *view);
  }

  Result<const Books*> BooksOf(const std::string& workspace) {
    if (const auto known = books_.find(workspace); known != books_.end()) return &known->second;
    Books books;
    TRY(auto postings, engine_.ledger().ReadPostings(workspace));
    for (LedgerPort::Posting& posting : postings) {
      books.postings[posting.command_id] = std::move(posting);
    }
    PaymentStore::Position position;
    constexpr int kPage = 500;
    while (true) {
      auto page = store_.ListPayments(workspace, kPage, position);
      if (!page.ok()) return Fail{sql::ToError(page.error())};
      for (Payment& payment : *page) {
        position = {payment.created_us, payment.id};
        if (!payment.provider_id.empty()) {
          books.credited[CreditCommandId(payment.provider, payment.provider_id)] = payment.id;
        }
        books.payments[payment.id] = std::move(payment);
      }
      if (page->size() < kPage) break;
    }
    auto refunds = store_.RefundsOf(workspace);
    if (!refunds.ok()) return Fail{sql::ToError(refunds.error())};
    for (const Refund& refund : *refunds) {
      if (!refund.extra_charge.empty()) {
        const auto payment = books.payments.find(refund.payment);
        if (payment == books.payments.end()) continue;
        books.extra.insert(CreditCommandId(payment->second.provider, refund.extra_charge));
        continue;
      }
      if (!HoldsCredit(refund.state)) continue;
      books.refunded_nano_usd[refund.payment] += refund.amount_nano_usd;
    }
    return &(books_[workspace] = std::move(books));
  }

  // charge: empty: the provider has none.
  Result<void> Compare(const Payment& payment, const std::optional<ChargeView>& charge) {
    if (!compared_.insert(payment.workspace + "/" + payment.id).second) return {};
    ++result_.payments;
    TRY(auto found, BooksOf(payment.workspace));
    const Books& books = *found;
    const std::string& provider_id = charge ? charge->provider_id : payment.provider_id;
    const int64_t paid_nano_usd =
        payment.state == PaymentState::kSucceeded ? payment.amount_nano_usd : 0;
    const int64_t received_nano_usd = charge ? charge->received_cents * kNanoPerCent : 0;
    const auto credit = books.postings.find(CreditCommandId(payment.provider, provider_id));
    const bool posted = credit != books.postings.end();
    const int64_t credit_nano_usd = posted ? credit->second.amount_nano_usd : 0;
    const auto add = [&](Difference::Kind kind, int64_t provider_nano_usd,
                         int64_t ledger_nano_usd) {
      Add(kind, payment.workspace, payment.id, provider_id, provider_nano_usd, ledger_nano_usd);
    };
    if (!charge) {
      add(Difference::Kind::kMissingCharge, 0, posted ? credit_nano_usd : paid_nano_usd);
    } else if (!posted) {
      add(Difference::Kind::kMissingCredit, received_nano_usd, 0);
    } else if (credit_nano_usd != received_nano_usd || paid_nano_usd != received_nano_usd) {
      add(Difference::Kind::kAmount, received_nano_usd, credit_nano_usd);
    }
    result_.charged.provider_nano_usd += received_nano_usd;
    result_.charged.payments_nano_usd += paid_nano_usd;
    result_.charged.ledger_nano_usd += credit_nano_usd;

    int64_t taken_nano_usd = 0;
    for (const auto& [id, posting] : books.postings) {
      if (posting.refund() && IsOfPayments(posting) && posting.payment == payment.id) {
        taken_nano_usd += posting.amount_nano_usd;
      }
    }
    const auto ours = books.refunded_nano_usd.find(payment.id);
    const int64_t ours_nano_usd = ours == books.refunded_nano_usd.end() ? 0 : ours->second;
    // The operator sends the money of a transfer back.
    const int64_t back_nano_usd = payment.provider == kManual ? ours_nano_usd
                                  : charge ? charge->refunded_cents * kNanoPerCent
                                           : 0;
    if (back_nano_usd != taken_nano_usd || ours_nano_usd != taken_nano_usd) {
      add(Difference::Kind::kRefund, back_nano_usd, taken_nano_usd);
    }
    result_.refunded.provider_nano_usd += back_nano_usd;
    result_.refunded.payments_nano_usd += ours_nano_usd;
    result_.refunded.ledger_nano_usd += taken_nano_usd;
    return {};
  }

  // Finds the payment of a top-up or refund of the ledger, else it was made by hand.
  Result<void> CheckPosting(const LedgerPort::Posting& posting) {
    TRY(auto found, BooksOf(posting.workspace));
    const Books& books = *found;
    Totals& totals = posting.refund() ? result_.refunded : result_.charged;
    const auto credited = books.credited.find(posting.command_id);
    const auto payment = books.payments.find(
        posting.refund() ? posting.payment
                         : (credited != books.credited.end() ? credited->second : ""));
    const bool of_payments = IsOfPayments(posting);
    if (of_payments && books.extra.contains(posting.command_id)) {
      // Compared when its charge is in the period.
      if (extra_compared_.insert(posting.workspace + "/" + posting.command_id).second) {
        AddExtra(posting.amount_nano_usd, posting.amount_nano_usd);
      }
      return {};
    }
    if (of_payments && payment != books.payments.end() && !IsUnproved(payment->second)) {
      return CheckOurs(payment->second);
    }
    if (of_payments && payment == books.payments.end()) {
      Add(posting.refund() ? Difference::Kind::kRefund : Difference::Kind::kMissingCharge,
          posting.workspace, "", posting.command_id, 0, posting.amount_nano_usd);
      totals.ledger_nano_usd += posting.amount_nano_usd;
      return {};
    }
    totals.by_hand_nano_usd += posting.amount_nano_usd;
    result_.by_hand.push_back(posting);
    return {};
  }

  Result<void> CheckDisputes(int64_t start_us, int64_t end_us) {
    auto listed = engine_.provider().ListDisputes(start_us, end_us);
    if (!listed.ok()) return ProviderUnavailable(listed.error());
    for (const DisputeView& view : *listed) {
      auto payment = engine_.FindDisputed(view);
      if (!payment.ok()) return Fail{sql::ToError(payment.error())};
      auto known = DisputeOf(*payment, view);
      if (!known.ok()) return Fail{sql::ToError(known.error())};
      if (adopt_ && *payment && !Follows(*known, view) && engine_.ApplyDispute(view)) {
        ++result_.adopted;
        known = DisputeOf(*payment, view);
        if (!known.ok()) return Fail{sql::ToError(known.error())};
      }
      if (Follows(*known, view)) continue;
      Add(Difference::Kind::kDispute, *payment ? (*payment)->workspace : "",
          *payment ? (*payment)->id : "", view.id, view.amount_cents * kNanoPerCent,
          *known ? (*known)->amount_nano_usd : 0);
    }
    return {};
  }

  sql::SqlResult<std::optional<Dispute>> DisputeOf(const std::optional<Payment>& payment,
                                                   const DisputeView& view) {
    if (!payment) return std::optional<Dispute>();
    return store_.FindDispute(payment->workspace, view.id);
  }

  static bool Follows(const std::optional<Dispute>& known, const DisputeView& view) {
    return known && known->state >= view.state;
  }

  // Lets auto-reload go on after a restore if nothing that was paid is missing any more.
  Result<void> EndRestore(int64_t start_us, int64_t end_us) {
    auto restored = store_.FindRestored();
    if (!restored.ok()) return Fail{sql::ToError(restored.error())};
    if (!*restored) return {};
    result_.reloads_wait = start_us > (*restored)->lost_since_us ||
                           end_us < (*restored)->restored_us ||
                           std::ranges::any_of(
                               result_.differences,
                               [](const Difference& one) {
                                 return one.kind == Difference::Kind::kLostPayment ||
                                        one.kind == Difference::Kind::kMissingCredit;
                               });
    if (result_.reloads_wait) return {};
    if (auto done = store_.ClearRestored(**restored); !done.ok()) {
      return Fail{sql::ToError(done.error())};
    }
    return {};
  }

  // Checks the logs of changes: that none was cut, and each line of the compared workspaces.
  Result<void> CheckLogs() {
    auto cut = store_.CutLogs();
    if (!cut.ok()) return Fail{sql::ToError(cut.error())};
    for (const std::string& workspace : *cut) {
      Add(Difference::Kind::kLog, workspace, "", "its newest events are missing", 0, 0);
    }
    for (const auto& [workspace, books] : books_) {
      auto events = store_.Events(workspace);
      if (!events.ok()) return Fail{sql::ToError(events.error())};
      if (const std::string wrong = CheckEvents(*events); !wrong.empty()) {
        Add(Difference::Kind::kLog, workspace, "", wrong, 0, 0);
      }
    }
    return {};
  }

  PaymentEngine& engine_;
  PaymentStore& store_;
  const bool adopt_;
  Reconciliation result_;
  std::set<std::string> compared_;
  std::set<std::string> extra_compared_;
  std::map<std::string, Books> books_;  // by workspace
};

}  // namespace

std::string_view Name(Difference::Kind kind) {
  switch (kind) {
    case Difference::Kind::kMissingCredit:
      return "MISSING_CREDIT";
    case Difference::Kind::kMissingCharge:
      return "MISSING_CHARGE";
    case Difference::Kind::kAmount:
      return "AMOUNT";
    case Difference::Kind::kUnknownCharge:
      return "UNKNOWN_CHARGE";
    case Difference::Kind::kLostPayment:
      return "LOST_PAYMENT";
    case Difference::Kind::kRefund:
      return "REFUND";
    case Difference::Kind::kDispute:
      return "DISPUTE";
    case Difference::Kind::kLog:
      return "LOG";
    case Difference::Kind::kTotal:
      return "TOTAL";
  }
  return "";
}

Result<Reconciliation> Reconcile(PaymentEngine& engine, int64_t start_us, int64_t end_us,
                                 bool adopt) {
  return Reconciler(engine, adopt).Run(start_us, end_us);
}

}  // namespace tollgate::billing::payments
