// Reads and writes the rows of alerts. Decides whether a notice is due from rows of the ledger and
// of auto-reload in the same database, in the transaction that puts the notice into the outbox.
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

// Data of one workspace, read in one transaction. States are read before facts. So if a state is
// still the same when it is changed, the facts were not older than the state.
struct Snapshot {
  AlertSetting setting;
  std::vector<std::string> webhooks;  // ids
  std::vector<AlertState> states;
  Facts facts;
};

class AlertStore {
 public:
  // seal_key: seals the secrets of webhooks; kSealKeyBytes long. Empty: secrets are not sealed.
  explicit AlertStore(sql::Database& database, std::string seal_key = "")
      : database_(database), seal_key_(std::move(seal_key)) {}

  sql::SqlResult<void> Migrate();

  // Returns the defaults for a workspace without settings.
  sql::SqlResult<AlertSetting> FindSetting(const std::string& workspace);
  using Change = std::function<void(AlertSetting&)>;
  // Arms the low-balance alert again when its limit changes. content: all parameters of the call; a
  // call that was made before (seen) changes nothing.
  sql::SqlResult<AlertSetting> UpdateSetting(const std::string& workspace, int64_t now_us,
                                             const audit::Origin& by, const std::string& content,
                                             const Change& change, SeenRequest& seen);
  // Workspaces with settings, and those that the ledger has frozen after a failed check, now or
  // before.
  sql::SqlResult<std::vector<std::string>> Watched();

  // Oldest first. Here and in FindWebhook the secret is empty if it was sealed with another key.
  sql::SqlResult<std::vector<AlertWebhook>> Webhooks(const std::string& workspace);
  sql::SqlResult<std::optional<AlertWebhook>> FindWebhook(const std::string& workspace,
                                                          const std::string& id);
  // full: the workspace already has kMaxWebhooks. Changes nothing if the id exists.
  sql::SqlResult<void> AddWebhook(const AlertWebhook& webhook, const audit::Origin& by, bool& full);
  // Seals secrets that were stored before a key was configured.
  sql::SqlResult<void> SealSecrets();
  // Writes an audit entry without a change in these tables.
  sql::SqlResult<void> Log(audit::Record record);
  // Removes the webhook and its waiting deliveries. Returns whether it existed.
  sql::SqlResult<bool> RemoveWebhook(const std::string& workspace, const std::string& id,
                                     int64_t now_us, const audit::Origin& by);

  // Runs one transaction: reads the snapshot, applies the steps from decide whose state is
  // unchanged, and stores the rendered notice of each step that notifies. Returns the kinds of
  // these notices.
  struct Rendered {
    AlertState state;
    std::vector<Delivery> deliveries;
    bool notify = false;
  };
  using Decider = std::function<std::vector<Rendered>(const Snapshot&)>;
  sql::SqlResult<std::vector<AlertKind>> Run(const std::string& workspace, int64_t now_us,
                                             const Decider& decide);

  // Returns due rows, oldest first.
  sql::SqlResult<std::vector<Delivery>> Due(int64_t now_us, int limit);
  // Reserves the row until then and counts the attempt. Returns false if another engine was faster.
  sql::SqlResult<bool> Claim(Delivery& delivery, int64_t until_us);
  // Ends the claim, unless it has expired and another engine has the row.
  sql::SqlResult<void> Finish(const Delivery& delivery, DeliveryState state, int64_t next_us,
                              const std::string& error);
  // All rows of a workspace's outbox, for tests and people.
  sql::SqlResult<std::vector<Delivery>> Outbox(const std::string& workspace);
  // Removes completed rows created before this time.
  sql::SqlResult<void> Prune(int64_t before_us);
  // Creation time of the oldest waiting row; 0: none waits.
  sql::SqlResult<int64_t> OldestWaitingUs();

 private:
  // Converts a secret to its stored form, and back.
  std::string Stored(const AlertWebhook& webhook) const;
  AlertWebhook Opened(AlertWebhook stored) const;

  sql::Database& database_;
  const std::string seal_key_;
};

}  // namespace tollgate::billing::alerts
