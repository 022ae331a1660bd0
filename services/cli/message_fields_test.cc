#include "services/cli/message_fields.h"

#include <gtest/gtest.h>

#include "tollgate/admin/v1/adjustments.pb.h"
#include "tollgate/admin/v1/alerts.pb.h"
#include "tollgate/admin/v1/keys.pb.h"
#include "tollgate/admin/v1/ledger.pb.h"
#include "tollgate/admin/v1/usage.pb.h"

namespace tollgate::cli {
namespace {

namespace pb = tollgate::admin::v1;

TEST(SetFieldTest, TextsBecomeValuesOfTheFieldsType) {
  pb::CreateAdjustmentRequest adjustment;
  EXPECT_TRUE(SetField(adjustment, "parent", {"workspaces/acme"}));
  EXPECT_TRUE(SetField(adjustment, "adjustment.kind", {"write-off"}));
  EXPECT_TRUE(SetField(adjustment, "adjustment.granted", {"granted"}));
  EXPECT_EQ(adjustment.parent(), "workspaces/acme");
  EXPECT_EQ(adjustment.adjustment().kind(), pb::ADJUSTMENT_KIND_WRITE_OFF);
  EXPECT_TRUE(adjustment.adjustment().granted());
  EXPECT_TRUE(SetField(adjustment, "adjustment.granted", {"false"}));
  EXPECT_FALSE(adjustment.adjustment().granted());

  pb::UpdateAlertSettingsRequest alerts;
  EXPECT_TRUE(SetField(alerts, "alert_settings.cap_percents", {"50", "80"}));
  EXPECT_TRUE(SetField(alerts, "update_mask.paths", {"cap_percents"}));
  EXPECT_EQ(alerts.alert_settings().cap_percents_size(), 2);
  EXPECT_EQ(alerts.update_mask().paths(0), "cap_percents");

  pb::ImportKeysRequest keys;
  EXPECT_TRUE(SetField(keys, "keys.sha256", {"00ff"}));
  EXPECT_TRUE(SetField(keys, "keys.key.labels", {"team=a=b", "x="}));
  EXPECT_TRUE(SetField(keys, "keys.key.limits.requests_per_minute", {"60"}));
  ASSERT_EQ(keys.keys_size(), 1);
  EXPECT_EQ(keys.keys(0).sha256(), std::string("\0\xff", 2));
  EXPECT_EQ(keys.keys(0).key().labels().at("team"), "a=b");
  EXPECT_EQ(keys.keys(0).key().labels().at("x"), "");
  EXPECT_EQ(keys.keys(0).key().limits().requests_per_minute(), 60);

  pb::RotateKeyRequest rotate;
  SetTime(rotate, "overlap", 90'000'001);
  EXPECT_EQ(rotate.overlap().seconds(), 90);
  EXPECT_EQ(rotate.overlap().nanos(), 1000);
  rotate.clear_overlap();
  SetTime(rotate, "overlap", 0);
  EXPECT_TRUE(rotate.has_overlap());
}

TEST(SetFieldTest, RefusesWhatTheTypeDoesNotHave) {
  pb::CreateAdjustmentRequest request;
  EXPECT_FALSE(SetField(request, "nothing", {"x"}));
  EXPECT_FALSE(SetField(request, "adjustment.kind", {"gift"}));
  pb::ImportKeysRequest keys;
  EXPECT_FALSE(SetField(keys, "keys.sha256", {"not hexadecimal"}));
  EXPECT_FALSE(SetField(keys, "keys.key.labels", {"no equals sign"}));
}

TEST(FieldPathTest, OnlyTextHasParts) {
  EXPECT_EQ(FieldPath::Of(*pb::Key::descriptor(), "name.id").part, "id");
  EXPECT_EQ(FieldPath::Of(*pb::Key::descriptor(), "limits.requests_per_minute").fields.size(), 2U);
  EXPECT_TRUE(FieldPath::Of(*pb::Key::descriptor(), "state.id").fields.empty());
  EXPECT_TRUE(FieldPath::Of(*pb::Key::descriptor(), "name.id.id").fields.empty());
  EXPECT_TRUE(FieldPath::Of(*pb::Key::descriptor(), "").fields.empty());
}

TEST(CellAtTest, ValuesAreShownByTheirType) {
  pb::Key key;
  key.set_name("workspaces/acme/keys/k1");
  key.set_state(pb::KEY_STATE_ACTIVE);
  key.add_allowed_models("demo/*");
  key.mutable_create_time()->set_seconds(1'800'000'000);
  const auto shown = [&](const char* path, std::optional<std::string> empty = {}) {
    return CellAt(key, {.path = path, .empty = std::move(empty)});
  };
  EXPECT_EQ(shown("name.id").shown, "k1");
  EXPECT_EQ(shown("name.workspace").json, "\"acme\"");
  EXPECT_EQ(shown("state").shown, "active");
  EXPECT_EQ(shown("allowed_models", "all").json, "[\"demo/*\"]");
  EXPECT_EQ(shown("allowed_addresses", "all").shown, "all");
  EXPECT_EQ(shown("allowed_addresses", "all").json, "[]");
  EXPECT_EQ(shown("create_time").shown, "2027-01-15 08:00:00");
  EXPECT_EQ(shown("expire_time", "never").shown, "never");
  EXPECT_EQ(shown("expire_time", "never").json, "null");
  EXPECT_EQ(shown("expire_time").shown, "-");
  EXPECT_EQ(shown("monthly_quota_usd", "none").json, "null");
  key.set_monthly_quota_usd("0");
  EXPECT_EQ(shown("monthly_quota_usd", "none").json, "\"0\"") << "given, and zero";

  pb::Balance balance;
  EXPECT_EQ(CellAt(balance, {.path = "frozen", .empty = "no"}).json, "\"no\"");
  balance.set_frozen(pb::FREEZE_REASON_FAILED_CHECK);
  balance.set_available_usd("12.5");
  EXPECT_EQ(CellAt(balance, {.path = "frozen", .empty = "no"}).shown, "failed_check");
  EXPECT_EQ(CellAt(balance, {.path = "available_usd"}).shown, "$12.50");
  EXPECT_TRUE(CellAt(balance, {.path = "open_holds"}).right);

  pb::Transaction entry;
  entry.set_name("workspaces/acme/transactions/17");
  entry.set_month("2026-11");
  EXPECT_EQ(CellAt(entry, {.path = "name.number"}).json, "17");
  EXPECT_EQ(CellAt(entry, {.path = "month.number"}).json, "202611");

  pb::Receipt receipt;
  receipt.mutable_tokens()->set_prompt_tokens(7);
  receipt.set_exact_cost_usd("0.000000000001");
  EXPECT_EQ(CellAt(receipt, {.path = "tokens.prompt_tokens"}).json, "7");
  EXPECT_EQ(CellAt(receipt, {.path = "exact_cost_usd.exact"}).shown, "$0.000000000001");
}

}  // namespace
}  // namespace tollgate::cli
