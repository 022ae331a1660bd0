#include "common/observability/log_format.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace tollgate::log {
namespace {

TEST(FormatLine, IsOneJsonObjectWithUtcMicroseconds) {
  EXPECT_EQ(FormatLine(Level::kWarn, 1'795'233'300'000'123, "gateway", "slow",
                       {{"ms", 42}, {"stage", "admit"}}),
            "{\"time\":\"2026-11-21T03:55:00.000123Z\",\"level\":\"warn\",\"process\":\"gateway\","
            "\"message\":\"slow\",\"ms\":42,\"stage\":\"admit\"}\n");
}

TEST(FormatLine, LeavesOutAFieldWithoutAName) {
  EXPECT_EQ(FormatLine(Level::kWarn, 0, "gateway", "slow", {{"", "x"}, {"stage", "admit"}}),
            FormatLine(Level::kWarn, 0, "gateway", "slow", {{"stage", "admit"}}));
}

TEST(FormatLine, EscapesTextAndReplacesInvalidUtf8) {
  const std::string line = FormatLine(Level::kInfo, 0, "p", "a\"b\\c\nd\te\x01g\xFFh\xC3\xA9", {});
  EXPECT_NE(line.find(R"("message":"a\"b\\c\nd\te\u0001g?h)"
                      "\xC3\xA9\""),
            std::string::npos)
      << line;
  EXPECT_EQ(line.find('\n'), line.size() - 1);
}

TEST(FormatLine, HasNoControlCharacters) {
  for (int c = 0; c < 0x80; ++c) {
    if (c >= 0x20 && c < 0x7f) continue;
    const std::string line = FormatLine(Level::kInfo, 0, "p", std::string(1, static_cast<char>(c)),
                                        {{"value", std::string(1, static_cast<char>(c))}});
    EXPECT_TRUE(std::none_of(line.begin(), line.end() - 1,
                             [](unsigned char b) { return b < 0x20 || b == 0x7f; }))
        << c << " " << line;
  }
}

TEST(FormatLine, TruncatesLongValuesBetweenCharacters) {
  std::string text(1023, 'x');
  text += "\xC3\xA9 tail";
  const std::string line = FormatLine(Level::kInfo, 0, "p", text, {});
  EXPECT_NE(line.find(std::string(1023, 'x') + "…\""), std::string::npos);
}

TEST(Redact, ReplacesKeysBearerTokensAndUrlPasswords) {
  EXPECT_EQ(Redact("key sk-tollgate-ABCdef0123456789_x, next"), "key sk-[redacted], next");
  EXPECT_EQ(Redact("sk-proj-abcdef"), "sk-[redacted]");
  EXPECT_EQ(Redact("(SK-tollgate-ABCdef012)"), "(SK-[redacted])");
  EXPECT_EQ(Redact("Authorization: Bearer abc.def-ghi"), "Authorization: Bearer [redacted]");
  EXPECT_EQ(Redact("bearer=abcdefgh rest"), "bearer=[redacted] rest");
  EXPECT_EQ(Redact("postgresql://tollgate:hunter2@db:5432/x"), "postgresql://[redacted]@db:5432/x");
}

TEST(Redact, ReplacesKeysWithLegacyPrefixes) {
  SetRedactedPrefixes({"oldbrand_", "Acme-", ""});
  EXPECT_EQ(Redact("key oldbrand_ABCdef0123456789x, next"), "key oldbrand_[redacted], next");
  EXPECT_EQ(Redact("(ACME-abc-def_0123)"), "(ACME-[redacted])");
  EXPECT_EQ(Redact("sk-proj-abcdef oldbrand_1 acme-abc"), "sk-[redacted] oldbrand_1 acme-abc");
  EXPECT_EQ(Redact("myoldbrand_ABCdef0123456789x"), "myoldbrand_ABCdef0123456789x");
  const std::string line =
      FormatLine(Level::kInfo, 0, "p", "m oldbrand_canary99", {{"v", "x=oldbrand_canary99"}});
  EXPECT_EQ(line.find("canary99"), std::string::npos) << line;
  SetRedactedPrefixes({});
  EXPECT_EQ(Redact("oldbrand_canary99"), "oldbrand_canary99");
}

TEST(Redact, LeavesOrdinaryTextAlone) {
  for (const char* text : {"task-force-of-ten", "sk-", "risk-assessment", "a bearer of news",
                           "bearer", "http://127.0.0.1:8080/v1", "unix:/run/admin.sock", ""}) {
    EXPECT_EQ(Redact(text), text);
  }
}

TEST(Redact, AppliesToFields) {
  const std::string line =
      FormatLine(Level::kInfo, 0, "p", "m", {{"header", "Bearer sk-tollgate-secret99"}});
  EXPECT_EQ(line.find("secret99"), std::string::npos) << line;
}

}  // namespace
}  // namespace tollgate::log
