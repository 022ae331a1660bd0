#include "services/billing/alerts/alert_text.h"

#include "common/admin/values.h"
#include "common/json/json.h"
#include "common/json/writer.h"
#include "common/mail/mail.h"

namespace tollgate::billing::alerts {
namespace {

constexpr size_t kMaxReason = 200;
constexpr size_t kMaxLink = 2000;

// Why auto-reload is paused (docs/payments.md), and what to do.
std::string PauseText(const std::string& reason) {
  if (reason == "refunded") return "a payment was refunded.\r\nResume it to allow charges again.";
  if (reason == "debited") {
    return "credit was deducted by an adjustment.\r\nResume it to allow charges again.";
  }
  if (reason == "disputed") {
    return "a payment is disputed.\r\nSave another card, then resume auto-reload.";
  }
  if (reason == "fraud_warning") {
    return "the card issuer reported a payment as probable fraud.\r\nSave another card, then "
           "resume "
           "auto-reload.";
  }
  if (reason == "card_disputed") {
    return "a payment with the saved card is disputed.\r\nSave another card, then resume "
           "auto-reload.";
  }
  if (reason == "card_refused") {
    return "the issuer of the saved card refuses it for good.\r\nSave another card, then resume "
           "auto-reload.";
  }
  if (reason == "authentication_required") {
    return "the bank wants you to confirm the charge.\r\nPay on the page below to continue.";
  }
  if (reason == "no_payment_method") {
    return "no card is saved.\r\nSave a card, then resume auto-reload.";
  }
  if (reason == "monthly_ceiling") {
    return "the monthly reload limit is reached.\r\nIt resumes next month, or when the limit is "
           "raised.";
  }
  if (reason == "hourly_limit" || reason == "daily_limit") {
    return "the card was charged too often.\r\nIt resumes by itself. A larger reload amount avoids "
           "this.";
  }
  return reason + "\r\nFix the cause, then resume auto-reload.";
}

std::string Subject(const std::string& kind, const json::Value& notice,
                    const std::string& workspace) {
  const std::string where = " in workspace " + workspace;
  if (kind == Name(AlertKind::kLowBalance)) return "Low credit" + where;
  if (kind == Name(AlertKind::kCapPercent)) {
    return std::to_string(notice.Find("percent").Integer().value_or(0)) +
           "% of the monthly cap used" + where;
  }
  if (kind == Name(AlertKind::kReloadFailed)) return "Auto-reload declined" + where;
  if (kind == Name(AlertKind::kReloadPaused)) return "Auto-reload paused" + where;
  if (kind == Name(AlertKind::kBooksDisagree)) return "Ledger mismatch" + where;
  if (kind == Name(AlertKind::kDisputeOpened)) return "Payment disputed" + where;
  if (kind == Name(AlertKind::kDisputeWon)) return "Dispute won" + where;
  if (kind == Name(AlertKind::kDisputeLost)) return "Dispute lost" + where;
  if (kind == Name(AlertKind::kFrozen)) return "Requests refused" + where;
  return "Notice" + where;
}

std::string DisputedPayment(const json::Value& notice) {
  return "The payment " + std::string(notice.Find("payment").string()) + " of $" +
         std::string(notice.Find("amount_usd").string());
}

void WriteDispute(const DisputeFact& dispute, json::Writer& writer) {
  writer.Text("payment", dispute.payment)
      .Text("amount_usd", admin::FormatUsd(dispute.amount_nano_usd));
}

std::string Body(const std::string& kind, const json::Value& notice) {
  const auto text = [&](const char* name) { return notice.Find(name).string(); };
  if (kind == Name(AlertKind::kLowBalance)) {
    return "The available credit is $" + text("available_usd") +
           ", below the alert threshold of $" + text("low_balance_usd") +
           ".\r\nRequests are refused when it is used up. Add credit or turn on auto-reload.\r\n";
  }
  if (kind == Name(AlertKind::kCapPercent)) {
    return "This month's spend is $" + text("month_spent_usd") + " of the $" + text("cap_usd") +
           " cap.\r\nWhen the cap is reached, requests are refused until the next month (UTC).\r\n";
  }
  if (kind == Name(AlertKind::kReloadFailed)) {
    return "An auto-reload charge was declined: " + text("reason") +
           "\r\nTollgate tries again. Check the saved card.\r\n";
  }
  if (kind == Name(AlertKind::kReloadPaused)) {
    const std::string page = mail::OneLine(text("confirm_url"), kMaxLink);
    return "Auto-reload is paused: " + PauseText(std::string(text("reason"))) + "\r\n" +
           (page.empty() ? "" : page + "\r\n");
  }
  if (kind == Name(AlertKind::kBooksDisagree)) {
    return "The wallet of the workspace does not match its ledger entries. The ledger has frozen "
           "the workspace.\r\nRun tollgate verify-ledger for this workspace.\r\n";
  }
  if (kind == Name(AlertKind::kDisputeOpened)) {
    return DisputedPayment(notice) +
           " is disputed at the bank of the card. Its credit is deducted; credit that was spent "
           "already is owed.\r\nIf it is a mistake, the owner of the card can withdraw the "
           "dispute.\r\n";
  }
  if (kind == Name(AlertKind::kDisputeWon)) {
    return DisputedPayment(notice) + " is not disputed any more. Its credit is back.\r\n";
  }
  if (kind == Name(AlertKind::kDisputeLost)) {
    return DisputedPayment(notice) +
           " was returned by the bank of the card. Its credit stays deducted.\r\n";
  }
  if (kind == Name(AlertKind::kFrozen)) {
    return std::string("The workspace is frozen: requests are refused.\r\n") +
           (text("reason") == "dispute"
                ? "A disputed payment was spent already. Add the credit that is owed.\r\n"
                : "An operator has frozen it. Contact the operator.\r\n");
  }
  return "";
}

}  // namespace

std::string NoticeJson(const std::string& notice, const AlertState& state,
                       const AlertSetting& setting, const Facts& facts,
                       const std::string& dashboard_url, int64_t now_us) {
  json::Writer writer;
  writer.Text("id", notice)
      .Text("kind", Name(state.kind))
      .Text("workspace", setting.workspace)
      .Number("created_at", now_us / 1'000'000);
  switch (state.kind) {
    case AlertKind::kLowBalance:
      writer.Text("available_usd", admin::FormatUsd(facts.available_nano_usd))
          .Text("low_balance_usd", admin::FormatUsd(setting.low_balance_nano_usd));
      break;
    case AlertKind::kCapPercent:
      writer.Number("percent", state.level)
          .Text("month_spent_usd", admin::FormatUsd(facts.month_spent_nano_usd))
          .Text("cap_usd", admin::FormatUsd(facts.cap_nano_usd.value_or(0)))
          .Number("month", facts.month);
      break;
    case AlertKind::kReloadFailed:
    case AlertKind::kReloadPaused:
      writer.Text("reason",
                  mail::OneLine(facts.reload_reason.empty() ? "declined" : facts.reload_reason,
                                kMaxReason));
      if (!facts.confirm_url.empty()) writer.Text("confirm_url", facts.confirm_url);
      break;
    case AlertKind::kDisputeOpened:
      WriteDispute(facts.dispute_opened, writer);
      break;
    case AlertKind::kDisputeWon:
      WriteDispute(facts.dispute_won, writer);
      break;
    case AlertKind::kDisputeLost:
      WriteDispute(facts.dispute_lost, writer);
      break;
    case AlertKind::kFrozen:
      writer.Text("reason", facts.frozen_by_dispute ? "dispute" : "operator");
      break;
    case AlertKind::kBooksDisagree:
      break;
  }
  if (!dashboard_url.empty()) writer.Text("dashboard_url", dashboard_url);
  return writer.Done();
}

std::string TestJson(const std::string& notice, const std::string& workspace, int64_t now_us) {
  return json::Writer()
      .Text("id", notice)
      .Text("kind", "test")
      .Text("workspace", workspace)
      .Number("created_at", now_us / 1'000'000)
      .Done();
}

std::string MailText(const Delivery& delivery, const std::string& from) {
  auto document = json::Document::Parse(delivery.payload);
  const json::Value notice = document.ok() ? document->root() : json::Value();
  const std::string link = notice ? notice.Find("dashboard_url").string() : "";
  return mail::MailText({.from = from,
                         .to = delivery.target,
                         .subject = Subject(delivery.kind, notice, delivery.workspace),
                         .id = delivery.notice + "." + delivery.id,
                         .at_us = delivery.created_us,
                         .body = "Workspace: " + delivery.workspace + "\r\n" +
                                 Body(delivery.kind, notice) +
                                 (link.empty() ? "" : mail::OneLine(link, kMaxLink) + "\r\n")});
}

}  // namespace tollgate::billing::alerts
