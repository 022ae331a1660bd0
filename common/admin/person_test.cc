#include "common/admin/person.h"

#include <gtest/gtest.h>

#include "common/admin/caller.h"

namespace tollgate::admin {
namespace {

Caller Of(const std::string& actor, const std::string& user_id = "") {
  Caller caller;
  caller.actor = actor;
  caller.user_id = user_id;
  caller.installation = user_id.empty();
  caller.fresh = true;
  caller.verified = true;
  return caller;
}

std::string Second(const Caller& caller, const std::string& first) {
  auto second = RequireSecondPerson(PersonOf(caller), first);
  return second.ok() ? "" : second.error().reason;
}

TEST(PersonTest, AUserIsOnePersonWithAllTheirTokens) {
  EXPECT_EQ(PersonOf(Of("user:u1", "u1")).account, "user:u1");
  EXPECT_EQ(PersonOf(Of("token:t1", "u1")).account, "user:u1");
  EXPECT_EQ(PersonOf(Of("cert:anna")).account, "cert:anna");
}

TEST(PersonTest, AllNamesThatNobodyHasCheckedAreOnePerson) {
  for (const char* actor : {"local:anna", "local:bert", "unverified:anna", "address:10.0.0.1"}) {
    Caller caller = Of(actor);
    caller.verified = false;
    EXPECT_EQ(PersonOf(caller).account, "unverified") << actor;
    EXPECT_EQ(RequireProved(PersonOf(caller)).error().reason, "PERSON_NOT_PROVED") << actor;
    EXPECT_EQ(Second(caller, "cert:anna"), "PERSON_NOT_PROVED") << actor;
  }
}

TEST(PersonTest, ATokenOrAnOldSignInCannotBeOneOfTwo) {
  Caller token = Of("token:t1", "u1");
  token.by_token = true;
  token.fresh = false;
  EXPECT_EQ(RequireProved(PersonOf(token)).error().reason, "STEP_UP_REQUIRED");
  Caller old = Of("user:u1", "u1");
  old.fresh = false;
  EXPECT_EQ(RequireProved(PersonOf(old)).error().reason, "STEP_UP_REQUIRED");
}

TEST(PersonTest, TheSecondPersonIsAnotherOneWhoIsKnownInTheSameWay) {
  EXPECT_EQ(Second(Of("cert:bert"), "cert:anna"), "");
  EXPECT_EQ(Second(Of("user:u2", "u2"), "user:u1"), "");
  EXPECT_EQ(Second(Of("cert:anna"), "cert:anna"), "SAME_PERSON");
  EXPECT_EQ(Second(Of("user:u1", "u1"), "user:u1"), "SAME_PERSON");
  EXPECT_EQ(Second(Of("user:u1", "u1"), "cert:anna"), "PERSON_NOT_PROVED");
  EXPECT_EQ(Second(Of("cert:anna"), "user:u1"), "PERSON_NOT_PROVED");
  EXPECT_EQ(Second(Of("cert:anna"), "local:anna"), "PERSON_NOT_PROVED");
}

}  // namespace
}  // namespace tollgate::admin
