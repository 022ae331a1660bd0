#include <string>
#include <vector>

#include "common/base/clock.h"
#include "services/cli/commands.h"
#include "services/cli/invocation.h"
#include "services/cli/run_command.h"
#include "tollgate/admin/v1/payments.pb.h"

namespace tollgate::cli {
namespace {

namespace pb = tollgate::admin::v1;

constexpr char kPayment[] =
    "payment=name.id PAYMENT | at=create_time AT (UTC) | amount_usd AMOUNT | state STATE | "
    "credited CREDITED | provider PROVIDER | reload RELOAD | refunded_usd REFUNDED | "
    "reason REASON | actor BY | checkout_url PAGE";
constexpr char kPaymentName[] = "workspaces/{workspace}/payments/{payment}";
constexpr char kReload[] =
    "enabled Enabled | threshold_usd When below | amount_usd Charge | "
    "monthly_ceiling_usd At most a month | month_charged_usd Charged this month | state State | "
    "pause_reason Reason | next_attempt=next_attempt_time Next attempt | "
    "last_payment=last_payment.id Last payment";
constexpr char kReloadName[] = "workspaces/{workspace}/autoReload";

std::optional<int64_t> DaysAgo(const std::string& days) {
  const int64_t now = SystemClock::Get().WallUs() / 1'000'000;
  return (now - std::stoll(days, nullptr, 0) * 86'400) * 1'000'000;
}

void ShowDifferences(Invocation& invocation, const Arguments&,
                     const google::protobuf::Message& message) {
  const auto& response = static_cast<const pb::ReconcilePaymentsResponse&>(message);
  const auto columns = Shown::Parse(
      "kind DIFFERENCE | payment PAYMENT | provider_id PROVIDER'S ID | "
      "provider_usd=provider_amount_usd PROVIDER | ledger_usd=ledger_amount_usd LEDGER");
  Table table = TableOf(columns);
  for (const pb::PaymentDifference& one : response.differences()) table.Add(RowOf(columns, one));
  invocation.ShowList(
      table, "differences",
      "No differences: " + std::to_string(response.provider_charges()) +
          " charges of the provider, " + std::to_string(response.payments()) +
          " payments compared.",
      {{"provider_charges", response.provider_charges()}, {"payments", response.payments()}});
  if (response.differences_size() > 0) invocation.set_exit_code(1);
}

std::vector<Flag> ReloadFlags() {
  return {WorkspaceFlag(),
          Flag("--on", "Switch it on", "auto_reload.enabled"),
          Flag("--off", "Switch it off; a running charge ends", "auto_reload.enabled")
              .Switch("false")
              .Excludes("--on"),
          Flag("--threshold", "USD: charge when spending lowers the balance below it",
               "auto_reload.threshold_usd"),
          Flag("--amount", "USD of one charge, whole cents", "auto_reload.amount_usd"),
          Flag("--ceiling", "USD: most that is charged in a UTC month",
               "auto_reload.monthly_ceiling_usd")};
}

}  // namespace

std::vector<Command> PaymentCommands() {
  const Flag amount = Flag("amount", "USD, whole cents", "amount_usd").Required();
  const Flag payment = Flag("payment", "Payment").Required();
  const Flag reason("--reason", "Reason", "reason");
  return {
      Command("payment", "Top-ups and refunds of a workspace"),
      Command("payment list", "Payments of a workspace, newest first",
              "PaymentService.ListPayments",
              {ParentFlag(),
               Flag("--limit", "At most this many", "page_size").Between(1, 200).Otherwise("50")})
          .Lists("payments", "No payments yet.", kPayment),
      Command("payment create", "Start a top-up: a page to pay on, or a bank transfer",
              "PaymentService.CreatePayment",
              {ParentFlag(), Flag("amount", "USD, whole cents", "payment.amount_usd").Required()})
          .Money("payment create {amount}", "payment list")
          .Shows(kPayment),
      Command("payment confirm", "The bank transfer has arrived: add the credit",
              "PaymentService.ConfirmPayment",
              {WorkspaceFlag(), payment, Flag("--reference", "What the bank shows", "reference")})
          .Sets("name", kPaymentName)
          .Shows(kPayment),
      Command("payment cancel", "Cancel a payment that was not paid",
              "PaymentService.CancelPayment",
              {WorkspaceFlag(), payment, reason,
               Flag("--give-up", "End a payment of unknown result; look at the provider first",
                    "give_up")
                   .Switch("true")})
          .Sets("name", kPaymentName)
          .Shows(kPayment),
      Command("payment refund", "Give unspent paid credit back", "PaymentService.RefundPayment",
              {WorkspaceFlag(), payment, amount, reason.Required()})
          .Money("payment refund {payment} {amount}", "payment list")
          .Sets("name", kPaymentName)
          .Shows("payment=payment.id Payment | amount_usd Amount | state State | "
                 "provider_id Provider's id"),
      Command("payment methods", "Saved cards: the default one, then the newest first",
              "PaymentService.ListPaymentMethods", {ParentFlag()})
          .Lists("payment_methods", "No saved cards.",
                 "method=name.id METHOD | brand BRAND | last4 LAST 4 | expiry EXPIRY | "
                 "at=create_time SAVED (UTC) | used_by_auto_reload CHARGED | "
                 "refused_reason REFUSED"),
      Command("payment default", "Make a card the one that auto-reload charges first",
              "PaymentService.SetDefaultPaymentMethod",
              {WorkspaceFlag(), Flag("method", "Saved card").Required()})
          .Sets("name", "workspaces/{workspace}/paymentMethods/{method}")
          .Shows("method=name.id Card | brand Brand | last4 Last 4"),
      Command("payment setup", "The page on which the customer saves a card",
              "PaymentService.SetupPaymentMethod", {ParentFlag()})
          .Shows("setup_url Page"),
      Command("reload", "Auto-reload of a workspace"),
      Command("reload show", "Settings and state", "PaymentService.GetAutoReload",
              {WorkspaceFlag()})
          .Sets("name", kReloadName)
          .Shows(kReload),
      Command("reload resume", "End a pause: the next check may charge at once",
              "PaymentService.ResumeAutoReload", {WorkspaceFlag()})
          .Sets("name", kReloadName)
          .Shows(kReload),
      Command("reload set", "Change the settings that are given", "PaymentService.UpdateAutoReload",
              ReloadFlags())
          .Sets("auto_reload.name", kReloadName)
          .Shows(kReload),
      Command(
          "reconcile",
          "Compare the provider's charges with payments and the ledger; exit code 1 on differences",
          "PaymentService.ReconcilePayments",
          {Flag("--days", "How far back", "start_time")
               .Between(1, 3650)
               .Otherwise("30")
               .As(DaysAgo, "")})
          .Then(ShowDifferences),
  };
}

}  // namespace tollgate::cli
