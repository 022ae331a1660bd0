// Notices as JSON for webhooks and as e-mails for people.
#pragma once

#include <string>

#include "services/billing/alerts/alert_types.h"

namespace tollgate::billing::alerts {

// {"id":…,"kind":…,"workspace":…,"created_at":…, …}. The id is the same for every receiver and
// attempt.
std::string NoticeJson(const std::string& notice, const AlertState& state,
                       const AlertSetting& setting, const Facts& facts,
                       const std::string& dashboard_url, int64_t now_us);
std::string TestJson(const std::string& notice, const std::string& workspace, int64_t now_us);

// The complete e-mail, with CRLF. from and the delivery's target must have passed IsEmail.
std::string MailText(const Delivery& delivery, const std::string& from);

}  // namespace tollgate::billing::alerts
