#include "services/billing/rpc/alerts_rpc.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/server_callback.h>

#include <utility>

#include "common/base/try.h"
#include "services/billing/rpc/admin_calls.h"
#include "tollgate/admin/v1/alerts.grpc.pb.h"

namespace tollgate::billing {
namespace {

namespace av = admin::v1;
using admin::AdminResult;
using admin::Caller;
using admin::Parts;
using alerts::Alerts;
using alerts::SettingChange;
using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

void ToAlertResource(const alerts::AlertSetting& setting, av::AlertSettings& out) {
  out.set_name("workspaces/" + setting.workspace + "/alertSettings");
  for (const std::string& email : setting.emails) out.add_emails(email);
  out.set_low_balance_usd(admin::FormatUsd(setting.low_balance_nano_usd));
  for (const int percent : setting.cap_percents) out.add_cap_percents(percent);
  out.set_reload_paused(setting.reload_paused);
  if (setting.updated_us > 0) SetTime(setting.updated_us, *out.mutable_update_time());
}

void ToAlertResource(const alerts::AlertWebhook& webhook, av::Webhook& out) {
  out.set_name("workspaces/" + webhook.workspace + "/webhooks/" + webhook.id);
  out.set_url(webhook.url);
  out.set_signing_secret(webhook.secret);
  SetTime(webhook.created_us, *out.mutable_create_time());
}

// Changes of the fields in the mask, or of the fields that are set. The mask has proto or JSON
// names.
AdminResult<SettingChange> ChangeOf(const av::UpdateAlertSettingsRequest& request) {
  const av::AlertSettings& from = request.alert_settings();
  std::vector<std::string> paths(request.update_mask().paths().begin(),
                                 request.update_mask().paths().end());
  if (paths.empty()) {
    if (from.emails_size() > 0) paths.emplace_back("emails");
    if (!from.low_balance_usd().empty()) paths.emplace_back("low_balance_usd");
    if (from.cap_percents_size() > 0) paths.emplace_back("cap_percents");
    if (from.reload_paused()) paths.emplace_back("reload_paused");
  }
  SettingChange change;
  for (const std::string& path : paths) {
    if (path == "emails") {
      change.emails.emplace(from.emails().begin(), from.emails().end());
    } else if (path == "low_balance_usd" || path == "lowBalanceUsd") {
      TRY(auto parsed, admin::ParseUsd(from.low_balance_usd(), "alert_settings.low_balance_usd"));
      change.low_balance_nano_usd = parsed;
    } else if (path == "cap_percents" || path == "capPercents") {
      change.cap_percents.emplace(from.cap_percents().begin(), from.cap_percents().end());
    } else if (path == "reload_paused" || path == "reloadPaused") {
      change.reload_paused = from.reload_paused();
    } else {
      return admin::InvalidField("update_mask", "\"" + path + "\" cannot be updated");
    }
  }
  return change;
}

class AlertRpc : public av::AlertService::CallbackService {
 public:
  explicit AlertRpc(Alerts& alerts) : alerts_{alerts} {}

  ServerUnaryReactor* GetAlertSettings(CallbackServerContext* context,
                                       const av::GetAlertSettingsRequest* request,
                                       av::AlertSettings* response) override {
    return admin::Handle(
        context, request, response, alerts_,
        [=](Alerts& alerts, const Caller&, const Parts& name) -> AdminResult<void> {
          return Show(alerts.admin().Get(name[0]), response);
        });
  }
  ServerUnaryReactor* UpdateAlertSettings(CallbackServerContext* context,
                                          const av::UpdateAlertSettingsRequest* request,
                                          av::AlertSettings* response) override {
    return admin::Handle(
        context, request, response, alerts_,
        [=](Alerts& alerts, const Caller& caller, const Parts& name) -> AdminResult<void> {
          TRY(auto change, ChangeOf(*request));
          return Show(alerts.admin().Update(name[0], change, OriginOf(caller)), response);
        });
  }
  ServerUnaryReactor* CreateWebhook(CallbackServerContext* context,
                                    const av::CreateWebhookRequest* request,
                                    av::Webhook* response) override {
    return admin::Handle(
        context, request, response, alerts_,
        [=](Alerts& alerts, const Caller& caller, const Parts& name) -> AdminResult<void> {
          return Show(alerts.admin().CreateWebhook(name[0], request->webhook().url(),
                                                   request->request_id(), OriginOf(caller)),
                      response);
        });
  }
  ServerUnaryReactor* ListWebhooks(CallbackServerContext* context,
                                   const av::ListWebhooksRequest* request,
                                   av::ListWebhooksResponse* response) override {
    return admin::Handle(
        context, request, response, alerts_,
        [=](Alerts& alerts, const Caller&, const Parts& name) -> AdminResult<void> {
          TRY(auto found, alerts.admin().Webhooks(name[0]));
          for (const alerts::AlertWebhook& webhook : found) {
            ToAlertResource(webhook, *response->add_webhooks());
          }
          return {};
        });
  }
  ServerUnaryReactor* DeleteWebhook(CallbackServerContext* context,
                                    const av::DeleteWebhookRequest* request,
                                    av::DeleteWebhookResponse* response) override {
    return admin::Handle(
        context, request, response, alerts_,
        [=](Alerts& alerts, const Caller& caller, const Parts& name) -> AdminResult<void> {
          return alerts.admin().DeleteWebhook(name[0], name[1], OriginOf(caller));
        });
  }
  ServerUnaryReactor* TestWebhook(CallbackServerContext* context,
                                  const av::TestWebhookRequest* request,
                                  av::TestWebhookResponse* response) override {
    return admin::Handle(
        context, request, response, alerts_,
        [=](Alerts& alerts, const Caller& caller, const Parts& name) -> AdminResult<void> {
          TRY(auto sent, alerts.admin().TestWebhook(name[0], name[1], OriginOf(caller)));
          response->set_delivered(sent.ok);
          response->set_result(sent.result);
          return {};
        });
  }

 private:
  template <typename T, typename Response>
  static AdminResult<void> Show(const AdminResult<T>& result, Response* response) {
    if (!result.ok()) return Fail{result.error()};
    ToAlertResource(*result, *response);
    return {};
  }

  const OnPart<Alerts> alerts_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeAlertRpc(alerts::Alerts& alerts) {
  return std::make_unique<AlertRpc>(alerts);
}

}  // namespace tollgate::billing
