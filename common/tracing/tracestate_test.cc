// tracestate by the W3C rules: it is passed on within its limits, or not at all.
#include "common/tracing/tracestate.h"

#include <gtest/gtest.h>

namespace tollgate::tracing {
namespace {

TEST(Tracestate, AWellFormedOneIsPassedOn) {
  EXPECT_EQ(CleanTracestate({"rojo=00f067aa0ba902b7,congo=t61rcWkgMzE"}),
            "rojo=00f067aa0ba902b7,congo=t61rcWkgMzE");
  EXPECT_EQ(CleanTracestate({"a=1", "b=2"}), "a=1,b=2") << "headers are joined in order";
  EXPECT_EQ(CleanTracestate({" a=1 ,\tb=x y ", ",,"}), "a=1,b=x y") << "spaces and empty members";
  EXPECT_EQ(CleanTracestate({"fw529a3039@dt=FfD/a*b-_"}), "fw529a3039@dt=FfD/a*b-_");
  EXPECT_EQ(CleanTracestate({}), "");
  EXPECT_EQ(CleanTracestate({""}), "");
}

TEST(Tracestate, OneMalformedMemberMakesAllOfItVoid) {
  for (const char* bad : {"a", "=1", "a=", "A=1", "a b=1", "a=1=2", "a=\x7f", "a=\xc3\xa9",
                          "a=1\r\nx: y", "-a=1", "a=1,a=2"}) {
    EXPECT_EQ(CleanTracestate({"ok=1", bad}), "") << bad;
  }
  EXPECT_EQ(CleanTracestate({"k=" + std::string(257, 'v')}), "");
  EXPECT_EQ(CleanTracestate({std::string(257, 'k') + "=v"}), "");
}

TEST(Tracestate, IsBoundedInMembersAndBytes) {
  std::string members;
  for (int i = 0; i < 32; ++i) members += "k" + std::to_string(i) + "=v,";
  EXPECT_NE(CleanTracestate({members}), "");
  EXPECT_EQ(CleanTracestate({members, "k32=v"}), "");
  const std::string first = "a=" + std::string(250, 'x');
  const std::string second = "b=" + std::string(250, 'x');
  EXPECT_EQ(CleanTracestate({first, second, "c=12345", "d=1"}), first + "," + second)
      << "members at the end are left out whole, and what follows them too";
}

}  // namespace
}  // namespace tollgate::tracing
