#include "tests/secrets/canaries.h"

#include <gtest/gtest.h>

namespace tollgate::test {
namespace {

// Tests the search that the other tests rely on.
TEST(Canaries, ASecretIsFoundInAnyFormAndPlace) {
  Canaries canaries;
  ASSERT_TRUE(canaries.Add("secret", "canary/ab+cd=ef?gh&ijklm"));
  EXPECT_FALSE(canaries.Add("short", "1234567"));
  for (const char* text :
       {"canary/ab+cd=ef?gh&ijklm", "… canary/ab+cd=ef?gh&ijklm …",
        "63616e6172792f61622b63643d65663f676826696a6b6c6d",
        "63616E6172792F61622B63643D65663F676826696A6B6C6D", "x=canary%2Fab%2Bcd%3Def%3Fgh%26ijklm",
        "Y2FuYXJ5L2FiK2NkPWVmP2doJmlqa2xt",
        // The secret after one byte and after two.
        "eGNhbmFyeS9hYitjZD1lZj9naCZpamtsbQ==", "eHhjYW5hcnkvYWIrY2Q9ZWY_Z2gmaWprbG0",
        "canary/ab+cd", "=ef?gh&ijklm"}) {
    EXPECT_EQ(canaries.FindIn("log", text).size(), 1U) << text;
  }
  EXPECT_TRUE(canaries.FindIn("log", "canary/").empty());
  EXPECT_TRUE(canaries.FindIn("log", "").empty());
  EXPECT_EQ(canaries.FindIn("log", "canary/ab+cd=ef?gh&ijklm")[0].find("secret in log"), 0U);
}

}  // namespace
}  // namespace tollgate::test
