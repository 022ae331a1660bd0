#include "common/host/descriptors.h"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

namespace tollgate::host {
namespace {

TEST(Descriptors, WantedConnectionsThatFitAreTaken) {
  const auto plan = PlanConnections(20'000, 1 << 20);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->max_connections, 20'000);
  EXPECT_EQ(plan->max_descriptor, (1 << 20) / 8 * 7);
}

TEST(Descriptors, FewerAreTakenThanDoNotFit) {
  const auto plan = PlanConnections(20'000, 20'000);
  ASSERT_TRUE(plan.ok());
  EXPECT_EQ(plan->max_connections, 17'500);
  EXPECT_EQ(plan->max_descriptor, 17'500);
  const auto small = PlanConnections(20'000, 1'024);
  ASSERT_TRUE(small.ok());
  EXPECT_EQ(small->max_connections, 768) << "256 are reserved";
}

TEST(Descriptors, TooFewAreAnErrorThatNamesTheLimit) {
  const auto plan = PlanConnections(20'000, 300);
  ASSERT_FALSE(plan.ok());
  EXPECT_NE(plan.error().internal.find("300 file descriptors"), std::string::npos);
  EXPECT_TRUE(PlanConnections(10, 300).ok()) << "all that are wanted fit";
}

// Uses a child process, whose limit may be lowered.
TEST(Descriptors, TheSoftLimitIsRaisedToTheHardLimit) {
  const pid_t child = ::fork();
  if (child == 0) {
    rlimit low{100, 200};
    ::setrlimit(RLIMIT_NOFILE, &low);
    const bool lowered = DescriptorLimit() == 100;
    RaiseDescriptorLimit();
    ::_exit(lowered && DescriptorLimit() == 200 ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace tollgate::host
