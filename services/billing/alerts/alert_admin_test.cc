// Each change by a person writes an audit entry in the same transaction.
#include "services/billing/alerts/alert_admin.h"

#include "common/audit/log.h"
#include "services/billing/alerts/testing/alert_world.h"

namespace tollgate::billing::alerts {
namespace {

class AlertAdminTest : public AlertTest {};
INSTANTIATE_TEST_SUITE_P(All, AlertAdminTest,
                         ::testing::Values(sql::Dialect::kSqlite, sql::Dialect::kPostgres),
                         Dialect);

TEST_P(AlertAdminTest, EachChangeHasOneEntryHoweverOftenItIsRepeated) {
  auto replica = Make();
  const auto by = [](const std::string& call) {
    return audit::Origin("user:ann", "192.0.2.7", call);
  };
  SettingChange change;
  change.emails = {"ann@example.com", "bob@example.com"};
  change.low_balance_nano_usd = 5 * kNanoPerUsd;
  ASSERT_TRUE(replica->admin.Update("acme", change, by("r1")).ok());
  auto made = replica->admin.CreateWebhook("acme", hooks_.url(), "r2", by("r2"));
  ASSERT_TRUE(made.ok()) << made.error().message;
  ASSERT_TRUE(replica->admin.CreateWebhook("acme", hooks_.url(), "r2", by("r2")).ok());
  ASSERT_TRUE(replica->admin.DeleteWebhook("acme", made->id, by("r3")).ok());
  EXPECT_FALSE(replica->admin.DeleteWebhook("acme", made->id, by("r4")).ok());
  change.emails = {"no address"};
  EXPECT_FALSE(replica->admin.Update("acme", change, by("r5")).ok());

  auto connection = database_->Borrow();
  ASSERT_TRUE(connection.ok());
  auto page = audit::ReadPage(**connection, audit::kEntries, 0, 1000);
  ASSERT_TRUE(page.ok());
  std::vector<std::string> texts;
  for (const audit::Record& record : page->records) {
    if (record.address != "192.0.2.7") continue;
    EXPECT_EQ(record.actor, "user:ann");
    EXPECT_EQ(record.workspace_id, "acme");
    texts.push_back(record.request_id + " " + record.action + " " + record.subject + ": " +
                    record.detail);
  }
  EXPECT_EQ(texts, (std::vector<std::string>{
                       "r1 alert_settings.update acme: 2 addresses, low balance 5 USD, cap at "
                       "50 80 100 %, paused reload on",
                       "r2 webhook.create " + made->id + ": " +
                           hooks_.url().substr(0, hooks_.url().rfind('/')),
                       "r3 webhook.delete " + made->id + ": "}));
}

}  // namespace
}  // namespace tollgate::billing::alerts
