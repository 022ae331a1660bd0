#include "services/people/domain/totp.h"

#include <gtest/gtest.h>

namespace tollgate::people {
namespace {

constexpr char kSecret[] = "12345678901234567890";

// RFC 6238, appendix B (SHA-1). Its codes have eight digits; ours are the last six.
TEST(TotpTest, TheCodesAreThoseOfTheRfc) {
  const std::pair<int64_t, const char*> vectors[] = {
      {59, "287082"},         {1111111109, "081804"}, {1111111111, "050471"},
      {1234567890, "005924"}, {2000000000, "279037"}, {20000000000, "353130"}};
  for (const auto& [seconds, code] : vectors) {
    EXPECT_EQ(TotpCode(kSecret, seconds / 30), code) << seconds;
    EXPECT_EQ(MatchTotp(kSecret, code, seconds * 1'000'000, 0), seconds / 30);
  }
}

TEST(TotpTest, ACodeWorksOnceAndForAStepAround) {
  const int64_t step = 40'000'000;
  const std::string code = TotpCode(kSecret, step);
  const auto at = [](int64_t of) { return of * kTotpStepUs + 5; };
  EXPECT_EQ(MatchTotp(kSecret, code, at(step), 0), step);
  EXPECT_EQ(MatchTotp(kSecret, code, at(step - 1), 0), step) << "the clock of the phone is fast";
  EXPECT_EQ(MatchTotp(kSecret, code, at(step + 1), 0), step) << "or slow";
  EXPECT_EQ(MatchTotp(kSecret, code, at(step + 2), 0), std::nullopt);
  EXPECT_EQ(MatchTotp(kSecret, code, at(step - 2), 0), std::nullopt);
  EXPECT_EQ(MatchTotp(kSecret, code, at(step), step), std::nullopt) << "used before";
  EXPECT_EQ(MatchTotp(kSecret, code, at(step), step + 1), std::nullopt);
  EXPECT_EQ(MatchTotp(kSecret, "", at(step), 0), std::nullopt);
  EXPECT_EQ(MatchTotp(kSecret, code.substr(1), at(step), 0), std::nullopt);
}

// RFC 4648, section 10, without padding.
TEST(TotpTest, SecretsAreWrittenInBase32) {
  EXPECT_EQ(Base32(""), "");
  EXPECT_EQ(Base32("f"), "MY");
  EXPECT_EQ(Base32("foob"), "MZXW6YQ");
  EXPECT_EQ(Base32("foobar"), "MZXW6YTBOI");
  EXPECT_EQ(TotpUri("Tollgate", "anna+x@example.com", "foobar"),
            "otpauth://totp/Tollgate:anna%2bx@example.com?secret=MZXW6YTBOI&issuer=Tollgate");
}

}  // namespace
}  // namespace tollgate::people
