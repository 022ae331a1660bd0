#include <CLI/CLI.hpp>

#include <cstdio>
#include <memory>
#include <string>

#include "services/cli/admin_cells.h"
#include "services/cli/commands.h"
#include "services/cli/invocation.h"

namespace tollgate::cli {
namespace {

namespace v1 = tollgate::admin::v1;

std::string NameOf(v1::PaymentState state) {
  return EnumText(v1::PaymentState_Name(state), "PAYMENT_STATE_");
}
std::string NameOf(v1::AutoReloadState state) {
  return EnumText(v1::AutoReloadState_Name(state), "AUTO_RELOAD_STATE_");
}

std::vector<Column> PaymentColumns() {
  return {{"payment", "PAYMENT"}, {"at", "AT (UTC)"},           {"amount_usd", "AMOUNT"},
          {"state", "STATE"},     {"credited", "CREDITED"},     {"provider", "PROVIDER"},
          {"reload", "RELOAD"},   {"refunded_usd", "REFUNDED"}, {"reason", "REASON"},
          {"actor", "BY"},        {"checkout_url", "PAGE"}};
}

std::vector<Cell> PaymentRow(const v1::Payment& payment) {
  return {Text(LastPart(payment.name())), Time(payment.create_time()), Usd(payment.amount_usd()),
          Text(NameOf(payment.state())),  Bool(payment.credited()),    Text(payment.provider()),
          Bool(payment.reload()),         Usd(payment.refunded_usd()), Text(payment.reason()),
          Text(payment.actor()),          Text(payment.checkout_url())};
}

void ShowPayment(Invocation& invocation, const v1::Payment& payment) {
  Table table(PaymentColumns());
  table.Add(PaymentRow(payment));
  invocation.ShowRecord(table);
}

struct PaymentNames {
  std::string workspace;
  std::string id;
  std::string text;  // reference, reason
  std::string amount;
};

CLI::App& Command(CLI::App& group, const char* name, const char* help,
                  const std::shared_ptr<PaymentNames>& names) {
  CLI::App& command = *group.add_subcommand(name, help);
  command.add_option("-w,--workspace", names->workspace, "Workspace")->required();
  return command;
}

std::string PaymentName(const PaymentNames& names) {
  return "workspaces/" + names.workspace + "/payments/" + names.id;
}

void AddPaymentList(CLI::App& group, Invocation& invocation) {
  auto names = std::make_shared<PaymentNames>();
  CLI::App& list = Command(group, "list", "Payments of a workspace, newest first", names);
  auto limit = std::make_shared<int>(50);
  list.add_option("--limit", *limit, "At most this many")->check(CLI::Range(1, 200));
  list.callback([&invocation, names, limit] {
    const auto stub = invocation.Payments();
    if (!stub) return;
    v1::ListPaymentsRequest request;
    request.set_parent("workspaces/" + names->workspace);
    request.set_page_size(*limit);
    v1::ListPaymentsResponse response;
    if (!invocation.Call("billing", [&](auto& context) {
          return stub->ListPayments(&context, request, &response);
        })) {
      return;
    }
    Table table(PaymentColumns());
    for (const v1::Payment& payment : response.payments()) table.Add(PaymentRow(payment));
    invocation.ShowList(table, "payments", "No payments yet.");
  });
}

void AddPaymentCreate(CLI::App& group, Invocation& invocation) {
  auto names = std::make_shared<PaymentNames>();
  CLI::App& create =
      Command(group, "create", "Start a top-up: a page to pay on, or a bank transfer", names);
  create.add_option("amount", names->amount, "USD, whole cents")->required();
  create.callback([&invocation, names] {
    const auto stub = invocation.Payments();
    if (!stub) return;
    v1::CreatePaymentRequest request;
    request.set_parent("workspaces/" + names->workspace);
    request.mutable_payment()->set_amount_usd(names->amount);
    v1::Payment payment;
    if (invocation.CallMoney(
            names->workspace, "payment create " + names->amount,
            [&](grpc::ClientContext& context, const std::string& request_id) {
              request.set_request_id(request_id);
              return stub->CreatePayment(&context, request, &payment);
            },
            "payment list")) {
      ShowPayment(invocation, payment);
    }
  });
}

void AddPaymentDecisions(CLI::App& group, Invocation& invocation) {
  auto confirmed = std::make_shared<PaymentNames>();
  CLI::App& confirm =
      Command(group, "confirm", "The bank transfer has arrived: add the credit", confirmed);
  confirm.add_option("payment", confirmed->id, "Payment")->required();
  confirm.add_option("--reference", confirmed->text, "What the bank shows");
  confirm.callback([&invocation, confirmed] {
    const auto stub = invocation.Payments();
    if (!stub) return;
    v1::ConfirmPaymentRequest request;
    request.set_name(PaymentName(*confirmed));
    request.set_reference(confirmed->text);
    request.set_request_id(invocation.RequestId());
    v1::Payment payment;
    if (invocation.Call("billing", [&](auto& context) {
          return stub->ConfirmPayment(&context, request, &payment);
        })) {
      ShowPayment(invocation, payment);
    }
  });
  auto cancelled = std::make_shared<PaymentNames>();
  CLI::App& cancel = Command(group, "cancel", "Cancel a payment that was not paid", cancelled);
  cancel.add_option("payment", cancelled->id, "Payment")->required();
  cancel.add_option("--reason", cancelled->text, "Reason");
  cancel.callback([&invocation, cancelled] {
    const auto stub = invocation.Payments();
    if (!stub) return;
    v1::CancelPaymentRequest request;
    request.set_name(PaymentName(*cancelled));
    request.set_reason(cancelled->text);
    request.set_request_id(invocation.RequestId());
    v1::Payment payment;
    if (invocation.Call("billing", [&](auto& context) {
          return stub->CancelPayment(&context, request, &payment);
        })) {
      ShowPayment(invocation, payment);
    }
  });
}

void AddPaymentRefund(CLI::App& group, Invocation& invocation) {
  auto names = std::make_shared<PaymentNames>();
  CLI::App& refund = Command(group, "refund", "Give unspent paid credit back", names);
  refund.add_option("payment", names->id, "Payment")->required();
  refund.add_option("amount", names->amount, "USD, whole cents")->required();
  refund.add_option("--reason", names->text, "Reason")->required();
  refund.callback([&invocation, names] {
    const auto stub = invocation.Payments();
    if (!stub) return;
    v1::RefundPaymentRequest request;
    request.set_name(PaymentName(*names));
    request.set_amount_usd(names->amount);
    request.set_reason(names->text);
    v1::Refund response;
    if (!invocation.CallMoney(
            names->workspace, "payment refund " + names->id + " " + names->amount,
            [&](grpc::ClientContext& context, const std::string& request_id) {
              request.set_request_id(request_id);
              return stub->RefundPayment(&context, request, &response);
            },
            "payment list")) {
      return;
    }
    Table table({{"payment", "Payment"},
                 {"amount_usd", "Amount"},
                 {"state", "State"},
                 {"provider_id", "Provider's id"}});
    table.Add({Text(LastPart(response.payment())), Usd(response.amount_usd()),
               Text(response.state()), Text(response.provider_id())});
    invocation.ShowRecord(table);
  });
}

void AddMethods(CLI::App& group, Invocation& invocation) {
  auto names = std::make_shared<PaymentNames>();
  Command(group, "methods", "Saved cards, newest first; auto-reload charges the first", names)
      .callback([&invocation, names] {
        const auto stub = invocation.Payments();
        if (!stub) return;
        v1::ListPaymentMethodsRequest request;
        request.set_parent("workspaces/" + names->workspace);
        v1::ListPaymentMethodsResponse response;
        if (!invocation.Call("billing", [&](auto& context) {
              return stub->ListPaymentMethods(&context, request, &response);
            })) {
          return;
        }
        Table table({{"method", "METHOD"},
                     {"brand", "BRAND"},
                     {"last4", "LAST 4"},
                     {"expiry", "EXPIRY"},
                     {"at", "SAVED (UTC)"}});
        for (const v1::PaymentMethod& method : response.payment_methods()) {
          table.Add({Text(LastPart(method.name())), Text(method.brand()), Text(method.last4()),
                     Text(method.expiry()), Time(method.create_time())});
        }
        invocation.ShowList(table, "payment_methods", "No saved cards.");
      });
  auto saved = std::make_shared<PaymentNames>();
  Command(group, "setup", "The page on which the customer saves a card", saved)
      .callback([&invocation, saved] {
        const auto stub = invocation.Payments();
        if (!stub) return;
        v1::SetupPaymentMethodRequest request;
        request.set_parent("workspaces/" + saved->workspace);
        request.set_request_id(invocation.RequestId());
        v1::SetupPaymentMethodResponse response;
        if (!invocation.Call("billing", [&](auto& context) {
              return stub->SetupPaymentMethod(&context, request, &response);
            })) {
          return;
        }
        Table table({{"setup_url", "Page"}});
        table.Add({Text(response.setup_url())});
        invocation.ShowRecord(table);
      });
}

void ShowReload(Invocation& invocation, const v1::AutoReload& reload) {
  Table table({{"enabled", "Enabled"},
               {"threshold_usd", "When below"},
               {"amount_usd", "Charge"},
               {"monthly_ceiling_usd", "At most a month"},
               {"month_charged_usd", "Charged this month"},
               {"state", "State"},
               {"pause_reason", "Reason"},
               {"next_attempt", "Next attempt"},
               {"last_payment", "Last payment"}});
  table.Add({Bool(reload.enabled()), Usd(reload.threshold_usd()), Usd(reload.amount_usd()),
             Usd(reload.monthly_ceiling_usd()), Usd(reload.month_charged_usd()),
             Text(NameOf(reload.state())), Text(reload.pause_reason()),
             Time(reload.next_attempt_time()), Text(LastPart(reload.last_payment()))});
  invocation.ShowRecord(table);
}

void AddReloadShow(CLI::App& group, Invocation& invocation) {
  auto names = std::make_shared<PaymentNames>();
  Command(group, "show", "Settings and state", names).callback([&invocation, names] {
    const auto stub = invocation.Payments();
    if (!stub) return;
    v1::GetAutoReloadRequest request;
    request.set_name("workspaces/" + names->workspace + "/autoReload");
    v1::AutoReload reload;
    if (invocation.Call("billing", [&](auto& context) {
          return stub->GetAutoReload(&context, request, &reload);
        })) {
      ShowReload(invocation, reload);
    }
  });
  auto resumed = std::make_shared<PaymentNames>();
  Command(group, "resume", "End a pause: the next check may charge at once", resumed)
      .callback([&invocation, resumed] {
        const auto stub = invocation.Payments();
        if (!stub) return;
        v1::ResumeAutoReloadRequest request;
        request.set_name("workspaces/" + resumed->workspace + "/autoReload");
        request.set_request_id(invocation.RequestId());
        v1::AutoReload reload;
        if (invocation.Call("billing", [&](auto& context) {
              return stub->ResumeAutoReload(&context, request, &reload);
            })) {
          ShowReload(invocation, reload);
        }
      });
}

void AddReloadSet(CLI::App& group, Invocation& invocation) {
  auto names = std::make_shared<PaymentNames>();
  auto request = std::make_shared<v1::UpdateAutoReloadRequest>();
  CLI::App& set = Command(group, "set", "Change the settings that are given", names);
  const auto set_enabled = [request](bool enabled) {
    request->mutable_auto_reload()->set_enabled(enabled);
    request->mutable_update_mask()->add_paths("enabled");
  };
  auto* on = set.add_flag_callback("--on", [set_enabled] { set_enabled(true); }, "Switch it on");
  set.add_flag_callback(
         "--off", [set_enabled] { set_enabled(false); }, "Switch it off; a running charge ends")
      ->excludes(on);
  const auto amount = [&](const char* option, const char* path, const char* help) {
    set.add_option_function<std::string>(
        option,
        [request, path](const std::string& text) {
          v1::AutoReload& reload = *request->mutable_auto_reload();
          const auto* field = reload.GetDescriptor()->FindFieldByName(path);
          reload.GetReflection()->SetString(&reload, field, text);
          request->mutable_update_mask()->add_paths(path);
        },
        help);
  };
  amount("--threshold", "threshold_usd", "USD: charge when the available credit is below it");
  amount("--amount", "amount_usd", "USD of one charge, whole cents");
  amount("--ceiling", "monthly_ceiling_usd", "USD: most that is charged in a UTC month");
  set.callback([&invocation, names, request] {
    const auto stub = invocation.Payments();
    if (!stub) return;
    request->mutable_auto_reload()->set_name("workspaces/" + names->workspace + "/autoReload");
    request->set_request_id(invocation.RequestId());
    v1::AutoReload reload;
    if (invocation.Call("billing", [&](auto& context) {
          return stub->UpdateAutoReload(&context, *request, &reload);
        })) {
      ShowReload(invocation, reload);
    }
  });
}

void AddReconcile(CLI::App& app, Invocation& invocation) {
  CLI::App& command = *app.add_subcommand(
      "reconcile",
      "Compare the provider's charges with payments and the ledger; exit code 1 on differences");
  auto days = std::make_shared<int>(30);
  command.add_option("--days", *days, "How far back")->check(CLI::Range(1, 3650));
  command.callback([&invocation, days] {
    const auto stub = invocation.Payments();
    if (!stub) return;
    v1::ReconcilePaymentsRequest request;
    request.mutable_start_time()->set_seconds(invocation.NowSeconds() - *days * 86400LL);
    v1::ReconcilePaymentsResponse response;
    if (!invocation.Call("billing", [&](auto& context) {
          return stub->ReconcilePayments(&context, request, &response);
        })) {
      return;
    }
    Table table({{"kind", "DIFFERENCE"},
                 {"payment", "PAYMENT"},
                 {"provider_id", "PROVIDER'S ID"},
                 {"provider_usd", "PROVIDER"},
                 {"ledger_usd", "LEDGER"}});
    for (const v1::PaymentDifference& one : response.differences()) {
      table.Add({Text(one.kind()), Text(one.payment()), Text(one.provider_id()),
                 Usd(one.provider_amount_usd()), Usd(one.ledger_amount_usd())});
    }
    invocation.ShowList(
        table, "differences",
        "No differences: " + std::to_string(response.provider_charges()) +
            " charges of the provider, " + std::to_string(response.payments()) +
            " payments compared.",
        {{"provider_charges", response.provider_charges()}, {"payments", response.payments()}});
    if (response.differences_size() > 0) invocation.set_exit_code(1);
  });
}

}  // namespace

void AddPaymentCommands(CLI::App& app, Invocation& invocation) {
  CLI::App& payment = *app.add_subcommand("payment", "Top-ups and refunds of a workspace");
  payment.require_subcommand(1);
  AddPaymentList(payment, invocation);
  AddPaymentCreate(payment, invocation);
  AddPaymentDecisions(payment, invocation);
  AddPaymentRefund(payment, invocation);
  AddMethods(payment, invocation);
  CLI::App& reload = *app.add_subcommand("reload", "Auto-reload of a workspace");
  reload.require_subcommand(1);
  AddReloadShow(reload, invocation);
  AddReloadSet(reload, invocation);
  AddReconcile(app, invocation);
}

}  // namespace tollgate::cli
