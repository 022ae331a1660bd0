// Reads and writes the rows of alerts. Whether a notice is due is decided from rows of the ledger
// and of auto-reload in the same database, in the transaction that puts the notice into the outbox.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "common/audit/log.h"
#include "common/sql/sql.h"
#include "services/billing/alerts/alert_types.h"
#include "services/billing/storage/request_ids.h"

namespace tollgate::billing::alerts {

// What one transaction knows of a workspace. The states are read before the facts: whoever changes
// a state that is still the same decides on facts that are not older than it.
struct Snapshot {
  AlertSetting setting;
  std::vector<std::string> webhooks;  // ids
  std::vector<AlertState> states;
  Facts facts;
};

class AlertStore {
 public:
  // seal_key: of kSealKeyBytes; the secrets of webhooks are sealed with it. Empty: they are not.
  explicit AlertStore(sql::Database& database, std::string seal_key = "")
      : database_(database), seal_key_(std::move(seal_key)) {}

  sql::SqlResult<void> Migrate();

  // The defaults for a workspace without settings.
  sql::SqlResult<AlertSetting> FindSetting(const std::string& workspace);
  using Change = std::function<void(AlertSetting&)>;
  // Arms the low balance again when its limit changes. content: all that the call asks for; a call
  // that was made before (seen) changes nothing.
  sql::SqlResult<AlertSetting> UpdateSetting(const std::string& workspace, int64_t now_us,
                                             const audit::Origin& by, const std::string& content,
                                             const Change& change, SeenRequest& seen);
  // Workspaces with settings, and those whose books the ledger has found wrong or had before.
  sql::SqlResult<std::vector<std::string>> Watched();

  // Oldest first. Here and in FindWebhook the secret is empty if it was sealed with another key.
  sql::SqlResult<std::vector<AlertWebhook>> Webhooks(const std::string& workspace);
  sql::SqlResult<std::optional<AlertWebhook>> FindWebhook(const std::string& workspace,
                                                          const std::string& id);
  // full: there are kMaxWebhooks already. Changes nothing when the id is there.
  sql::SqlResult<void> AddWebhook(const AlertWebhook& webhook, const audit::Origin& by, bool& full);
  // Seals the secrets that were stored before there was a key.
  sql::SqlResult<void> SealSecrets();
  // An audit entry about what changes nothing here.
  sql::SqlResult<void> Log(audit::Record record);
  // Drops what waits for it. Whether it was there.
  sql::SqlResult<bool> RemoveWebhook(const std::string& workspace, const std::string& id,
                                     int64_t now_us, const audit::Origin& by);

  // One transaction: reads the snapshot, takes the steps that decide returns and whose state is
  // still the same, and stores for each one that notifies what render makes of it. Returns the
  // kinds that were notified.
  struct Rendered {
    AlertState state;
    std::vector<Delivery> deliveries;
    bool notify = false;
  };
  using Decider = std::function<std::vector<Rendered>(const Snapshot&)>;
  sql::SqlResult<std::vector<AlertKind>> Run(const std::string& workspace, int64_t now_us,
                                             const Decider& decide);

  // Rows that are due, oldest first.
  sql::SqlResult<std::vector<Delivery>> Due(int64_t now_us, int limit);
  // Keeps others from the row until then and counts the attempt; false: another one was faster.
  sql::SqlResult<bool> Claim(Delivery& delivery, int64_t until_us);
  // Ends the claim, unless it has run out and another one has the row.
  sql::SqlResult<void> Finish(const Delivery& delivery, DeliveryState state, int64_t next_us,
                              const std::string& error);
  // All rows of a workspace's outbox, for tests and people.
  sql::SqlResult<std::vector<Delivery>> Outbox(const std::string& workspace);
  // Removes rows that are done and were made before.
  sql::SqlResult<void> Prune(int64_t before_us);
  // When the oldest waiting row was made; 0: none waits.
  sql::SqlResult<int64_t> OldestWaitingUs();

 private:
  // What is stored of the secret, and back.
  std::string Stored(const AlertWebhook& webhook) const;
  AlertWebhook Opened(AlertWebhook stored) const;

  sql::Database& database_;
  const std::string seal_key_;
};

}  // namespace tollgate::billing::alerts
