// Part of the engine: starts and ends the charges of auto-reload.
#include <algorithm>
#include <utility>

#include "common/base/clock.h"
#include "common/base/try.h"
#include "common/observability/log.h"
#include "services/billing/payments/payment_engine.h"
#include "services/billing/payments/reload_rules.h"

namespace tollgate::billing::payments {
namespace {

using sql::SqlResult;

bool Ended(PaymentState state) {
  return state == PaymentState::kDeclined || state == PaymentState::kCancelled;
}

}  // namespace

// Updates the workspace's auto-reload after a change of a payment, in the same transaction.
SqlResult<void> PaymentEngine::FollowPayment(WorkspaceTx& tx, const Payment& before,
                                             const Payment& after) {
  const bool credited = after.credited && !before.credited;
  if (!credited && (!after.reload || before.state == after.state)) return {};
  TRY(auto found, tx.FindReload());
  if (!found) return {};
  AutoReload reload = *found;
  const ReloadState was = reload.state;
  const bool own = reload.reload_id == after.id;
  const bool ended = after.reload && Ended(after.state) && !Ended(before.state);
  bool paused = false;
  if (ended) Uncharge(reload, after);
  const bool declined = ended && after.state == PaymentState::kDeclined;
  if (declined && RefusalOf(after.reason) == Refusal::kForGood) {
    TRY(tx.RefuseMethod(after.method, after.reason));
    TRY(tx.Log("method/" + after.method, "saved", "refused", 0, kEngineActor, after.reason));
  }
  // A pause stays, whatever becomes of a charge that was on its way.
  if (own && reload.running()) {
    if (credited) {
      Resume(reload, nullptr);
    } else if (ended &&
               (after.reason.starts_with(kWithdrawn) || after.reason.starts_with(kGivenUp))) {
      reload.state = ReloadState::kIdle;
    } else if (ended) {
      paused = Decline(reload, after, tx.now_us());
      if (paused && reload.pause_reason == kPausedForConfirmation) {
        TRY(OpenConfirmPage(tx, after, reload));
      }
    } else if (after.state == PaymentState::kUnknown) {
      reload.state = ReloadState::kUnknown;
    } else if (after.state == PaymentState::kSubmitted) {
      reload.state = ReloadState::kSubmitted;
    } else if (after.state == PaymentState::kRequested) {
      reload.state = ReloadState::kRequested;
    }
  } else if (after.reload && Ended(before.state) && after.state == PaymentState::kSucceeded) {
    // The provider reported the charge as not paid before.
    tx.AfterCommit([payment = after.id, workspace = after.workspace] {
      log::Warn("payments: a charge that had ended has been paid after all",
                {{"payment", payment}, {"workspace", workspace}});
    });
    Charge(reload, after);
    if (own && reload.declines > 0) Resume(reload, nullptr);
  } else if (credited && reload.confirm_page == after.id &&
             reload.pause_reason == kPausedForConfirmation) {
    Resume(reload, nullptr);
  }
  // Written even if only the balance changed: the new version stops engines that have read the old
  // balance from triggering.
  reload.updated_us = tx.now_us();
  if (reload.state != was) {
    TRY(tx.Log("reload", Name(was), Name(reload.state), after.amount_nano_usd, kEngineActor,
               reload.pause_reason));
  }
  if (paused) {
    tx.AfterCommit([this, workspace = reload.workspace, reason = reload.pause_reason] {
      metrics_.OnReloadPaused();
      log::Warn("auto-reload is paused: the charges were declined",
                {{"workspace", workspace}, {"reason", reason}});
    });
  }
  return tx.Put(std::move(reload));
}

SqlResult<void> PaymentEngine::OpenConfirmPage(WorkspaceTx& tx, const Payment& declined,
                                               AutoReload& reload) {
  Payment page;
  page.workspace = declined.workspace;
  page.id = reload.confirm_page = DerivedId("confirm", declined.workspace, declined.id);
  page.provider = declined.provider;
  page.amount_nano_usd = declined.amount_nano_usd;
  page.actor = kEngineActor;
  page.created_us = page.updated_us = page.check_us = tx.now_us();
  TRY(tx.Put(page));
  return tx.Log("payment/" + page.id, "", Name(page.state), page.amount_nano_usd, kEngineActor,
                "the bank wants a confirmation of " + declined.id);
}

SqlResult<void> PaymentEngine::PauseReload(WorkspaceTx& tx, const std::string& reason,
                                           int64_t until_us) {
  TRY(auto found, tx.FindReload());
  if (!found || !found->enabled) return {};
  AutoReload reload = *found;
  // A pause that only a person who knows its reason ends keeps its first reason.
  if (reload.paused() && reload.next_us == 0 && reload.pause_reason != kPausedForConfirmation) {
    return {};
  }
  const ReloadState was = reload.state;
  Pause(reload, reason, until_us);
  reload.updated_us = tx.now_us();
  TRY(tx.Log("reload", Name(was), Name(reload.state), reload.amount_nano_usd, kEngineActor,
             reason));
  tx.AfterCommit([this, workspace = reload.workspace, reason] {
    metrics_.OnReloadPaused();
    log::Warn("auto-reload is paused", {{"workspace", workspace}, {"reason", reason}});
  });
  return tx.Put(std::move(reload));
}

std::optional<LedgerFacts> PaymentEngine::ReadLedger(const std::string& workspace) {
  LedgerFacts facts;
  auto balance = ledger_.ReadBalance(workspace);
  auto lowered = ledger_.NewestLowering(workspace);
  auto restored = store_.FindRestored();
  if (!balance.ok() || !lowered.ok() || !restored.ok()) return std::nullopt;
  facts.restored = restored->has_value();
  facts.balance = *std::move(balance);
  facts.lowered = *lowered;
  return facts;
}

SqlResult<ChargeFacts> PaymentEngine::ReadChargeFacts(WorkspaceTx& tx, const AutoReload& reload,
                                                      const LedgerFacts& ledger,
                                                      const Payment* own) {
  ChargeFacts facts;
  facts.ledger = ledger;
  TRY(auto on_its_way, tx.PaidNotCredited());
  facts.on_its_way_nano_usd = on_its_way;
  AutoReload rolled = reload;
  RollMonth(rolled, tx.now_us());
  if (own != nullptr) Uncharge(rolled, *own);
  facts.month_charged_nano_usd = rolled.month_charged_nano_usd;
  TRY(auto sent, tx.SentReloads(std::max(options_.limits.per_hour, options_.limits.per_day),
                                own != nullptr ? own->id : ""));
  facts.sent_us = std::move(sent);
  TRY(auto customer, tx.FindCustomer(provider_.name()));
  TRY(auto methods, tx.Methods());
  for (const PaymentMethod& one : methods) {
    if (one.provider != provider_.name() || customer.empty()) continue;
    if (own != nullptr && own->method != one.id) continue;
    TRY(auto disputed, tx.IsMethodDisputed(one.id));
    facts.card_saved = true;
    facts.card_disputed = disputed;
    facts.card_refused = !one.refused.empty();
    facts.customer = customer;
    facts.method = one.id;
    if (!facts.card_disputed && !facts.card_refused) break;
  }
  return facts;
}

void PaymentEngine::Trigger(const AutoReload& seen) {
  // Reads the balance after the row, and changes the row only if its version is still the same. A
  // credit posted in between has changed the version.
  const auto ledger = ReadLedger(seen.workspace);
  if (!ledger || !Survives("before_trigger")) return;
  auto done = store_.Run(seen.workspace, NowUs(), [&](WorkspaceTx& tx) -> SqlResult<void> {
    TRY(auto found, tx.FindReload());
    if (!found || found->version != seen.version || !found->enabled) return {};
    AutoReload reload = *found;
    if (reload.running()) return {};
    TRY(auto newest, tx.FindPayment(reload.reload_id));
    if (newest && newest->in_flight()) return {};
    TRY(auto facts, ReadChargeFacts(tx, reload, *ledger, nullptr));
    const Verdict verdict = MayCharge(reload, facts, options_.limits, tx.now_us());
    switch (verdict.kind) {
      case Verdict::Kind::kCharge:
        return StartReload(tx, std::move(reload), facts);
      case Verdict::Kind::kPause:
        return PauseReload(tx, verdict.reason, verdict.until_us);
      case Verdict::Kind::kWait:
        return {};
      case Verdict::Kind::kEnough:
        break;
    }
    if (reload.state == ReloadState::kIdle) return {};
    // There is enough credit again, so the backoff or the pause until later ends. Credit from
    // elsewhere says nothing about the card: its declines still count.
    const ReloadState was = reload.state;
    Continue(reload);
    reload.updated_us = tx.now_us();
    TRY(tx.Log("reload", Name(was), Name(reload.state), 0, kEngineActor, ""));
    return tx.Put(std::move(reload));
  });
  if (!done.ok()) LogError("trigger", done.error());
}

SqlResult<void> PaymentEngine::StartReload(WorkspaceTx& tx, AutoReload reload,
                                           const ChargeFacts& facts) {
  const ReloadState was = reload.state;
  RollMonth(reload, tx.now_us());
  Payment payment;
  payment.workspace = reload.workspace;
  // Versions repeat after a restore of the database, and the provider keeps the ids: with the time.
  payment.id = DerivedId("reload", reload.workspace,
                         std::to_string(reload.version) + "/" + std::to_string(tx.now_us()));
  payment.provider = provider_.name();
  payment.reload = true;
  payment.amount_nano_usd = reload.amount_nano_usd;
  payment.customer = facts.customer;
  payment.method = facts.method;
  payment.actor = kEngineActor;
  payment.created_us = payment.updated_us = payment.check_us = tx.now_us();
  TRY(tx.Put(payment));
  TRY(tx.Log("payment/" + payment.id, "", Name(payment.state), payment.amount_nano_usd,
             kEngineActor, "auto-reload"));
  reload.state = ReloadState::kRequested;
  reload.reload_id = payment.id;
  reload.next_us = 0;
  reload.pause_reason.clear();
  reload.month_charged_nano_usd += reload.amount_nano_usd;
  reload.updated_us = tx.now_us();
  TRY(tx.Log("reload", Name(was), Name(reload.state), reload.amount_nano_usd, kEngineActor,
             reload.pause_reason));
  return tx.Put(std::move(reload));
}

SqlResult<std::string> PaymentEngine::WhyNotSend(WorkspaceTx& tx, const Payment& payment,
                                                 const LedgerFacts& ledger) {
  if (payment.cancel_us > 0) return std::string("a person cancelled it");
  if (UtcMonth(payment.created_us) != UtcMonth(tx.now_us())) return std::string("its month ended");
  TRY(auto found, tx.FindReload());
  if (!found) return std::string("auto-reload is off");
  if (!found->running()) return "auto-reload is paused: " + found->pause_reason;
  TRY(auto facts, ReadChargeFacts(tx, *found, ledger, &payment));
  const Verdict verdict = MayCharge(*found, facts, options_.limits, tx.now_us());
  if (verdict.kind == Verdict::Kind::kCharge) return std::string();
  if (verdict.kind == Verdict::Kind::kPause) {
    TRY(PauseReload(tx, verdict.reason, verdict.until_us));
  }
  return verdict.reason;
}

}  // namespace tollgate::billing::payments
