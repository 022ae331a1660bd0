#include "common/runtime/periodic_thread.h"

#include <gtest/gtest.h>

#include <atomic>
#include <semaphore>

namespace tollgate {
namespace {

using std::chrono::hours;
using std::chrono::milliseconds;

TEST(PeriodicThread, RunsAtOnceAndAfterEachPause) {
  std::counting_semaphore<> steps(0);
  PeriodicThread thread;
  thread.Start("test", milliseconds(1), [&] { steps.release(); });
  for (int i = 0; i < 3; ++i) steps.acquire();
  thread.Stop();
}

TEST(PeriodicThread, WakeEndsThePause) {
  std::counting_semaphore<> steps(0);
  PeriodicThread thread;
  thread.Start("test", hours(1), [&] { steps.release(); });
  for (int i = 0; i < 3; ++i) {
    steps.acquire();
    thread.Wake();
  }
}

TEST(PeriodicThread, AWakeDuringAStepIsNotLost) {
  std::counting_semaphore<> steps(0);
  std::atomic<int> count{0};
  PeriodicThread thread;
  thread.Start("test", hours(1), [&] {
    if (++count == 1) thread.Wake();
    steps.release();
  });
  steps.acquire();
  steps.acquire();
}

TEST(PeriodicThread, StopEndsThePauseAndWaitsForTheStep) {
  std::binary_semaphore began(0);
  std::atomic<bool> done{false};
  PeriodicThread thread;
  thread.Start("test", hours(1), [&] {
    began.release();
    while (!thread.stopping()) std::this_thread::yield();
    done = true;
  });
  began.acquire();
  thread.Stop();
  EXPECT_TRUE(done);
  thread.Stop();
}

TEST(PeriodicThread, StopWithoutStart) {
  PeriodicThread thread;
  thread.Stop();
  EXPECT_TRUE(thread.stopping());
}

}  // namespace
}  // namespace tollgate
