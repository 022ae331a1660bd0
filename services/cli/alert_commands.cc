#include <CLI/CLI.hpp>

#include <memory>
#include <string>
#include <vector>

#include "common/money/money.h"
#include "services/cli/commands.h"
#include "services/cli/invocation.h"

namespace tollgate::cli {
namespace {

namespace v1 = tollgate::admin::v1;

struct WebhookNames {
  std::string workspace;
  std::string id;
};

CLI::App& Command(CLI::App& group, const char* name, const char* help,
                  const std::shared_ptr<WebhookNames>& names) {
  CLI::App& command = *group.add_subcommand(name, help);
  command.add_option("-w,--workspace", names->workspace, "Workspace")->required();
  return command;
}

std::string WebhookName(const WebhookNames& names) {
  return "workspaces/" + names.workspace + "/webhooks/" + names.id;
}

Cell At(const google::protobuf::Timestamp& time) {
  return Time(time.seconds() * 1'000'000 + time.nanos() / 1000, "-");
}

void ShowSettings(Invocation& invocation, const v1::AlertSettings& settings) {
  Table table({{"emails", "E-mail"},
               {"low_balance_usd", "Low balance"},
               {"cap_percents", "Percents of the cap"},
               {"reload_paused", "Stopped auto-reload"},
               {"updated", "Changed (UTC)"}});
  std::vector<std::string> percents;
  for (const int percent : settings.cap_percents()) percents.push_back(std::to_string(percent));
  table.Add({List({settings.emails().begin(), settings.emails().end()}, "-"),
             Usd(ParseDecimalUsdToNano(settings.low_balance_usd()).value_or(0)),
             List(percents, "-"), Bool(settings.reload_paused()), At(settings.update_time())});
  invocation.ShowRecord(table);
}

void AddShow(CLI::App& group, Invocation& invocation) {
  auto names = std::make_shared<WebhookNames>();
  Command(group, "show", "Notices of a workspace", names).callback([&invocation, names] {
    const auto stub = invocation.Alerts();
    if (!stub) return;
    v1::GetAlertSettingsRequest request;
    request.set_name("workspaces/" + names->workspace + "/alertSettings");
    v1::AlertSettings settings;
    if (invocation.Call("billing", [&](auto& context) {
          return stub->GetAlertSettings(&context, request, &settings);
        })) {
      ShowSettings(invocation, settings);
    }
  });
}

void AddSet(CLI::App& group, Invocation& invocation) {
  auto names = std::make_shared<WebhookNames>();
  auto request = std::make_shared<v1::UpdateAlertSettingsRequest>();
  CLI::App& set = Command(group, "set", "Change the settings that are given", names);
  const auto path = [request](const char* name) {
    request->mutable_update_mask()->add_paths(name);
  };
  set.add_option_function<std::vector<std::string>>(
      "--email",
      [request, path](const std::vector<std::string>& emails) {
        for (const std::string& email : emails) {
          request->mutable_alert_settings()->add_emails(email);
        }
        path("emails");
      },
      "Receivers of mails, instead of those before");
  set.add_flag_callback("--no-email", [path] { path("emails"); }, "No mails")->excludes("--email");
  set.add_option_function<std::string>(
      "--low-balance",
      [request, path](const std::string& usd) {
        request->mutable_alert_settings()->set_low_balance_usd(usd);
        path("low_balance_usd");
      },
      "USD: notify when the available credit is below it; 0: off");
  set.add_option_function<std::vector<int>>(
         "--cap-percent",
         [request, path](const std::vector<int>& percents) {
           for (const int percent : percents) {
             if (percent > 0) request->mutable_alert_settings()->add_cap_percents(percent);
           }
           path("cap_percents");
         },
         "Notify at these percents of the spend cap; 0: off")
      ->check(CLI::IsMember({0, 50, 80, 100}));
  set.add_option_function<bool>(
      "--reload",
      [request, path](const bool& on) {
        request->mutable_alert_settings()->set_reload_paused(on);
        path("reload_paused");
      },
      "true or false: notify when auto-reload is declined or paused");
  set.callback([&invocation, names, request] {
    const auto stub = invocation.Alerts();
    if (!stub) return;
    request->mutable_alert_settings()->set_name("workspaces/" + names->workspace +
                                                "/alertSettings");
    request->set_request_id(invocation.RequestId());
    v1::AlertSettings settings;
    if (invocation.Call("billing", [&](auto& context) {
          return stub->UpdateAlertSettings(&context, *request, &settings);
        })) {
      ShowSettings(invocation, settings);
    }
  });
}

std::vector<Cell> WebhookRow(const v1::Webhook& webhook) {
  return {Text(webhook.name().substr(webhook.name().rfind('/') + 1)), Text(webhook.url()),
          At(webhook.create_time())};
}

void AddWebhookList(CLI::App& group, Invocation& invocation) {
  auto names = std::make_shared<WebhookNames>();
  Command(group, "list", "Webhooks of a workspace", names).callback([&invocation, names] {
    const auto stub = invocation.Alerts();
    if (!stub) return;
    v1::ListWebhooksRequest request;
    request.set_parent("workspaces/" + names->workspace);
    v1::ListWebhooksResponse response;
    if (!invocation.Call("billing", [&](auto& context) {
          return stub->ListWebhooks(&context, request, &response);
        })) {
      return;
    }
    Table table({{"webhook", "WEBHOOK"}, {"url", "URL"}, {"created", "CREATED (UTC)"}});
    for (const v1::Webhook& webhook : response.webhooks()) table.Add(WebhookRow(webhook));
    invocation.ShowList(table, "webhooks", "No webhooks.");
  });
}

void AddWebhookCreate(CLI::App& group, Invocation& invocation) {
  auto names = std::make_shared<WebhookNames>();
  CLI::App& create = Command(group, "create", "Add a webhook; prints its secret once", names);
  create.add_option("url", names->id, "https URL of the receiver")->required();
  create.callback([&invocation, names] {
    const auto stub = invocation.Alerts();
    if (!stub) return;
    v1::CreateWebhookRequest request;
    request.set_parent("workspaces/" + names->workspace);
    request.mutable_webhook()->set_url(names->id);
    request.set_request_id(invocation.RequestId());
    v1::Webhook webhook;
    if (!invocation.Call("billing", [&](auto& context) {
          return stub->CreateWebhook(&context, request, &webhook);
        })) {
      return;
    }
    Table table({{"webhook", "Webhook"},
                 {"url", "URL"},
                 {"created", "Created (UTC)"},
                 {"signing_secret", "Secret (shown once)"}});
    std::vector<Cell> row = WebhookRow(webhook);
    row.push_back(Text(webhook.signing_secret()));
    table.Add(std::move(row));
    invocation.ShowRecord(table);
  });
}

void AddWebhookDelete(CLI::App& group, Invocation& invocation) {
  auto names = std::make_shared<WebhookNames>();
  CLI::App& remove =
      Command(group, "delete", "Remove a webhook and the notices that wait for it", names);
  remove.add_option("webhook", names->id, "Webhook")->required();
  remove.callback([&invocation, names] {
    const auto stub = invocation.Alerts();
    if (!stub) return;
    v1::DeleteWebhookRequest request;
    request.set_name(WebhookName(*names));
    v1::DeleteWebhookResponse response;
    if (invocation.Call("billing", [&](auto& context) {
          return stub->DeleteWebhook(&context, request, &response);
        })) {
      Table table({{"deleted", "Deleted"}});
      table.Add({Text(names->id)});
      invocation.ShowRecord(table);
    }
  });
}

void AddWebhookTest(CLI::App& group, Invocation& invocation) {
  auto names = std::make_shared<WebhookNames>();
  CLI::App& test =
      Command(group, "test", "Send a test notice; exit code 1 if it is not accepted", names);
  test.add_option("webhook", names->id, "Webhook")->required();
  test.callback([&invocation, names] {
    const auto stub = invocation.Alerts();
    if (!stub) return;
    v1::TestWebhookRequest request;
    request.set_name(WebhookName(*names));
    v1::TestWebhookResponse response;
    if (!invocation.Call("billing", [&](auto& context) {
          return stub->TestWebhook(&context, request, &response);
        })) {
      return;
    }
    Table table({{"delivered", "Delivered"}, {"result", "Result"}});
    table.Add({Bool(response.delivered()), Text(response.result())});
    invocation.ShowRecord(table);
    if (!response.delivered()) invocation.set_exit_code(1);
  });
}

}  // namespace

void AddAlertCommands(CLI::App& app, Invocation& invocation) {
  CLI::App& alert = *app.add_subcommand("alert", "Notices to a workspace about its money");
  alert.require_subcommand(1);
  AddShow(alert, invocation);
  AddSet(alert, invocation);
  CLI::App& webhook = *app.add_subcommand("webhook", "Receivers of a workspace's notices");
  webhook.require_subcommand(1);
  AddWebhookList(webhook, invocation);
  AddWebhookCreate(webhook, invocation);
  AddWebhookDelete(webhook, invocation);
  AddWebhookTest(webhook, invocation);
}

}  // namespace tollgate::cli
