#include "services/inference_router/settlement/journal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "common/base/clock.h"
#include "common/base/id.h"

namespace tollgate::inference_router {
namespace {

class JournalTest : public ::testing::Test {
 protected:
  JournalTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "journalXXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    path_ = folder_ + "/inflight";
  }
  ~JournalTest() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<Journal> Open() {
    auto opened = Journal::Open(path_);
    EXPECT_TRUE(opened.ok());
    return std::move(opened).value();
  }
  std::string Content() const {
    std::ifstream file(path_, std::ios::binary);
    return std::string((std::istreambuf_iterator<char>(file)), {});
  }
  static JournalStart Start(const std::string& id) { return {id, "ws-1", "key-1", "ns/model"}; }

  std::string folder_, path_;
};

TEST_F(JournalTest, RecoversRunningRequests) {
  const std::string id = Id::New().ToBytes();
  {
    auto journal = Open();
    JournalSlot* slot = journal->Acquire(Start(id));
    ASSERT_NE(slot, nullptr);
    slot->SetEngine("engine-7");
    slot->SetAccepted();
    EXPECT_EQ(slot->NextSequence(), 1);
    EXPECT_EQ(slot->NextSequence(), 2);
    slot->SetUsage(11, 22);
    slot->SetDetails(3, 4, 5);
  }
  auto journal = Open();
  ASSERT_EQ(journal->recovered().size(), 1u);
  const JournalEntry& entry = journal->recovered()[0];
  EXPECT_EQ(entry.request_id, id);
  EXPECT_EQ(entry.workspace_id, "ws-1");
  EXPECT_EQ(entry.key_id, "key-1");
  EXPECT_EQ(entry.model, "ns/model");
  EXPECT_EQ(entry.engine_id, "engine-7");
  EXPECT_EQ(entry.sequence, 2);
  EXPECT_TRUE(entry.accepted);
  EXPECT_EQ(entry.usage.prompt_tokens(), 11);
  EXPECT_EQ(entry.usage.completion_tokens(), 22);
  EXPECT_EQ(entry.usage.cached_tokens(), 3);
  EXPECT_EQ(entry.usage.reasoning_tokens(), 5);
  journal->Release(entry.slot);
  journal.reset();
  EXPECT_TRUE(Open()->recovered().empty());
}

TEST_F(JournalTest, RemembersWhetherTheAnswerIsStreamed) {
  const std::string streamed = Id::New().ToBytes(), whole = Id::New().ToBytes();
  {
    auto journal = Open();
    JournalStart start = Start(streamed);
    start.streamed = true;
    start.attempt = 3;
    ASSERT_NE(journal->Acquire(start), nullptr);
    ASSERT_NE(journal->Acquire(Start(whole)), nullptr);
  }
  auto journal = Open();
  ASSERT_EQ(journal->recovered().size(), 2u);
  for (const JournalEntry& entry : journal->recovered()) {
    EXPECT_EQ(entry.streamed, entry.request_id == streamed);
    EXPECT_EQ(entry.attempt, entry.request_id == streamed ? 3 : 0);
  }
}

TEST_F(JournalTest, SurvivesSigkillWithoutAFlush) {
  const std::string id = Id::New().ToBytes();
  const pid_t child = ::fork();
  if (child == 0) {
    auto journal = Journal::Open(path_);
    JournalSlot* slot = (*journal)->Acquire(Start(id));
    for (int i = 1; i <= 1000; ++i) slot->SetUsage(9, i);
    ::kill(::getpid(), SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  auto journal = Open();
  ASSERT_EQ(journal->recovered().size(), 1u);
  EXPECT_EQ(journal->recovered()[0].usage.completion_tokens(), 1000);
}

TEST_F(JournalTest, ReleasedSlotsAreReusedAndStartEmpty) {
  auto journal = Open();
  const std::string id = Id::New().ToBytes();
  JournalSlot* slot = journal->Acquire(Start(id));
  slot->SetUsage(1, 2);
  slot->SetAccepted();
  journal->Release(slot);
  EXPECT_EQ(journal->in_use(), 0);
  ASSERT_EQ(journal->Acquire(Start(Id::New().ToBytes())), slot);
  journal.reset();
  auto again = Open();
  ASSERT_EQ(again->recovered().size(), 1u);
  EXPECT_EQ(again->recovered()[0].usage.completion_tokens(), 0);
  EXPECT_FALSE(again->recovered()[0].accepted);
}

TEST_F(JournalTest, GrowsBeyondOneSegmentAndRecoversAll) {
  auto journal = Open();
  for (int i = 0; i < 2500; ++i) {
    ASSERT_NE(journal->Acquire(Start(Id::New().ToBytes())), nullptr);
  }
  journal.reset();
  EXPECT_EQ(Open()->recovered().size(), 2500u);
}

TEST_F(JournalTest, AFlippedBitInASlotNeverChargesMoreThanWasCounted) {
  const std::string id = Id::New().ToBytes();
  {
    auto journal = Open();
    // An earlier request in the same slot, with larger counts than the running one.
    JournalSlot* slot = journal->Acquire(Start(Id::New().ToBytes()));
    for (int i = 1; i <= 7; ++i) slot->SetUsage(900'000, 1'000'000 + i);
    journal->Release(slot);
    ASSERT_EQ(journal->Acquire(Start(id)), slot);
    slot->SetAccepted();
    slot->SetUsage(11, 21);
    slot->SetUsage(11, 22);
    slot->SetDetails(3, 4, 5);
  }
  const std::string sound = Content();
  const size_t name = sound.find(id);
  ASSERT_NE(name, std::string::npos);
  int64_t recovered = 0, damaged = 0, repaired = 0;
  constexpr size_t kAround = 256;  // the counters are before the id, the names after it
  for (size_t at = name - kAround; at < name + 64; ++at) {
    std::string flipped = sound;
    flipped[at] = static_cast<char>(flipped[at] ^ (1 << (at % 8)));
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << flipped;
    auto journal = Open();
    damaged += journal->found().damaged;
    repaired += journal->found().older_copy;
    for (const JournalEntry& entry : journal->recovered()) {
      ++recovered;
      EXPECT_EQ(entry.request_id, id);
      EXPECT_EQ(entry.workspace_id, "ws-1");
      EXPECT_EQ(entry.usage.prompt_tokens(), 11) << at;
      EXPECT_GE(entry.usage.completion_tokens(), 21) << at << ": at most one update is lost";
      EXPECT_LE(entry.usage.completion_tokens(), 22) << at;
      EXPECT_TRUE(entry.usage.cached_tokens() == 3 || entry.usage.cached_tokens() == 0) << at;
      EXPECT_TRUE(entry.accepted) << at;
    }
  }
  EXPECT_GT(recovered, 0);
  EXPECT_GT(damaged, 0);
  EXPECT_GT(repaired, 0);
}

TEST_F(JournalTest, CountersOfAnEarlierRequestOfTheSlotAreNotTaken) {
  const std::string earlier = Id::New().ToBytes(), id = Id::New().ToBytes();
  auto journal = Open();
  JournalSlot* slot = journal->Acquire(Start(earlier));
  slot->SetUsage(900'000, 1'000'000);
  slot->SetUsage(900'000, 1'000'001);
  slot->SetAccepted();
  slot->SetAccepted();
  const std::string before = Content();
  journal->Release(slot);
  ASSERT_EQ(journal->Acquire(Start(id)), slot);
  journal.reset();
  // The counters of the earlier request with the names of the new one.
  std::string mixed = Content();
  const size_t name = mixed.find(id);
  ASSERT_NE(name, std::string::npos);
  ASSERT_EQ(before.find(earlier), name);
  const size_t slot_at = 4096 + (name - 4096) / 768 * 768;
  const size_t counters = 176;  // both copies of both groups
  mixed.replace(slot_at, counters, before, slot_at, counters);
  std::ofstream(path_, std::ios::binary | std::ios::trunc) << mixed;
  auto again = Open();
  EXPECT_TRUE(again->recovered().empty());
  EXPECT_EQ(again->found().damaged, 1);
  EXPECT_EQ(again->in_use(), 0);
}

// TOLLGATE_BENCH=1 measures the cost of one update per token.
TEST_F(JournalTest, BenchUpdates) {
  if (std::getenv("TOLLGATE_BENCH") == nullptr) GTEST_SKIP() << "TOLLGATE_BENCH is not set";
  auto journal = Open();
  JournalSlot* slot = journal->Acquire(Start(Id::New().ToBytes()));
  constexpr int64_t kUpdates = 100'000'000;
  const int64_t started = SystemClock::Get().MonotonicUs();
  for (int64_t i = 0; i < kUpdates; ++i) slot->SetUsage(1000, i);
  const int64_t took_us = SystemClock::Get().MonotonicUs() - started;
  std::printf("%.2f ns per update\n",
              static_cast<double>(took_us) * 1000 / static_cast<double>(kUpdates));
}

TEST_F(JournalTest, RefusesNamesThatDoNotFit) {
  auto journal = Open();
  const std::string id = Id::New().ToBytes();
  JournalStart start = Start(id);
  const std::string longest(Journal::kMaxNameBytes, 'w');
  start.workspace_id = longest;
  EXPECT_NE(journal->Acquire(start), nullptr);
  const std::string too_long = longest + "w";
  start.workspace_id = too_long;
  EXPECT_EQ(journal->Acquire(start), nullptr);
}

}  // namespace
}  // namespace tollgate::inference_router
