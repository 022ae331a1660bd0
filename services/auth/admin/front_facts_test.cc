#include "services/auth/admin/front_facts.h"

#include <algorithm>

#include "common/base/time_units.h"
#include "services/auth/admin/key_policy.h"
#include "services/auth/testing/auth_world.h"

namespace tollgate::auth {
namespace {

class FrontFactsTest : public AuthWorld {
 protected:
  std::string KeyThatExpires(const std::string& id, int64_t in_us) {
    admin::v1::Key key;
    key.set_display_name(id);
    if (in_us > 0) *key.mutable_expire_time() = admin::ToTimestamp(clock_.WallUs() + in_us);
    return IdOf(MakeAKey(id, key).key());
  }
  v1::ReadWorkspaceFactsResponse Facts(const std::string& workspace) {
    v1::ReadWorkspaceFactsRequest request;
    request.set_workspace_id(workspace);
    request.set_expire_start_us(clock_.WallUs());
    request.set_expire_end_us(clock_.WallUs() + 7 * kDayUs);
    auto facts = ReadWorkspaceFacts(*store_, request);
    EXPECT_TRUE(facts);
    return facts ? *facts : v1::ReadWorkspaceFactsResponse();
  }
  v1::NoteChangeResponse Note(const std::string& action, const std::string& request_id) {
    v1::NoteChangeRequest request;
    request.set_actor("user:u1");
    request.set_address("192.0.2.9");
    request.set_action(action);
    request.set_subject("engine-1");
    request.set_detail("a reason");
    request.set_request_id(request_id);
    auto noted = NoteChange(*store_, request);
    EXPECT_TRUE(noted) << (noted ? "" : noted.error().ToString());
    return noted ? *noted : v1::NoteChangeResponse();
  }
  int Noted(const std::string& action) {
    const auto events = Events();
    return static_cast<int>(std::ranges::count(events, action, &AuditRecord::action));
  }
};
INSTANTIATE_TEST_SUITE_P(Databases, FrontFactsTest,
                         ::testing::Values(DatabaseKind::kSqlite, DatabaseKind::kPostgres),
                         NameOfKind);

TEST_P(FrontFactsTest, KeysThatExpireInThePeriodTheFirstOneFirst) {
  KeyThatExpires("never", 0);
  KeyThatExpires("later", 8 * kDayUs);
  const std::string third = KeyThatExpires("third", 6 * kDayUs);
  const std::string first = KeyThatExpires("first", kDayUs);
  const auto facts = Facts("acme");
  EXPECT_EQ(facts.report_time_zone(), "UTC");
  ASSERT_EQ(facts.expiring_keys_size(), 2);
  EXPECT_EQ(facts.expiring_keys(0).key_id(), first);
  EXPECT_EQ(facts.expiring_keys(0).display_name(), "first");
  EXPECT_EQ(facts.expiring_keys(0).expire_us(), clock_.WallUs() + kDayUs);
  EXPECT_EQ(facts.expiring_keys(1).key_id(), third);
  EXPECT_EQ(Facts("none-such").report_time_zone(), "");
}

// Decision 55: refusals are counted by code, reason and quarter of an hour. Counts of several
// gateways are added; a repeated or late report changes nothing.
TEST_P(FrontFactsTest, RefusalsOfAllKeysAreAddedByCodeAndReason) {
  const int64_t quarter = clock_.WallUs() / 900'000'000;
  const std::string keys[] = {KeyThatExpires("one", 0), KeyThatExpires("two", 0)};
  const auto report = [&](const std::string& gateway, const std::string& key, int64_t count,
                          const char* reason = "requests") {
    v1::ReportKeyUseRequest request;
    request.set_reporter(gateway);
    v1::KeyUse& use = *request.add_uses();
    use.set_key_id(key);
    v1::RefusalCount& refusal = *use.add_refusals();
    refusal.set_quarter(quarter);
    refusal.set_code("rate_limited");
    refusal.set_reason(reason);
    refusal.set_count(count);
    EXPECT_TRUE(StoreUse(*store_, {}, request));
  };
  report("g1", keys[0], 3);
  report("g1", keys[0], 5);
  report("g1", keys[0], 4);
  report("g2", keys[0], 1);
  report("g2", keys[1], 10);
  report("g2", keys[1], 7, "");       // a gateway that does not know reasons
  report("g2", "0123456789ab", 100);  // a key of another workspace, or unknown
  const auto facts = Facts("acme");
  ASSERT_EQ(facts.refusals_size(), 2);
  EXPECT_EQ(facts.refusals(0).reason(), "");
  EXPECT_EQ(facts.refusals(0).count(), 7);
  EXPECT_EQ(facts.refusals(1).quarter(), quarter);
  EXPECT_EQ(facts.refusals(1).code(), "rate_limited");
  EXPECT_EQ(facts.refusals(1).reason(), "requests");
  EXPECT_EQ(facts.refusals(1).count(), 16);
  clock_.Advance(27 * 3'600'000'000LL);
  ASSERT_TRUE(PruneUse(*store_));
  EXPECT_EQ(Facts("acme").refusals_size(), 0);
}

TEST_P(FrontFactsTest, AMalformedReportOfRefusalsIsRefused) {
  for (const char* code : {"", "Rate Limited", "a\nb"}) {
    v1::ReportKeyUseRequest request;
    request.set_reporter("g1");
    v1::KeyUse& use = *request.add_uses();
    use.set_key_id("0123456789ab");
    v1::RefusalCount& refusal = *use.add_refusals();
    refusal.set_code(code);
    refusal.set_count(1);
    EXPECT_FALSE(StoreUse(*store_, {}, request)) << code;
    refusal.set_code("rate_limited");
    refusal.set_reason(std::string(code) + "!");
    EXPECT_FALSE(StoreUse(*store_, {}, request)) << code;
  }
}

TEST_P(FrontFactsTest, AChangeIsNotedOncePerRequestId) {
  EXPECT_FALSE(Note("engine.drain", "r1").reused());
  EXPECT_FALSE(Note("engine.drain", "r1").reused());
  EXPECT_EQ(Noted("engine.drain"), 1);
  EXPECT_TRUE(Note("engine.resume", "r1").reused());
  EXPECT_EQ(Noted("engine.resume"), 0);
  Note("engine.resume", "");
  Note("engine.resume", "");
  EXPECT_EQ(Noted("engine.resume"), 2);
  const auto events = Events();
  const auto event = std::ranges::find(events, "engine.drain", &AuditRecord::action);
  EXPECT_EQ(event->actor, "user:u1");
  EXPECT_EQ(event->address, "192.0.2.9");
  EXPECT_EQ(event->subject, "engine-1");
  EXPECT_EQ(event->detail, "a reason");
  EXPECT_EQ(event->request_id, "r1");
  EXPECT_TRUE(store_->VerifyAudit());
  v1::NoteChangeRequest nobody;
  nobody.set_action("engine.drain");
  EXPECT_FALSE(NoteChange(*store_, nobody));
}

}  // namespace
}  // namespace tollgate::auth
