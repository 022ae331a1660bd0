#include "gateway/worker/key_rules.h"

#include <gtest/gtest.h>

namespace tollgate::gateway {
namespace {

TEST(KeyRules, AModelIsAllowedByItsIdOrItsNamespace) {
  auth::v1::Key key;
  EXPECT_TRUE(AllowsModel(key, "acme/one"));
  key.add_allowed_models("acme/*");
  key.add_allowed_models("other/two");
  EXPECT_TRUE(AllowsModel(key, "acme/one"));
  EXPECT_TRUE(AllowsModel(key, "other/two"));
  for (const char* refused : {"other/three", "acme", "acmes/one", "other/two2", "x/acme/one", ""}) {
    EXPECT_FALSE(AllowsModel(key, refused)) << refused;
  }
}

TEST(KeyRules, AnAddressIsAllowedByItsNetwork) {
  auth::v1::Key key;
  EXPECT_TRUE(AllowsAddress(key, ""));
  key.add_allowed_addresses("192.0.2.0/24");
  key.add_allowed_addresses("2001:db8::/32");
  for (const char* allowed :
       {"192.0.2.200", "::ffff:192.0.2.1", "2001:db8:1::9", "2001:db8::1%eth0"}) {
    EXPECT_TRUE(AllowsAddress(key, allowed)) << allowed;
  }
  for (const char* refused : {"192.0.3.1", "2001:db9::1", "", "unix:", "192.0.2.1:80"}) {
    EXPECT_FALSE(AllowsAddress(key, refused)) << refused;
  }
}

}  // namespace
}  // namespace tollgate::gateway
