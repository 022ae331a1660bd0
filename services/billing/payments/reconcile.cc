#include "services/billing/payments/reconcile.h"

#include <map>
#include <set>
#include <utility>

namespace tollgate::billing::payments {
namespace {

Fail<Error> ProviderUnavailable(const ProviderError& error) {
  return Unavailable("the payment provider failed: " + error.code + " " + error.message);
}

class Reconciler {
 public:
  explicit Reconciler(PaymentEngine& engine) : engine_(engine), store_(engine.store()) {}

  Result<Reconciliation> Run(int64_t start_us, int64_t end_us) {
    if (auto done = ReadCharges(start_us, end_us); !done.ok()) return Fail{done.error()};
    auto ours = store_.PaymentsBetween(engine_.provider().name(), start_us, end_us);
    if (!ours.ok()) return Fail{sql::ToError(ours.error())};
    for (const Payment& payment : *ours) {
      if (auto done = CheckOurs(payment); !done.ok()) return Fail{done.error()};
    }
    for (const auto& [workspace, left] : postings_) {
      if (auto done = CheckLeft(workspace); !done.ok()) return Fail{done.error()};
    }
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
        if (auto done = CheckCharge(charge); !done.ok()) return done;
      }
      cursor = page->next;
    } while (!cursor.empty());
    return {};
  }

  Result<void> CheckCharge(const ChargeView& charge) {
    ++result_.charges;
    const int64_t received_nano_usd = charge.received_cents * kNanoPerCent;
    auto found = store_.FindPayment(charge.workspace, charge.payment_id);
    if (!found.ok()) return Fail{sql::ToError(found.error())};
    if (!*found) {
      Add(Difference::Kind::kUnknownCharge, charge.workspace, charge.payment_id, charge.provider_id,
          received_nano_usd, 0);
      return {};
    }
    const Payment& payment = **found;
    if (!payment.provider_id.empty() && payment.provider_id != charge.provider_id) {
      return CheckExtra(payment, charge);
    }
    if (!compared_.insert(payment.workspace + "/" + payment.id).second) return {};
    ++result_.payments;
    return Compare(payment, charge);
  }

  // A second charge of a payment must have been given back, or have become credit.
  Result<void> CheckExtra(const Payment& payment, const ChargeView& charge) {
    auto postings = PostingsOf(payment.workspace);
    if (!postings.ok()) return Fail{postings.error()};
    const auto credit =
        (*postings)->find(CreditCommandId(engine_.provider().name(), charge.provider_id));
    int64_t credited_nano_usd = 0;
    if (credit != (*postings)->end()) {
      credited_nano_usd = credit->second.amount_nano_usd;
      (*postings)->erase(credit);
    }
    const int64_t kept_nano_usd = (charge.received_cents - charge.refunded_cents) * kNanoPerCent;
    if (kept_nano_usd != credited_nano_usd) {
      Add(Difference::Kind::kUnknownCharge, payment.workspace, payment.id, charge.provider_id,
          kept_nano_usd, credited_nano_usd);
    }
    return {};
  }

  // Checks a payment of ours that is missing in the provider's list: it was made near the edge of
  // the period, or the provider does not have it.
  Result<void> CheckOurs(const Payment& payment) {
    if (payment.state != PaymentState::kSucceeded) return {};
    if (!compared_.insert(payment.workspace + "/" + payment.id).second) return {};
    ++result_.payments;
    ChargeView charge;
    if (engine_.provider().manual()) {
      charge.provider_id = payment.provider_id;
      charge.received_cents = payment.amount_cents();
      charge.refunded_cents = -1;  // unknown: the operator sends the money
    } else {
      auto view = engine_.provider().Find(payment.ref());
      if (!view.ok()) return ProviderUnavailable(view.error());
      if (view->state != ChargeView::State::kSucceeded) {
        Add(Difference::Kind::kMissingCharge, payment.workspace, payment.id, payment.provider_id, 0,
            payment.amount_nano_usd);
        return {};
      }
      charge = *view;
    }
    return Compare(payment, charge);
  }

  Result<std::map<std::string, LedgerPort::Posting>*> PostingsOf(const std::string& workspace) {
    if (const auto known = postings_.find(workspace); known != postings_.end()) {
      return &known->second;
    }
    auto read = engine_.ledger().ReadPostings(workspace);
    if (!read.ok()) return Fail{read.error()};
    auto& postings = postings_[workspace];
    for (LedgerPort::Posting& posting : *read) postings[posting.command_id] = std::move(posting);
    return &postings;
  }

  Result<void> Compare(const Payment& payment, const ChargeView& charge) {
    auto postings = PostingsOf(payment.workspace);
    if (!postings.ok()) return Fail{postings.error()};
    const int64_t received_nano_usd = charge.received_cents * kNanoPerCent;
    const auto credit = (*postings)->find(CreditCommandId(payment.provider, charge.provider_id));
    if (credit == (*postings)->end()) {
      Add(Difference::Kind::kMissingCredit, payment.workspace, payment.id, charge.provider_id,
          received_nano_usd, 0);
    } else if (credit->second.amount_nano_usd != received_nano_usd) {
      Add(Difference::Kind::kAmount, payment.workspace, payment.id, charge.provider_id,
          received_nano_usd, credit->second.amount_nano_usd);
    }
    int64_t refunded_nano_usd = 0;
    for (const auto& [id, posting] : **postings) {
      if (posting.refund && posting.payment == payment.id) {
        refunded_nano_usd += posting.amount_nano_usd;
      }
    }
    if (charge.refunded_cents >= 0 && charge.refunded_cents * kNanoPerCent != refunded_nano_usd) {
      Add(Difference::Kind::kRefund, payment.workspace, payment.id, charge.provider_id,
          charge.refunded_cents * kNanoPerCent, refunded_nano_usd);
    }
    return {};
  }

  // Checks for credit in the ledger that belongs to no payment, and for a log that does not match
  // its hashes.
  Result<void> CheckLeft(const std::string& workspace) {
    auto events = store_.Events(workspace);
    if (!events.ok()) return Fail{sql::ToError(events.error())};
    if (const std::string wrong = CheckEvents(*events); !wrong.empty()) {
      Add(Difference::Kind::kLog, workspace, "", wrong, 0, 0);
    }
    std::set<std::string> known;
    PaymentStore::Position position;
    constexpr int kPage = 500;
    while (true) {
      auto page = store_.ListPayments(workspace, kPage, position);
      if (!page.ok()) return Fail{sql::ToError(page.error())};
      for (const Payment& payment : *page) {
        known.insert(CreditCommandId(payment.provider, payment.provider_id));
      }
      if (page->size() < kPage) break;
      position = {page->back().created_us, page->back().id};
    }
    for (const auto& [id, posting] : postings_.at(workspace)) {
      if (!posting.refund && !known.contains(id)) {
        Add(Difference::Kind::kMissingCharge, workspace, "", id, 0, posting.amount_nano_usd);
      }
    }
    return {};
  }

  PaymentEngine& engine_;
  PaymentStore& store_;
  Reconciliation result_;
  std::set<std::string> compared_;
  std::map<std::string, std::map<std::string, LedgerPort::Posting>> postings_;  // by workspace
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
    case Difference::Kind::kRefund:
      return "REFUND";
    case Difference::Kind::kLog:
      return "LOG";
  }
  return "";
}

Result<Reconciliation> Reconcile(PaymentEngine& engine, int64_t start_us, int64_t end_us) {
  return Reconciler(engine).Run(start_us, end_us);
}

}  // namespace tollgate::billing::payments
