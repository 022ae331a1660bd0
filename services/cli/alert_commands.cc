#include "services/cli/commands.h"

namespace tollgate::cli {
namespace {

constexpr char kAlertSettings[] =
    "emails?- E-mail | low_balance_usd Low balance | cap_percents?- Percents of the cap | "
    "reload_paused Stopped auto-reload | updated=update_time Changed (UTC)";

Command ChangeWebhook(const char* words, const char* help, const char* method) {
  return Command(words, help, method, {WorkspaceFlag(), Flag("webhook", "Webhook").Required()})
      .Sets("name", "workspaces/{workspace}/webhooks/{webhook}");
}

std::vector<Flag> AlertFlags() {
  return {WorkspaceFlag(),
          Flag("--email", "Receivers of mails, instead of those before", "alert_settings.emails"),
          Flag("--no-email", "No mails", "alert_settings.emails")
              .Switch("none")
              .Unset("none")
              .Excludes("--email"),
          Flag("--low-balance", "USD: notify when the available credit is below it; 0: off",
               "alert_settings.low_balance_usd"),
          Flag("--cap-percent", "Notify at these percents of the spend cap; 0: off",
               "alert_settings.cap_percents")
              .OneOf({"0", "50", "80", "100"})
              .Unset("0"),
          Flag("--reload", "true or false: notify when auto-reload is declined or paused",
               "alert_settings.reload_paused")
              .TrueOrFalse()};
}

}  // namespace

std::vector<Command> AlertCommands() {
  return {
      Command("alert", "Notices to a workspace about its money"),
      Command("alert show", "Notices of a workspace", "AlertService.GetAlertSettings",
              {WorkspaceFlag()})
          .Sets("name", "workspaces/{workspace}/alertSettings")
          .Shows(kAlertSettings),
      Command("alert set", "Change the settings that are given", "AlertService.UpdateAlertSettings",
              AlertFlags())
          .Sets("alert_settings.name", "workspaces/{workspace}/alertSettings")
          .Shows(kAlertSettings),
      Command("webhook", "Receivers of a workspace's notices"),
      Command("webhook list", "Webhooks of a workspace", "AlertService.ListWebhooks",
              {ParentFlag()})
          .Lists("webhooks", "No webhooks.",
                 "webhook=name.id WEBHOOK | url URL | created=create_time CREATED (UTC)"),
      Command("webhook create", "Add a webhook; prints its secret once",
              "AlertService.CreateWebhook",
              {ParentFlag(), Flag("url", "https URL of the receiver", "webhook.url").Required()})
          .Shows("webhook=name.id Webhook | url URL | created=create_time Created (UTC) | "
                 "signing_secret Secret (shown once)"),
      ChangeWebhook("webhook delete", "Remove a webhook and the notices that wait for it",
                    "AlertService.DeleteWebhook")
          .Shows("deleted=@webhook Deleted"),
      ChangeWebhook("webhook test", "Send a test notice; exit code 1 if it is not accepted",
                    "AlertService.TestWebhook")
          .Shows("delivered Delivered | result Result")
          .FailsWithout("delivered"),
  };
}

}  // namespace tollgate::cli
