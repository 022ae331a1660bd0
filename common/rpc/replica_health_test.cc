#include "common/rpc/replica_health.h"

#include <gtest/gtest.h>

namespace tollgate::rpc {
namespace {

using State = ReplicaHealth::State;
using Reason = ReplicaHealth::Reason;

class ReplicaHealthTest : public ::testing::Test {
 protected:
  // Runs the ticks and probes of this time. answers: whether probes are answered.
  void Run(int64_t ms, bool answers, Liveness found = Liveness::kServing) {
    for (const int64_t end_us = now_us_ + ms * 1000; now_us_ < end_us;) {
      now_us_ += ReplicaHealth::kTickUs;
      health_.Tick(now_us_);
      if (health_.ProbeIsDue(now_us_)) {
        health_.ProbeSent(now_us_);
        if (answers) health_.ProbeEnded(found, now_us_);
      }
    }
  }

  int64_t now_us_ = 1'000'000'000;
  ReplicaHealth health_{now_us_};
};

TEST_F(ReplicaHealthTest, AHungReplicaIsEjectedWithinASecond) {
  Run(5'000, true);
  ASSERT_EQ(health_.state(), State::kUp);
  Run(450, false);
  EXPECT_EQ(health_.state(), State::kUp) << "slow is not hung";
  Run(400, false);
  EXPECT_EQ(health_.state(), State::kEjected);
  EXPECT_EQ(health_.reason(), Reason::kSilent);
}

TEST_F(ReplicaHealthTest, ARefusedConnectionEjectsAtOnce) {
  Run(200, true, Liveness::kUnreachable);
  EXPECT_EQ(health_.state(), State::kEjected);
  EXPECT_EQ(health_.reason(), Reason::kUnreachable);
}

TEST_F(ReplicaHealthTest, AnswersOfCallsAreSignsOfLife) {
  for (int i = 0; i < 100; ++i) {
    Run(100, false);
    health_.CallAnswered(now_us_);
    EXPECT_EQ(health_.state(), State::kUp);
  }
}

TEST_F(ReplicaHealthTest, TimeInWhichThisProcessStoodStillIsNotSilence) {
  Run(1'000, true);
  health_.ProbeSent(now_us_);
  now_us_ += 60'000'000;
  health_.Tick(now_us_);
  EXPECT_EQ(health_.state(), State::kUp);
  Run(650, false);
  EXPECT_EQ(health_.state(), State::kEjected) << "silence afterwards counts";
}

TEST_F(ReplicaHealthTest, FiveFailuresInARowEjectThoughProbesAreAnswered) {
  for (int i = 0; i < 100; ++i) {
    for (int n = 1; n < ReplicaHealth::kFailures; ++n) health_.CallFailed(now_us_);
    health_.CallAnswered(now_us_);
  }
  ASSERT_EQ(health_.state(), State::kUp);
  for (int n = 0; n < ReplicaHealth::kFailures; ++n) {
    ASSERT_EQ(health_.state(), State::kUp);
    health_.CallFailed(now_us_);
  }
  EXPECT_EQ(health_.state(), State::kEjected);
  EXPECT_EQ(health_.reason(), Reason::kFailing);
}

TEST_F(ReplicaHealthTest, AFailedCallAsksForAProbe) {
  health_.CallAnswered(now_us_);
  ASSERT_FALSE(health_.ProbeIsDue(now_us_));
  health_.CallFailed(now_us_);
  EXPECT_TRUE(health_.ProbeIsDue(now_us_));
}

TEST_F(ReplicaHealthTest, ItReturnsThroughATrialThatOneFailureEnds) {
  Run(200, true, Liveness::kUnreachable);
  EXPECT_FALSE(health_.recovering());
  Run(850, true);
  ASSERT_EQ(health_.state(), State::kEjected) << "an ejection lasts at least a second";
  EXPECT_TRUE(health_.recovering()) << "better than one that does not answer";
  Run(400, true);
  ASSERT_EQ(health_.state(), State::kTrial);
  health_.CallFailed(now_us_);
  ASSERT_EQ(health_.state(), State::kEjected);
  Run(1'800, true);
  EXPECT_EQ(health_.state(), State::kEjected) << "the second one lasts twice as long";
  Run(400, true);
  ASSERT_EQ(health_.state(), State::kTrial);
  for (int n = 0; n < ReplicaHealth::kTrialCalls; ++n) health_.CallAnswered(now_us_);
  EXPECT_EQ(health_.state(), State::kUp);
}

TEST_F(ReplicaHealthTest, WithoutCallsATrialEndsByTime) {
  Run(200, true, Liveness::kNotServing);
  EXPECT_EQ(health_.reason(), Reason::kNotServing);
  Run(1'300, true);
  ASSERT_EQ(health_.state(), State::kTrial);
  Run(2'000, true);
  EXPECT_EQ(health_.state(), State::kUp);
}

TEST_F(ReplicaHealthTest, OldEjectionsAreForgotten) {
  for (int i = 0; i < 3; ++i) {
    Run(200, true, Liveness::kUnreachable);
    ASSERT_EQ(health_.state(), State::kEjected);
    Run(40'000, true);
    ASSERT_EQ(health_.state(), State::kUp);
  }
  Run(200, true, Liveness::kUnreachable);
  Run(1'300, true);
  EXPECT_EQ(health_.state(), State::kTrial) << "it lasts a second again";
}

}  // namespace
}  // namespace tollgate::rpc
