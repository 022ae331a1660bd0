#include <cstdio>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/json/writer.h"
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
    "reason REASON | actor BY | confirmed_by?- CONFIRMED BY | checkout_url PAGE";
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

template <typename Messages>
Table TableOfAll(const char* columns, const Messages& messages) {
  const auto shown = Shown::Parse(columns);
  Table table = TableOf(shown);
  for (const auto& one : messages) table.Add(RowOf(shown, one));
  return table;
}

// One row for each kind of money, one column for each book.
Table TotalsOf(const pb::ReconcilePaymentsResponse& response) {
  const auto books = Shown::Parse(
      "provider_usd PROVIDER | payments_usd PAYMENTS | ledger_usd LEDGER | by_hand_usd BY HAND");
  std::vector<Column> columns{{"total", "TOTAL"}};
  for (const Shown& book : books) columns.push_back({book.name, book.title});
  Table table(std::move(columns));
  const auto add = [&](const char* total, const pb::ReconciledTotals& totals) {
    std::vector<Cell> row = RowOf(books, totals);
    row.insert(row.begin(), Text(total));
    table.Add(std::move(row));
  };
  add("charged", response.charged());
  add("refunded", response.refunded());
  return table;
}

void ShowReconciliation(Invocation& invocation, const Arguments&,
                        const google::protobuf::Message& message) {
  const auto& response = static_cast<const pb::ReconcilePaymentsResponse&>(message);
  const Table totals = TotalsOf(response);
  const Table by_hand = TableOfAll(
      "entry=name ENTRY | kind BY HAND | amount_usd AMOUNT | actor BY | reason REASON | "
      "at=post_time AT (UTC)",
      response.by_hand());
  const Table differences = TableOfAll(
      "kind DIFFERENCE | payment PAYMENT | provider_id PROVIDER'S ID | "
      "provider_usd=provider_amount_usd PROVIDER | ledger_usd=ledger_amount_usd LEDGER",
      response.differences());
  std::string out;
  if (invocation.options().json) {
    json::Writer writer;
    writer.Number("provider_charges", response.provider_charges())
        .Number("payments", response.payments())
        .Number("adopted", response.adopted())
        .Flag("reloads_wait", response.reloads_wait())
        .Raw("totals", totals.RowsAsJson())
        .Raw("by_hand", by_hand.RowsAsJson())
        .Raw("differences", differences.RowsAsJson());
    out = writer.Done() + "\n";
  } else {
    out = totals.ListAsText("") + "\n";
    if (!by_hand.empty()) out += by_hand.ListAsText("") + "\n";
    if (response.adopted() > 0) out += "Adopted: " + std::to_string(response.adopted()) + "\n";
    if (response.reloads_wait()) {
      out += "Auto-reload waits since the restore: reconcile with --adopt, further back.\n";
    }
    out += differences.ListAsText("No differences: " + std::to_string(response.provider_charges()) +
                                  " charges of the provider, " +
                                  std::to_string(response.payments()) + " payments compared.");
  }
  std::fputs(out.c_str(), stdout);
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
      Command("payment confirm",
              "The bank transfer has arrived: add the credit. A large one takes two operators",
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
      Command(
          "payment refund", "Give unspent paid credit back", "PaymentService.RefundPayment",
          {WorkspaceFlag(), payment, amount, reason.Required(),
           Flag("--adopt", "Only take the credit of this refund, made at the provider", "adopt")})
          .Money("payment refund {payment} {amount}{ adopt}", "payment list")
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
          "reconcile", "Compare the provider, payments and the ledger; exit code 1 on differences",
          "PaymentService.ReconcilePayments",
          {Flag("--days", "How far back", "start_time")
               .Between(1, 3650)
               .Otherwise("30")
               .As(DaysAgo, ""),
           Flag("--adopt", "Make payments that are lost, and follow unknown disputes", "adopt")})
          .Then(ShowReconciliation),
  };
}

}  // namespace tollgate::cli
