#include "services/cli/request_journal.h"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

namespace tollgate::cli {
namespace {

class RequestJournalTest : public ::testing::Test {
 protected:
  RequestJournalTest() {
    std::string folder = ::testing::TempDir() + "journal_XXXXXX";
    folder_ = ::mkdtemp(folder.data());
  }
  ~RequestJournalTest() override { std::filesystem::remove_all(folder_); }
  std::string folder_;
};

TEST_F(RequestJournalTest, ARequestIsFoundUntilItIsRemoved) {
  const RequestJournal journal(folder_ + "/a/b");
  EXPECT_FALSE(journal.Find("id-1"));
  EXPECT_FALSE(journal.FindSame("ws", "credit add 5"));
  ASSERT_TRUE(journal.Keep({"id-1", "ws", "credit add 5 \"quoted\"\n", 17}));
  const auto found = RequestJournal(folder_ + "/a/b").Find("id-1");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->workspace, "ws");
  EXPECT_EQ(found->asked_us, 17);
  ASSERT_TRUE(journal.FindSame("ws", "credit add 5 \"quoted\"\n"));
  EXPECT_EQ(journal.FindSame("ws", "credit add 5 \"quoted\"\n")->id, "id-1");
  EXPECT_FALSE(journal.FindSame("other", "credit add 5 \"quoted\"\n"));
  EXPECT_FALSE(journal.FindSame("ws", "credit add 6"));
  journal.Remove("id-1");
  EXPECT_FALSE(journal.Find("id-1"));
}

TEST_F(RequestJournalTest, WhereNothingCanBeKeptItSaysSo) {
  EXPECT_FALSE(RequestJournal("").Keep({"id", "ws", "what", 1}));
  EXPECT_FALSE(RequestJournal("/proc/none").Keep({"id", "ws", "what", 1}));
  EXPECT_FALSE(RequestJournal(folder_).Keep({"../id", "ws", "what", 1}));
}

}  // namespace
}  // namespace tollgate::cli
