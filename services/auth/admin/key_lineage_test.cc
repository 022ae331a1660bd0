#include "services/auth/admin/key_lineage.h"

#include "common/base/time_units.h"
#include "common/keys/key_format.h"
#include "services/auth/admin/key_admin.h"
#include "services/auth/testing/auth_world.h"

namespace tollgate::auth {
namespace {

namespace pb = tollgate::admin::v1;

class KeyLineageTest : public AuthWorld {
 protected:
  AdminResult<pb::RotateKeyResponse> Rotate(const std::string& name, int64_t overlap_s,
                                            const std::string& id) {
    pb::RotateKeyRequest request;
    request.set_name(name);
    request.mutable_overlap()->set_seconds(overlap_s);
    request.set_request_id(id);
    return KeyAdmin(*store_).Rotate(Operator(), request);
  }
  std::vector<std::string> LineageOf(const std::string& secret) {
    v1::VerifyKeyRequest request;
    request.set_key_digest(KeyDigest(secret));
    auto found = store_->VerifyKey(request);
    EXPECT_TRUE(found);
    return {found->key().lineage().begin(), found->key().lineage().end()};
  }
};

INSTANTIATE_TEST_SUITE_P(Databases, KeyLineageTest,
                         ::testing::Values(DatabaseKind::kSqlite, DatabaseKind::kPostgres),
                         NameOfKind);

// The limiter, quotas and idempotency know a key by its lineage.
TEST_P(KeyLineageTest, RotatedThreeTimesAllKeysKnowTheirLineage) {
  const auto made = MakeAKey("one");
  std::vector<std::string> ids = {IdOf(made.key())};
  std::vector<std::string> secrets = {made.secret()};
  EXPECT_TRUE(LineageOf(made.secret()).empty());
  std::string name = made.key().name();
  for (const char* call : {"r1", "r2", "r3", "r4"}) {
    const bool again = call == std::string_view("r4");
    const auto rotated = Rotate(again ? made.key().name() : name, 3600, call);
    ASSERT_TRUE(rotated) << rotated.error().message;
    name = rotated->key().name();
    ids.push_back(IdOf(rotated->key()));
    secrets.push_back(rotated->secret());
  }
  for (const std::string& secret : secrets) EXPECT_EQ(LineageOf(secret), ids);
}

TEST_P(KeyLineageTest, KeysThatEndedBeforeThisMonthLeaveTheLineageButTheFirstNamesIt) {
  const auto made = MakeAKey("one");
  const auto second = Rotate(made.key().name(), 0, "r1");
  const auto third = Rotate(second->key().name(), 0, "r2");
  ASSERT_TRUE(third);
  clock_.Advance(int64_t{32} * 24 * 3600 * kSecondUs);
  const auto fourth = Rotate(third->key().name(), 0, "r3");
  ASSERT_TRUE(fourth) << fourth.error().message;
  EXPECT_EQ(LineageOf(fourth->secret()),
            (std::vector<std::string>{IdOf(made.key()), IdOf(third->key()), IdOf(fourth->key())}));
}

TEST_P(KeyLineageTest, AKeyIsRotatedOnlySoOftenInAMonth) {
  std::string name = MakeAKey("one").key().name();
  for (int i = 1; i < static_cast<int>(kMaxLineage); ++i) {
    const auto rotated = Rotate(name, 0, "r" + std::to_string(i));
    ASSERT_TRUE(rotated) << i << ": " << rotated.error().message;
    name = rotated->key().name();
  }
  EXPECT_EQ(Rotate(name, 0, "more").error().reason, "ROTATED_TOO_OFTEN");
}

}  // namespace
}  // namespace tollgate::auth
