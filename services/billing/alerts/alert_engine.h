// Decides which notices are due and delivers them. Several engines, in several processes, may work
// on the same rows.
#pragma once

#include <string>
#include <vector>

#include "common/base/clock.h"
#include "services/billing/alerts/alert_metrics.h"
#include "services/billing/alerts/alert_store.h"
#include "services/billing/alerts/transport.h"

namespace tollgate::billing::alerts {

class AlertEngine {
 public:
  struct Options {
    MailServer mail;
    std::vector<std::string> operator_emails;
    std::string dashboard_url;
    bool allow_private = false;
    int timeout_ms = 10'000;
    // Longer than a delivery may take.
    int64_t lease_us = 120'000'000;
  };

  AlertEngine(Options options, const Clock& clock, AlertStore& store, AlertMetrics& metrics)
      : options_(std::move(options)), clock_(clock), store_(store), metrics_(metrics) {}

  // Checks a workspace and puts due notices into the outbox.
  void Check(const std::string& workspace);
  // Tries to deliver each due row once. Returns the number of attempts.
  int DeliverDue();
  // Sends a notice of the kind "test".
  Sent Test(const AlertWebhook& webhook);

  int64_t NowUs() const { return clock_.WallUs(); }
  const Options& options() const { return options_; }
  AlertStore& store() { return store_; }

 private:
  std::vector<AlertStore::Rendered> Render(const Snapshot& snapshot, int64_t now_us) const;
  Sent Send(const Delivery& delivery, bool& gone);
  void Deliver(Delivery delivery);

  const Options options_;
  const Clock& clock_;
  AlertStore& store_;
  AlertMetrics& metrics_;
};

// 32 hexadecimal digits.
std::string DerivedId(std::initializer_list<std::string_view> parts);

}  // namespace tollgate::billing::alerts
