#include "gateway/pipeline/checks/credentials.h"

#include <gtest/gtest.h>

#include <vector>

#include "common/keys/key_format.h"

namespace tollgate::gateway {
namespace {

std::string Found(Headers headers, CredentialRule rule) {
  static const std::vector<std::string> kLegacy = {"old-"};
  HttpRequest request;
  request.headers = std::move(headers);
  const auto key = FindKey(request, rule, "tollgate", kLegacy);
  if (key.ok()) return std::string(*key);
  EXPECT_EQ(key.error().id, ErrorId::kInvalidApiKey);
  return "401";
}

TEST(Credentials, RulesOfBothFamilies) {  // decision 12, H41-H43
  const std::string a = MakeKey("tollgate").text, b = MakeKey("tollgate").text;
  using enum CredentialRule;
  EXPECT_EQ(Found({{"authorization", "Bearer " + a}}, kBearer), a);
  EXPECT_EQ(Found({{"authorization", "bearer   " + a + " "}}, kBearer), a);
  EXPECT_EQ(Found({{"authorization", "Bearer " + a}, {"x-api-key", b}}, kBearer), a);
  EXPECT_EQ(Found({{"x-api-key", a}}, kBearer), "401");
  EXPECT_EQ(Found({{"x-api-key", a}}, kBearerOrApiKey), a);
  EXPECT_EQ(Found({{"authorization", "Bearer " + a}}, kBearerOrApiKey), a);
  EXPECT_EQ(Found({{"authorization", "Bearer junk"}, {"x-api-key", a}}, kBearerOrApiKey), a);
  EXPECT_EQ(Found({{"authorization", "Bearer " + a}, {"x-api-key", "junk"}}, kBearerOrApiKey), a);
  EXPECT_EQ(Found({{"authorization", "Bearer " + a}, {"x-api-key", a}}, kBearerOrApiKey), a);
  EXPECT_EQ(Found({{"authorization", "Bearer " + a}, {"x-api-key", b}}, kBearerOrApiKey), "401");
  EXPECT_EQ(Found({{"authorization", "Bearer old-0123456789abcdefghij"}}, kBearer),
            "old-0123456789abcdefghij");
  EXPECT_EQ(Found({{"authorization", "Bearer\t" + a}}, kBearer), "401");
  EXPECT_EQ(Found({{"authorization", "Bearer " + a + " " + a}}, kBearer), "401");
}

}  // namespace
}  // namespace tollgate::gateway
