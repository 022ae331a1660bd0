#include "services/ratelimit/storage/state_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

namespace tollgate::ratelimit {
namespace {

class StateFileTest : public ::testing::Test {
 protected:
  StateFileTest()
      : path_(std::filesystem::temp_directory_path() /
              ("tollgate-state-" + std::to_string(getpid()))) {
    std::filesystem::remove(path_);
  }
  ~StateFileTest() override { std::filesystem::remove(path_); }

  // Number of 100 requests that a store with this limit grants now.
  static int Burst(MemoryStore& store) {
    int granted = 0;
    for (int i = 0; i < 100; ++i) {
      store.Acquire({.slot = Id::New(),
                     .scope = "w:a",
                     .subjects = {{Who::kWorkspace, "all", {.requests_per_minute = 60}}}},
                    [&](auto got) { granted += got->granted() ? 1 : 0; });
    }
    return granted;
  }

  ManualClock clock_;
  const std::filesystem::path path_;
};

// A limiter that was killed and restarted does not grant a second burst.
TEST_F(StateFileTest, ARestartGoesOnWithWhatIsLeft) {
  MemoryStore before(clock_, 9'000'000);
  StateFile first(path_, before, clock_);
  EXPECT_FALSE(*first.Load());  // the first start
  EXPECT_EQ(Burst(before), 60);
  ASSERT_TRUE(first.Save());
  clock_.Advance(3'000'000);
  MemoryStore after(clock_, 9'000'000);
  EXPECT_TRUE(*StateFile(path_, after, clock_).Load());
  EXPECT_EQ(Burst(after), 3);
}

TEST_F(StateFileTest, TheLastStateIsWrittenAtTheEnd) {
  MemoryStore before(clock_, 9'000'000);
  {
    StateFile file(path_, before, clock_);
    file.Start();
    Burst(before);
  }
  MemoryStore after(clock_, 9'000'000);
  EXPECT_TRUE(*StateFile(path_, after, clock_).Load());
  EXPECT_EQ(Burst(after), 0);
}

TEST_F(StateFileTest, ADamagedFileIsRefusedByName) {
  std::ofstream(path_) << "no protobuf at all";
  MemoryStore store(clock_, 9'000'000);
  const auto loaded = StateFile(path_, store, clock_).Load();
  ASSERT_FALSE(loaded.ok());
  EXPECT_NE(loaded.error().find(path_.string()), std::string::npos);
}

}  // namespace
}  // namespace tollgate::ratelimit
