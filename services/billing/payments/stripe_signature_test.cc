#include "services/billing/payments/stripe_signature.h"

#include <gtest/gtest.h>

#include "common/base/crypto.h"

namespace tollgate::billing::payments {
namespace {

constexpr int64_t kNowUs = 1'763'700'000'000'000;
constexpr std::string_view kBody = R"({"id":"evt_1"})";

std::string Sign(const std::string& secret, int64_t seconds, std::string_view body = kBody) {
  return HexEncode(HmacSha256(secret, std::to_string(seconds) + "." + std::string(body)));
}

TEST(StripeSignatureTest, OnlyTheExactBytesWithTheSecretInTimeAreValid) {
  const int64_t now = kNowUs / 1'000'000;
  const std::vector<std::string> secrets{"whsec_new", "whsec_old"};
  const std::string time = "t=" + std::to_string(now);
  const std::string good = Sign("whsec_new", now);
  EXPECT_TRUE(SignatureIsValid(time + ",v1=" + good, kBody, secrets, kNowUs));
  EXPECT_TRUE(SignatureIsValid(time + ",v1=" + Sign("whsec_old", now), kBody, secrets, kNowUs))
      << "the secret that is being replaced";
  EXPECT_TRUE(SignatureIsValid(time + ",v1=00,v0=1,v1=" + good, kBody, secrets, kNowUs))
      << "several signatures";
  EXPECT_FALSE(SignatureIsValid(time + ",v1=" + Sign("other", now), kBody, secrets, kNowUs));
  EXPECT_FALSE(SignatureIsValid(time + ",v1=" + good, std::string(kBody) + " ", secrets, kNowUs));
  EXPECT_FALSE(SignatureIsValid(time + ",v0=" + good, kBody, secrets, kNowUs));
  EXPECT_FALSE(SignatureIsValid("v1=" + good, kBody, secrets, kNowUs)) << "no time";
  EXPECT_FALSE(SignatureIsValid(time + "," + time + ",v1=" + good, kBody, secrets, kNowUs));
  EXPECT_FALSE(SignatureIsValid("", kBody, secrets, kNowUs));
  EXPECT_FALSE(SignatureIsValid(time + ",v1=", kBody, secrets, kNowUs));
  EXPECT_FALSE(SignatureIsValid(time + ",v1=" + Sign("", now), kBody, {""}, kNowUs))
      << "an empty secret signs nothing";
}

TEST(StripeSignatureTest, ASignatureIsValidForFiveMinutesEitherWay) {
  const std::vector<std::string> secrets{"whsec"};
  for (const int64_t offset : {-300, -299, 0, 299, 300}) {
    const int64_t at = kNowUs / 1'000'000 + offset;
    EXPECT_TRUE(SignatureIsValid("t=" + std::to_string(at) + ",v1=" + Sign("whsec", at), kBody,
                                 secrets, kNowUs))
        << offset;
  }
  for (const int64_t offset : {-301, 301, -86400}) {
    const int64_t at = kNowUs / 1'000'000 + offset;
    EXPECT_FALSE(SignatureIsValid("t=" + std::to_string(at) + ",v1=" + Sign("whsec", at), kBody,
                                  secrets, kNowUs))
        << offset;
  }
}

}  // namespace
}  // namespace tollgate::billing::payments
