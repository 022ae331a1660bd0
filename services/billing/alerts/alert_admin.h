// Calls of AlertService, without gRPC types.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/admin/failure.h"
#include "common/audit/log.h"
#include "services/billing/alerts/alert_engine.h"

namespace tollgate::billing::alerts {

// Fields to change.
struct SettingChange {
  std::optional<std::vector<std::string>> emails;
  std::optional<int64_t> low_balance_nano_usd;
  std::optional<std::vector<int>> cap_percents;
  std::optional<bool> reload_paused;
};

class AlertAdmin {
 public:
  explicit AlertAdmin(AlertEngine& engine) : engine_(engine), store_(engine.store()) {}

  admin::AdminResult<AlertSetting> Get(const std::string& workspace);
  admin::AdminResult<AlertSetting> Update(const std::string& workspace, const SettingChange& change,
                                          const audit::Origin& by);
  // The secret is empty if the webhook existed before.
  admin::AdminResult<AlertWebhook> CreateWebhook(const std::string& workspace,
                                                 const std::string& url,
                                                 const std::string& request_id,
                                                 const audit::Origin& by);
  // Returns the webhooks without their secrets.
  admin::AdminResult<std::vector<AlertWebhook>> Webhooks(const std::string& workspace);
  admin::AdminResult<void> DeleteWebhook(const std::string& workspace, const std::string& id,
                                         const audit::Origin& by);
  // Written to the audit log before it is sent, so that calls to external addresses are recorded.
  admin::AdminResult<Sent> TestWebhook(const std::string& workspace, const std::string& id,
                                       const audit::Origin& by);

 private:
  AlertEngine& engine_;
  AlertStore& store_;
};

}  // namespace tollgate::billing::alerts
