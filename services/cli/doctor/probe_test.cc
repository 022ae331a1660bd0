#include "services/cli/doctor/probe.h"

#include <gtest/gtest.h>

namespace tollgate::cli {
namespace {

TEST(DoctorProbe, AClockIsJudgedByWhatTheWayCannotExplain) {
  constexpr int64_t kAsked = 1'000'000'000;
  const auto judge = [&](int64_t ahead_us, int64_t way_us) {
    const int64_t theirs_us = kAsked + way_us / 2 + ahead_us;
    return ClockFinding("x", ReadClock(theirs_us, kAsked, kAsked + way_us)).verdict;
  };
  EXPECT_EQ(judge(0, 1000), Verdict::kOk);
  EXPECT_EQ(judge(200'000, 1000), Verdict::kOk);
  EXPECT_EQ(judge(-400'000, 1000), Verdict::kWarning);
  EXPECT_EQ(judge(1'100'000, 1000), Verdict::kFailure);
  EXPECT_EQ(judge(-1'100'000, 1000), Verdict::kFailure);
  EXPECT_EQ(judge(1'100'000, 4'000'000), Verdict::kOk) << "the call took longer than that";
}

TEST(DoctorProbe, AnAddressThatCannotBeReachedSaysWhy) {
  EXPECT_EQ(TryToConnect("nowhere", 100), "the address has no port");
  EXPECT_NE(TryToConnect("does-not-exist.invalid:80", 100).find("does not resolve"),
            std::string::npos);
  // Nothing listens on port 1 of this machine.
  EXPECT_EQ(TryToConnect("127.0.0.1:1", 1000), "Connection refused");
  EXPECT_EQ(TryToConnect("[::1]:1", 1000).find("does not resolve"), std::string::npos);
}

TEST(DoctorProbe, SizesAndTimesAreReadable) {
  EXPECT_EQ(Duration(999), "999 µs");
  EXPECT_EQ(Duration(12'345), "12 ms");
  EXPECT_EQ(Duration(5'000'000), "5.0 s");
  EXPECT_EQ(Bytes(2048), "2.0 KiB");
  EXPECT_EQ(Bytes(int64_t{3} << 30), "3.0 GiB");
}

}  // namespace
}  // namespace tollgate::cli
