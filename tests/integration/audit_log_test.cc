// The audit log for members and operators: filters, the export, and `tollgate-auth verify-audit`
// with the signed checkpoints, as a command next to the serving process.
#include <sys/wait.h>

#include <cstdlib>
#include <fstream>
#include <sstream>

#include "tests/integration/admin_world.h"

namespace tollgate::test {
namespace {

class AuditLogTest : public AdminWorld {
 protected:
  void SetUp() override {
    key_ = given_.path() + "/audit.key";
    checkpoints_ = given_.path() + "/audit.checkpoints";
    const std::string make = "openssl genpkey -algorithm ed25519 -out " + key_ +
                             " && openssl pkey -in " + key_ + " -pubout -out " + key_ + ".pub";
    ASSERT_EQ(std::system(make.c_str()), 0);
    auth_settings_ = {"audit_checkpoint_key_file: " + key_,
                      "audit_checkpoint_file: " + checkpoints_, "audit_checkpoint_seconds: 1"};
    AdminWorld::SetUp();
  }

  std::vector<Json> List(const std::string& filter) {
    std::string query;
    for (const char c : filter) {
      char hex[4];
      std::snprintf(hex, sizeof hex, "%%%02X", static_cast<unsigned char>(c));
      query += hex;
    }
    const HttpResponse answer =
        Admin("GET", "/admin/v1/workspaces/team/auditEntries?page_size=200&filter=" + query, "");
    EXPECT_EQ(answer.status, 200) << filter << answer.body;
    std::vector<Json> entries;
    const Json page = answer.json();
    for (const Json& entry : page["auditEntries"].elements()) entries.push_back(entry);
    return entries;
  }

