// Rows of archived months are read back from verified files.
#include "services/billing/archive/archive_query.h"

#include "services/billing/archive/testing/archive_world.h"

namespace tollgate::billing {
namespace {

class ArchiveQueryTest : public ArchiveTest {
 protected:
  void SetUp() override {
    ArchiveTest::SetUp();
    if (!connection_) return;
    AddCredit other = MakeAddCredit("other", 5'000'000);
    other.workspace = "other";
    const Applied added = Run({other}, UtcMonthStartUs(202510) + kHourUs);
    ASSERT_TRUE(added.replies.front().ok);
    FillMonths();
    ASSERT_TRUE(Archive(202512, UtcMonthStartUs(202601) + kDayUs).ok());
  }
  // Returns the lines, or the error as the only one.
  std::vector<std::string> Query(ArchiveQuery query) {
    query.folder = folder_.string();
    if (query.workspace.empty()) query.workspace = "ws";
    std::vector<std::string> lines;
    auto rows =
        QueryArchive(*connection_, query, [&](std::string_view line) { lines.emplace_back(line); });
    if (!rows.ok()) return {rows.error().message};
    EXPECT_EQ(static_cast<size_t>(*rows), lines.size() - (query.json ? 0 : 1));
    return lines;
  }
  // The first request of 202510.
  static Id First() { return TestId(1, UtcMonthStartUs(202510) + 2 * kDayUs); }
};

TEST_P(ArchiveQueryTest, ReadsTheRequestsOfAWorkspaceBack) {
  EXPECT_EQ(Query({}).size(), 1u + 20 + 22);
  EXPECT_EQ(Query({.month = 202510}).size(), 1u + 20);
  EXPECT_EQ(Query({.month = 202510, .key_id = "key1"}).size(), 1u + 7);
  EXPECT_EQ(Query({.workspace = "nobody"}).size(), 1u);
  const auto one = Query({.id = First().ToHex()});
  ASSERT_EQ(one.size(), 2u);
  EXPECT_EQ(one[0].substr(0, 26), "id,workspace,key_id,model,");
  EXPECT_EQ(one[1].substr(0, 51), '"' + First().ToHex() + "\",\"ws\",\"key0\",\"mod");
  const auto json = Query({.id = First().ToHex(), .json = true});
  ASSERT_EQ(json.size(), 1u);
  for (const char* member : {R"("key_id":"key0")", R"("prompt":100)", R"("completion":0)",
                             R"("state":"settled")", R"("outcome":"completed")"}) {
    EXPECT_NE(json[0].find(member), std::string::npos) << member << "\n" << json[0];
  }
}

TEST_P(ArchiveQueryTest, ReadsTheEntriesOfAWorkspaceBack) {
  // A hold, its settlement and its charge.
  const auto of_request = Query({.entries = true, .id = First().ToHex(), .json = true});
  ASSERT_EQ(of_request.size(), 3u);
  for (const char* member : {R"("kind":"charge")", R"("debit":"paid")", R"("credit":"revenue")",
                             R"("amount":100,)", R"("memo":"")"}) {
    EXPECT_NE(of_request[2].find(member), std::string::npos) << member << "\n" << of_request[2];
  }
  const auto of_command =
      Query({.workspace = "other", .entries = true, .id = "other", .json = true});
  ASSERT_EQ(of_command.size(), 1u);
  EXPECT_NE(of_command[0].find(R"("request":"other")"), std::string::npos) << of_command[0];
  EXPECT_NE(of_command[0].find(R"("workspace":"other")"), std::string::npos);
}

TEST_P(ArchiveQueryTest, RefusesWhatIsNotArchivedAndFilesThatWereChanged) {
  EXPECT_EQ(Query({.month = 202512}), std::vector<std::string>{"2025-12 is not archived"});
  EXPECT_EQ(Query({.entries = true, .key_id = "key1"}).size(), 1u) << "entries name no key";
  const std::string path = ArchivePath(folder_.string(), "usage", 202511);
  std::ofstream(path, std::ios::app) << "x";
  EXPECT_EQ(Query({}), std::vector<std::string>{path + " is missing or was changed"});
  EXPECT_EQ(Query({.month = 202510}).size(), 1u + 20);
  std::filesystem::remove(ManifestPath(folder_.string(), 202510));
  EXPECT_EQ(Query({.month = 202510}),
            std::vector<std::string>{"there is no " + ManifestPath(folder_.string(), 202510)});
  Must("DELETE FROM archive");
  EXPECT_EQ(Query({}), std::vector<std::string>{"no month is archived"});
}

INSTANTIATE_TEST_SUITE_P(Both, ArchiveQueryTest,
                         ::testing::Values(sql::Dialect::kSqlite, sql::Dialect::kPostgres),
                         DialectName);

}  // namespace
}  // namespace tollgate::billing
