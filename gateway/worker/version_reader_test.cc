// See ADR 0013.
#include "gateway/worker/version_reader.h"

#include <gtest/gtest.h>

#include <vector>

#include "gateway/testing/pipeline_fakes.h"

namespace tollgate::gateway {
namespace {

class VersionReaderTest : public ::testing::Test {
 protected:
  VersionReaderTest() {
    rig.RunOnLoop([&](Loop& loop) {
      reader = std::make_shared<VersionReader>(loop, rig.clock, *rig.auth, /*pause_us=*/1'000);
      rig.auth->version = 1;
    });
  }
  ~VersionReaderTest() override {
    rig.RunOnLoop([&](Loop&) { reader.reset(); });
  }
  // Starts this many calls and adds their results to `results`.
  void Start(int calls) {
    rig.RunOnLoop([&](Loop& loop) {
      for (int i = 0; i < calls; ++i) {
        ++started;
        loop.Spawn([](std::shared_ptr<VersionReader> reader,
                      std::vector<std::optional<int64_t>>& results) -> Task<void> {
          results.push_back(co_await reader->Read());
        }(reader, results));
      }
    });
  }
  template <typename Done>
  void WaitUntil(Done done) {
    bool reached = false;
    while (!reached) rig.RunOnLoop([&](Loop&) { reached = done(); });
  }
  void WaitForAll() {
    WaitUntil([&] { return static_cast<int>(results.size()) == started; });
  }

  testing::Rig rig;
  std::shared_ptr<VersionReader> reader;
  std::vector<std::optional<int64_t>> results;
  int started = 0;
};

TEST_F(VersionReaderTest, CallersShareCalls) {
  Start(100);
  WaitForAll();
  EXPECT_LE(rig.auth->version_reads, 2) << "the first may be on its way before the second begins";
  for (const auto& version : results) EXPECT_EQ(version, 1);
}

// Sharing the call would refuse a key that was created in between.
TEST_F(VersionReaderTest, ACallThatIsOnItsWayIsNotSharedWithLaterCallers) {
  rig.RunOnLoop([&](Loop&) { rig.auth->gate.Reset(); });
  Start(1);
  WaitUntil([&] { return rig.auth->version_reads == 1; });
  rig.RunOnLoop([&](Loop&) { rig.auth->version = 2; });
  Start(3);
  rig.RunOnLoop([&](Loop&) { rig.auth->gate.Set(); });
  WaitForAll();
  EXPECT_EQ(rig.auth->version_reads, 2);
  EXPECT_EQ(results.front(), 1);
  for (size_t i = 1; i < results.size(); ++i) EXPECT_EQ(results[i], 2);
}

TEST_F(VersionReaderTest, WithoutAuthThereIsNoVersion) {
  rig.auth->down = true;
  Start(2);
  WaitForAll();
  EXPECT_EQ(results[0], std::nullopt);
  rig.auth->down = false;
  Start(1);
  WaitForAll();
  EXPECT_EQ(results[2], 1);
}

TEST_F(VersionReaderTest, AfterStopAuthIsNotCalled) {
  rig.RunOnLoop([&](Loop&) { reader->Stop(); });
  Start(2);
  WaitForAll();
  EXPECT_EQ(results[0], std::nullopt);
  EXPECT_EQ(rig.auth->version_reads, 0);
}

}  // namespace
}  // namespace tollgate::gateway
