// Part of the store: webhooks and the outbox.
#include "common/base/base64.h"
#include "common/base/ledger_shard.h"
#include "common/base/seal.h"
#include "common/base/try.h"
#include "services/billing/alerts/alert_store.h"

namespace tollgate::billing::alerts {
namespace {

using sql::Connection;
using sql::Row;
using sql::SqlResult;
using sql::TxMode;

constexpr char kColumns[] =
    "SELECT workspace, id, notice, kind, payload, channel, target, attempts, next_us, state,"
    " last_error, created_us FROM alert_outbox ";
constexpr char kWebhookColumns[] =
    "SELECT workspace, id, url, secret, created_us FROM alert_webhook ";

Delivery ReadDelivery(const Row& row) {
  return {row.Text(0),  row.Text(1),
          row.Text(2),  row.Text(3),
          row.Text(4),  static_cast<Channel>(row.Int(5)),
          row.Text(6),  row.Int(7),
          row.Int(8),   static_cast<DeliveryState>(row.Int(9)),
          row.Text(10), row.Int(11)};
}

// Prefix of a sealed secret; an unsealed secret begins with "whsec_".
constexpr std::string_view kSealed = "sealed:";

// Binds the secret to its row: copied into another row, it cannot be opened.
std::string SealContext(const AlertWebhook& webhook) {
  return "webhook\n" + webhook.workspace + "\n" + webhook.id;
}

AlertWebhook ReadWebhook(const Row& row) {
  return {row.Text(0), row.Text(1), row.Text(2), row.Text(3), row.Int(4)};
}

template <typename T, typename Read>
SqlResult<std::vector<T>> Many(sql::Database& database, const std::string& text,
                               std::initializer_list<sql::Param> params, Read read) {
  std::vector<T> found;
  auto done = database.Transact(TxMode::kRead, [&](Connection& db) {
    found.clear();
    return db.Query(text, params, [&](const Row& row) { found.push_back(read(row)); });
  });
  if (!done.ok()) return Fail{std::move(done).error()};
  return found;
}

// Runs one statement in its own transaction. Returns the number of changed rows.
SqlResult<int64_t> RunOne(sql::Database& database, const std::string& text,
                          std::initializer_list<sql::Param> params) {
  int64_t changed = 0;
  auto done = database.Transact(TxMode::kWrite, [&](Connection& db) -> SqlResult<void> {
    TRY(auto result, db.Execute(text, params));
    changed = result;
    return {};
  });
  if (!done.ok()) return Fail{std::move(done).error()};
  return changed;
}

}  // namespace

std::string AlertStore::Stored(const AlertWebhook& webhook) const {
  if (seal_key_.empty()) return webhook.secret;
  return std::string(kSealed) + Base64Encode(Seal(seal_key_, SealContext(webhook), webhook.secret));
}

AlertWebhook AlertStore::Opened(AlertWebhook stored) const {
  if (!stored.secret.starts_with(kSealed)) return stored;
  const auto sealed = Base64Decode(std::string_view(stored.secret).substr(kSealed.size()));
  auto secret =
      sealed && !seal_key_.empty() ? Unseal(seal_key_, SealContext(stored), *sealed) : std::nullopt;
  stored.secret = secret.value_or("");
  return stored;
}

SqlResult<void> AlertStore::SealSecrets() {
  if (seal_key_.empty()) return {};
  TRY(auto plain,
      Many<AlertWebhook>(database_,
                         std::string(kWebhookColumns) + "WHERE secret LIKE 'whsec@_%' ESCAPE '@'",
                         {}, ReadWebhook));
  for (const AlertWebhook& webhook : plain) {
    TRY(RunOne(database_,
               "UPDATE alert_webhook SET secret = $1 WHERE shard = $2 AND workspace = $3"
               " AND id = $4",
               {Stored(webhook), LedgerShard(webhook.workspace), webhook.workspace, webhook.id}));
  }
  return {};
}

SqlResult<std::vector<AlertWebhook>> AlertStore::Webhooks(const std::string& workspace) {
  return Many<AlertWebhook>(
      database_,
      std::string(kWebhookColumns) + "WHERE shard = $1 AND workspace = $2 ORDER BY created_us, id",
      {LedgerShard(workspace), workspace},
      [this](const Row& row) { return Opened(ReadWebhook(row)); });
}

SqlResult<std::optional<AlertWebhook>> AlertStore::FindWebhook(const std::string& workspace,
                                                               const std::string& id) {
  TRY(auto found, Many<AlertWebhook>(database_,
                                     std::string(kWebhookColumns) +
                                         "WHERE shard = $1 AND workspace = $2 AND id = $3",
                                     {LedgerShard(workspace), workspace, id},
                                     [this](const Row& row) { return Opened(ReadWebhook(row)); }));
  if (found.empty()) return std::optional<AlertWebhook>();
  return std::optional<AlertWebhook>(std::move(found.front()));
}

SqlResult<void> AlertStore::AddWebhook(const AlertWebhook& webhook, const audit::Origin& by,
                                       bool& full) {
  const int32_t shard = LedgerShard(webhook.workspace);
  return database_.Transact(TxMode::kWrite, [&](Connection& db) -> SqlResult<void> {
    // Creates the settings row: a webhook without settings never gets a notice. The row's lock also
    // stops concurrent calls from exceeding the limit.
    TRY(db.Execute(
        "INSERT INTO alert_setting (shard, workspace, emails, low_balance, cap_percents,"
        " reload_paused, actor, updated_us) VALUES ($1, $2, '', 0, '50 80 100', 1, '', $3)"
        " ON CONFLICT (shard, workspace) DO UPDATE SET updated_us = excluded.updated_us",
        {shard, webhook.workspace, webhook.created_us}));
    int64_t others = 0;
    TRY(db.Query(
        "SELECT COUNT(*) FROM alert_webhook WHERE shard = $1 AND workspace = $2 AND id <> $3",
        {shard, webhook.workspace, webhook.id}, [&](const Row& row) { others = row.Int(0); }));
    full = others >= static_cast<int64_t>(kMaxWebhooks);
    if (full) return {};
    TRY(auto added,
        db.Execute("INSERT INTO alert_webhook (shard, workspace, id, url, secret, created_us)"
                   " VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (shard, workspace, id) DO NOTHING",
                   {shard, webhook.workspace, webhook.id, webhook.url, Stored(webhook),
                    webhook.created_us}));
    if (added == 0) return {};
    // Omits the path, which may contain a secret.
    const std::string host = webhook.url.substr(0, webhook.url.find('/', sizeof("https://") - 1));
    return audit::Append(db, audit::kEntries,
                         audit::RecordOf(by, webhook.created_us, "webhook.create",
                                         webhook.workspace, webhook.id, host));
  });
}

SqlResult<void> AlertStore::Log(audit::Record record) {
  return database_.Transact(
      TxMode::kWrite, [&](Connection& db) { return audit::Append(db, audit::kEntries, record); });
}

SqlResult<bool> AlertStore::RemoveWebhook(const std::string& workspace, const std::string& id,
                                          int64_t now_us, const audit::Origin& by) {
  bool removed = false;
  auto done = database_.Transact(TxMode::kWrite, [&](Connection& db) -> SqlResult<void> {
    TRY(auto webhook,
        db.Execute("DELETE FROM alert_webhook WHERE shard = $1 AND workspace = $2 AND id = $3",
                   {LedgerShard(workspace), workspace, id}));
    removed = webhook > 0;
    TRY(db.Execute(
        "DELETE FROM alert_outbox WHERE shard = $1 AND workspace = $2 AND channel = 2 AND"
        " target = $3 AND state = 1",
        {LedgerShard(workspace), workspace, id}));
    if (!removed) return {};
    return audit::Append(db, audit::kEntries,
                         audit::RecordOf(by, now_us, "webhook.delete", workspace, id, ""));
  });
  if (!done.ok()) return Fail{std::move(done).error()};
  return removed;
}

SqlResult<std::vector<Delivery>> AlertStore::Due(int64_t now_us, int limit) {
  return Many<Delivery>(
      database_,
      std::string(kColumns) + "WHERE state = 1 AND next_us <= $1 ORDER BY next_us, id LIMIT $2",
      {now_us, limit}, ReadDelivery);
}

SqlResult<bool> AlertStore::Claim(Delivery& delivery, int64_t until_us) {
  TRY(auto claimed,
      RunOne(database_,
             "UPDATE alert_outbox SET next_us = $1, attempts = attempts + 1 WHERE shard = $2 AND"
             " workspace = $3 AND id = $4 AND state = 1 AND next_us = $5 AND attempts = $6",
             {until_us, LedgerShard(delivery.workspace), delivery.workspace, delivery.id,
              delivery.next_us, delivery.attempts}));
  if (claimed == 0) return false;
  delivery.next_us = until_us;
  ++delivery.attempts;
  return true;
}

SqlResult<void> AlertStore::Finish(const Delivery& delivery, DeliveryState state, int64_t next_us,
                                   const std::string& error) {
  TRY(RunOne(database_,
             "UPDATE alert_outbox SET state = $1, next_us = $2, last_error = $3 WHERE"
             " shard = $4 AND workspace = $5 AND id = $6 AND state = 1 AND attempts = $7",
             {static_cast<int>(state), next_us, error, LedgerShard(delivery.workspace),
              delivery.workspace, delivery.id, delivery.attempts}));
  return {};
}

SqlResult<std::vector<Delivery>> AlertStore::Outbox(const std::string& workspace) {
  return Many<Delivery>(
      database_,
      std::string(kColumns) + "WHERE shard = $1 AND workspace = $2 ORDER BY created_us, id",
      {LedgerShard(workspace), workspace}, ReadDelivery);
}

SqlResult<void> AlertStore::Prune(int64_t before_us) {
  TRY(RunOne(database_, "DELETE FROM alert_outbox WHERE state <> 1 AND created_us < $1",
             {before_us}));
  return {};
}

SqlResult<int64_t> AlertStore::OldestWaitingUs() {
  TRY(auto found,
      Many<int64_t>(database_, "SELECT MIN(created_us) FROM alert_outbox WHERE state = 1", {},
                    [](const Row& row) { return row.Int(0); }));
  return found.empty() ? 0 : found.front();
}

}  // namespace tollgate::billing::alerts
