#include "services/cli/doctor/check.h"

#include <gtest/gtest.h>

#include <future>

namespace tollgate::cli {
namespace {

Check Always(const char* name, Finding finding) {
  return {name, finding.subject, [finding] { return Findings{finding}; }};
}

TEST(DoctorCheck, TheWorstFindingIsTheExitCode) {
  const Finding ok = Ok("a", "fine"), skipped = Skipped("b", "not here");
  const Finding warning = Warning("c", "late", "hurry"), failure = Failure("d", "gone", "mend it");
  EXPECT_EQ(ExitCodeOf(RunChecks({Always("x", ok), Always("x", skipped)}, 5000)), 0);
  EXPECT_EQ(ExitCodeOf(RunChecks({Always("x", ok), Always("x", warning)}, 5000)), 1);
  EXPECT_EQ(ExitCodeOf(RunChecks({Always("x", failure), Always("x", warning)}, 5000)), 2);
}

TEST(DoctorCheck, FindingsAreInTheOrderOfTheChecksWhicheverIsDoneFirst) {
  std::promise<void> second_is_done;
  const auto done = second_is_done.get_future().share();
  const Report report = RunChecks({{"first", "a",
                                    [done] {
                                      done.wait();
                                      return Findings{Ok("a", "1")};
                                    }},
                                   {"second", "b",
                                    [&second_is_done] {
                                      second_is_done.set_value();
                                      return Findings{Ok("b", "2"), Warning("b", "3", "do")};
                                    }}},
                                  5000);
  ASSERT_EQ(report.lines.size(), 3U) << "they run at the same time, or the first would not end";
  EXPECT_TRUE(report.all_done);
  EXPECT_EQ(report.lines[0].check, "first");
  EXPECT_EQ(report.lines[2].finding.finding, "3");
}

TEST(DoctorCheck, ACheckThatHangsIsAFailureAndHoldsNothingUp) {
  auto never = std::make_shared<std::promise<void>>();
  const Report report = RunChecks({{"hangs", "host:1",
                                    [never] {
                                      never->get_future().wait();
                                      return Findings{};
                                    }},
                                   Always("quick", Ok("b", "fine"))},
                                  200);
  EXPECT_FALSE(report.all_done);
  ASSERT_EQ(report.lines.size(), 2U);
  EXPECT_EQ(report.lines[0].finding.verdict, Verdict::kFailure);
  EXPECT_EQ(report.lines[0].finding.subject, "host:1");
  EXPECT_EQ(report.lines[1].finding.verdict, Verdict::kOk);
  never->set_value();
}

TEST(DoctorCheck, TheReportAsTextAndAsJson) {
  Report report;
  report.lines = {{"redis", Warning("cache:1", "evicts\033[2J", "set \"noeviction\"")},
                  {"engine", Ok("gpu", "answers")}};
  EXPECT_EQ(ReportAsText(report, false, false),
            "warning  redis   cache:1: evicts [2J\n"
            "                 → set \"noeviction\"\n"
            "ok       engine  gpu: answers\n"
            "0 failures, 1 warning, 1 ok, 0 skipped\n");
  EXPECT_EQ(ReportAsText(report, false, true).find("gpu"), std::string::npos);
  EXPECT_NE(ReportAsText(report, true, false).find("\033[33m"), std::string::npos);
  EXPECT_EQ(ReportAsJson(report),
            "{\"ok\":1,\"warnings\":1,\"failures\":0,\"skipped\":0,\"checks\":["
            "{\"check\":\"redis\",\"subject\":\"cache:1\",\"result\":\"warning\","
            "\"finding\":\"evicts\\u001b[2J\",\"advice\":\"set \\\"noeviction\\\"\"},"
            "{\"check\":\"engine\",\"subject\":\"gpu\",\"result\":\"ok\",\"finding\":\"answers\","
            "\"advice\":\"\"}]}\n");
}

}  // namespace
}  // namespace tollgate::cli
