#include "services/inference_router/settlement/journal.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

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
    ASSERT_NE(journal->Acquire(start), nullptr);
    ASSERT_NE(journal->Acquire(Start(whole)), nullptr);
  }
  auto journal = Open();
  ASSERT_EQ(journal->recovered().size(), 2u);
  for (const JournalEntry& entry : journal->recovered()) {
    EXPECT_EQ(entry.streamed, entry.request_id == streamed);
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

TEST_F(JournalTest, ADamagedSlotIsIgnored) {
  {
    auto journal = Open();
    journal->Acquire(Start(Id::New().ToBytes()));
  }
  // Damages the slot by its content, since its position in the segment is unspecified.
  std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
  const std::string content((std::istreambuf_iterator<char>(file)), {});
  const size_t at = content.find("ws-1");
  ASSERT_NE(at, std::string::npos);
  file.clear();
  file.seekp(static_cast<std::streamoff>(at));
  file.put('X');
  file.close();
  EXPECT_TRUE(Open()->recovered().empty());
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