  // Runs like a cron job; returns the exit code and the output.
  int VerifyAudit(const std::string& more, std::string& output) {
    const std::string log = given_.path() + "/output";
    const std::string command = BinaryPath("tollgate-auth") + " verify-audit --json --config " +
                                cluster_->dir() + "/allinone.yaml " + more + " >" + log + " 2>&1";
    const int status = std::system(command.c_str());
    output = ReadFile(log);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  TempDir given_;
  std::string key_, checkpoints_;
};
INSTANTIATE_TEST_SUITE_P(Stores, AuditLogTest, ::testing::Values("sqlite", "postgres"),
                         [](const auto& info) { return info.param; });

TEST_P(AuditLogTest, FiltersByActorSubjectAndTime) {
  const std::string first = Make("key"), second = Make("key");
  Must(Act(second_, "POST", "/admin/v1/workspaces/team:freeze?x=1",
           R"({"reason":"a","requestId":"f"})"));
  // The freeze is copied from billing within seconds.
  ASSERT_TRUE(WaitUntil([&] { return List("").size() >= 4; }, 10'000, 50));
  const auto all = List("");

  const auto boss = List("actor = \"" + boss_.actor + "\"");
  ASSERT_FALSE(boss.empty());
  EXPECT_LT(boss.size(), all.size());
  for (const Json& entry : boss) EXPECT_EQ(entry["actor"].str(), boss_.actor) << entry.Dump();
  // Copied from billing within seconds.
  EXPECT_TRUE(
      WaitUntil([&] { return List("actor = \"" + second_.actor + "\"").size() == 1; }, 10'000, 50));
  EXPECT_TRUE(List("actor = \"user:nobody\"").empty());

  const std::string subject = List("action = \"key.create\"").front()["subject"].str();
  EXPECT_NE(subject.find(second), std::string::npos) << "the newest is first";
  const auto of_second = List("subject = \"" + subject + "\"");
  ASSERT_EQ(of_second.size(), 1U);
  EXPECT_EQ(of_second[0]["action"].str(), "key.create");
  EXPECT_TRUE(List("subject = \"" + subject + "\" AND action = \"key.revoke\"").empty());

  const std::string at = of_second[0]["time"].str();
  const auto from = List("time >= \"" + at + "\""), before = List("time < \"" + at + "\"");
  ASSERT_FALSE(from.empty());
  ASSERT_FALSE(before.empty());
  EXPECT_EQ(from.size() + before.size(), List("").size());
  // RFC 3339 texts in UTC with fractions of equal length sort by time.
  for (const Json& entry : from) EXPECT_GE(entry["sequence"].str().size(), 1U);
  EXPECT_EQ(List("time >= \"" + at + "\" AND action = \"key.create\"").size(), 1U);
  EXPECT_EQ(List("time < \"" + at + "\" AND action = \"key.create\"").size(), 1U);
  EXPECT_TRUE(List("time < \"2020-01-01T00:00:00Z\"").empty());
}

TEST_P(AuditLogTest, TheExportHasEveryEntryOldestFirst) {
  for (int i = 0; i < 3; ++i) Make("key");
  std::vector<Json> listed = List("action = \"key.create\"");
  ASSERT_EQ(listed.size(), 3U);
  const HttpResponse answer = Admin(
      "GET", "/admin/v1/workspaces/team/auditEntries:export?filter=action%20%3D%20%22key.create%22",
      "");
  ASSERT_EQ(answer.status, 200) << answer.body;
  std::vector<Json> lines;
  std::istringstream text(answer.body);
  for (std::string line; std::getline(text, line);) {
    lines.push_back(Json::Parse(line).value_or(Json()));
  }
  ASSERT_EQ(lines.size(), 3U) << answer.body;
  for (size_t i = 0; i < 3; ++i) {
    const Json& from = listed[2 - i];
    EXPECT_EQ(std::to_string(lines[i]["sequence"].integer()), from["sequence"].str());
    for (const char* field : {"actor", "address", "action", "subject", "detail", "hash"}) {
      EXPECT_EQ(lines[i][field].str(), from[field].str()) << field;
    }
    EXPECT_EQ(lines[i]["workspace"].str(), "team");
    EXPECT_EQ(lines[i]["request_id"].str(), from["requestId"].str());
  }
}

TEST_P(AuditLogTest, TheCommandComparesTheLogWithItsSignedCheckpoints) {
  Make("key");
  const auto lines = [&] { return std::ranges::count(ReadFile(checkpoints_), '\n'); };
  EXPECT_TRUE(WaitUntil([&] { return lines() >= 1; }, 20'000, 50));
  const auto before = lines();
  Make("key");
  EXPECT_TRUE(WaitUntil([&] { return lines() > before; }, 20'000, 50));
  const std::string with = "--checkpoints " + checkpoints_ + " --checkpoint-key " + key_ + ".pub";
  std::string output;
  EXPECT_EQ(VerifyAudit(with, output), 0) << output;
  const Json found = Json::Parse(output).value_or(Json());
  EXPECT_TRUE(found["ok"].boolean()) << output;
  EXPECT_GE(found["checkpoints"].integer(), 2) << output;
  // A checkpoint that was changed, and one that was signed by another key.
  const std::string kept = ReadFile(checkpoints_);
  std::string changed = kept;
  const size_t digit = changed.rfind(':', changed.find('\n')) + 1;  // of the hash
  ASSERT_GT(digit, 1U) << kept;
  changed[digit] = changed[digit] == '0' ? '1' : '0';
  WriteFile(given_.path() + "/changed", changed);
  EXPECT_EQ(
      VerifyAudit("--checkpoints " + given_.path() + "/changed --checkpoint-key " + key_ + ".pub",
                  output),
      1)
      << output;
  const std::string other = given_.path() + "/other";
  ASSERT_EQ(
      std::system(
          ("openssl genpkey -algorithm ed25519 | openssl pkey -pubout -out " + other).c_str()),
      0);
  EXPECT_EQ(VerifyAudit("--checkpoints " + checkpoints_ + " --checkpoint-key " + other, output), 1)
      << output;
}

}  // namespace
}  // namespace tollgate::test
