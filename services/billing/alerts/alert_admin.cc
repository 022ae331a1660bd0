#include "services/billing/alerts/alert_admin.h"

#include <algorithm>

#include "common/base/id.h"
#include "common/base/try.h"
#include "common/money/money.h"
#include "services/billing/alerts/receiver_rules.h"

namespace tollgate::billing::alerts {
namespace {

using admin::AdminResult;
using admin::InvalidField;

constexpr int64_t kMaxLowBalanceNanoUsd = 1'000'000'000 * int64_t{1'000'000'000};  // a billion USD

Fail<admin::Failure> Sql(const sql::SqlError& error) {
  return Fail{admin::FromError(sql::ToError(error))};
}

AdminResult<void> CheckChange(const SettingChange& change) {
  if (change.emails) {
    if (change.emails->size() > kMaxEmails) {
      return InvalidField("alert_settings.emails", "at most 10 addresses");
    }
    for (const std::string& email : *change.emails) {
      if (!mail::IsEmail(email)) {
        return InvalidField("alert_settings.emails", "one of them is not a plain e-mail address");
      }
    }
  }
  if (change.low_balance_nano_usd &&
      (*change.low_balance_nano_usd < 0 || *change.low_balance_nano_usd > kMaxLowBalanceNanoUsd)) {
    return InvalidField("alert_settings.low_balance_usd", "must be 0 to a billion");
  }
  if (change.cap_percents) {
    for (const int percent : *change.cap_percents) {
      if (std::find(std::begin(kCapPercents), std::end(kCapPercents), percent) ==
          std::end(kCapPercents)) {
        return InvalidField("alert_settings.cap_percents", "must be of 50, 80 and 100");
      }
    }
  }
  return {};
}

template <typename T>
std::vector<T> Distinct(std::vector<T> list) {
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  return list;
}

// All requested changes as text.
std::string ContentOf(const SettingChange& change) {
  std::string text;
  if (change.emails) {
    text += "emails";
    for (const std::string& email : *change.emails) text += " " + email;
  }
  if (change.low_balance_nano_usd) text += "\nlow " + std::to_string(*change.low_balance_nano_usd);
  if (change.cap_percents) {
    text += "\ncap";
    for (const int percent : *change.cap_percents) text += " " + std::to_string(percent);
  }
  if (change.reload_paused) text += *change.reload_paused ? "\npaused on" : "\npaused off";
  return text;
}

}  // namespace

AdminResult<AlertSetting> AlertAdmin::Get(const std::string& workspace) {
  auto found = store_.FindSetting(workspace);
  if (!found.ok()) return Sql(found.error());
  return *std::move(found);
}

AdminResult<AlertSetting> AlertAdmin::Update(const std::string& workspace,
                                             const SettingChange& change, const audit::Origin& by) {
  TRY(CheckChange(change));
  const auto apply = [&](AlertSetting& setting) {
    if (change.emails) setting.emails = Distinct(*change.emails);
    if (change.low_balance_nano_usd) setting.low_balance_nano_usd = *change.low_balance_nano_usd;
    if (change.cap_percents) setting.cap_percents = Distinct(*change.cap_percents);
    if (change.reload_paused) setting.reload_paused = *change.reload_paused;
    setting.actor = by.actor;
  };
  SeenRequest seen = SeenRequest::kFresh;
  auto updated =
      store_.UpdateSetting(workspace, engine_.NowUs(), by, ContentOf(change), apply, seen);
  if (!updated.ok()) return Sql(updated.error());
  if (seen == SeenRequest::kOther) return admin::RequestIdReused();
  return *std::move(updated);
}

AdminResult<AlertWebhook> AlertAdmin::CreateWebhook(const std::string& workspace,
                                                    const std::string& url,
                                                    const std::string& request_id,
                                                    const audit::Origin& by) {
  if (const std::string wrong = CheckWebhookUrl(url, engine_.options().allow_private);
      !wrong.empty()) {
    return InvalidField("webhook.url", wrong);
  }
  AlertWebhook webhook;
  webhook.workspace = workspace;
  webhook.id = DerivedId({"webhook", workspace, request_id});
  webhook.url = url;
  webhook.secret = "whsec_" + RandomBase62(40);
  webhook.created_us = engine_.NowUs();
  bool full = false;
  if (auto added = store_.AddWebhook(webhook, by, full); !added.ok()) return Sql(added.error());
  if (full) return admin::Precondition("TOO_MANY_WEBHOOKS", "a workspace has at most 10 webhooks");
  auto stored = store_.FindWebhook(workspace, webhook.id);
  if (!stored.ok()) return Sql(stored.error());
  if (!*stored) return admin::NotFound("the webhook was deleted meanwhile");
  if ((*stored)->url != url) return admin::RequestIdReused();
  // A repeated call gets no secret, so that a holder of the request id cannot read it later.
  if ((*stored)->secret != webhook.secret) (*stored)->secret.clear();
  return **std::move(stored);
}

AdminResult<std::vector<AlertWebhook>> AlertAdmin::Webhooks(const std::string& workspace) {
  auto found = store_.Webhooks(workspace);
  if (!found.ok()) return Sql(found.error());
  for (AlertWebhook& webhook : *found) webhook.secret.clear();
  return *std::move(found);
}

AdminResult<void> AlertAdmin::DeleteWebhook(const std::string& workspace, const std::string& id,
                                            const audit::Origin& by) {
  auto removed = store_.RemoveWebhook(workspace, id, engine_.NowUs(), by);
  if (!removed.ok()) return Sql(removed.error());
  if (!*removed) return admin::NotFound("there is no such webhook");
  return {};
}

AdminResult<Sent> AlertAdmin::TestWebhook(const std::string& workspace, const std::string& id,
                                          const audit::Origin& by) {
  auto found = store_.FindWebhook(workspace, id);
  if (!found.ok()) return Sql(found.error());
  if (!*found) return admin::NotFound("there is no such webhook");
  auto logged = store_.Log(audit::RecordOf(by, engine_.NowUs(), "webhook.test", workspace, id, ""));
  if (!logged.ok()) return Sql(logged.error());
  return engine_.Test(**found);
}

}  // namespace tollgate::billing::alerts
