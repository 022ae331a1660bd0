#include "services/inference_router/settlement/settlement_files.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <functional>
#include <future>

#include "common/base/crypto.h"
#include "common/base/id.h"
#include "common/observability/metrics.h"

namespace tollgate::inference_router {
namespace {

namespace fs = std::filesystem;

const std::string kBoot(16, 'b');
const std::string kOtherBoot(16, 'o');

// The value of one counter, ignoring other labels.
double Lost(const std::string& file) {
  return metrics::Counter("tollgate_router_settlement_files_lost_total", "", {{"file", file}})
      .Value();
}

class SettlementFilesTest : public ::testing::Test {
 protected:
  SettlementFilesTest() {
    std::string pattern = (fs::temp_directory_path() / "filesXXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    journal_ = folder_ + "/inflight";
    outbox_ = folder_ + "/outbox";
    state_ = folder_ + "/settlement-state";
    before_ = Now();
  }
  ~SettlementFilesTest() override { fs::remove_all(folder_); }

  static std::map<std::string, double> Now() {
    return {{"outbox", Lost("outbox")}, {"journal", Lost("journal")}, {"state", Lost("state")}};
  }
  // The files counted as lost since the last call.
  std::map<std::string, double> LostSince() {
    std::map<std::string, double> lost;
    for (const auto& [file, count] : Now()) {
      if (count > before_[file]) lost[file] = count - before_[file];
    }
    before_ = Now();
    return lost;
  }
  std::unique_ptr<SettlementFiles> Open(const std::string& boot = kBoot) {
    auto opened = SettlementFiles::Open(folder_, boot);
    EXPECT_TRUE(opened.ok());
    return std::move(opened).value();
  }
  // Leaves a running request and an unacknowledged settlement, then crashes.
  void RunAndCrash() {
    auto files = Open();
    const std::string id = Id::New().ToBytes();
    JournalSlot* slot = files->journal().Acquire({id, "ws", "key", "m"});
    ASSERT_NE(slot, nullptr);
    slot->SetAccepted();
    slot->SetUsage(10, 20);
    std::promise<bool> done;
    files->outbox().Append(Id::New().ToBytes(), "op",
                           [&done](bool durable) { done.set_value(durable); });
    ASSERT_TRUE(done.get_future().get());
  }

  std::string folder_, journal_, outbox_, state_;
  std::map<std::string, double> before_;
};

using Files = std::map<std::string, double>;

TEST_F(SettlementFilesTest, TheFirstStartOfAnEmptyFolderIsSilent) {
  Open();
  EXPECT_EQ(LostSince(), Files());
}

TEST_F(SettlementFilesTest, ARestartInOrderAndACrashAreSilentAndKeepAll) {
  RunAndCrash();
  {
    auto files = Open();
    EXPECT_EQ(files->journal().recovered().size(), 1u);
    EXPECT_EQ(files->outbox().recovered().size(), 1u);
    for (const JournalEntry& entry : files->journal().recovered()) {
      files->journal().Release(entry.slot);
    }
    files->outbox().Acknowledge(files->outbox().recovered().begin()->first);
    files->MarkStopped();
  }
  Open();
  EXPECT_EQ(LostSince(), Files());
}

struct LossCase {
  const char* name;
  std::function<void(const std::string& folder)> damage;
  Files lost;
};

class SettlementLossTest : public SettlementFilesTest,
                           public ::testing::WithParamInterface<LossCase> {};

TEST_P(SettlementLossTest, IsNoticedAndCountedOnce) {
  RunAndCrash();
  fs::create_directory(folder_ + "/earlier");
  for (const char* name : {"inflight", "outbox", "settlement-state"}) {
    fs::copy_file(folder_ + "/" + name, folder_ + "/earlier/" + name);
  }
  RunAndCrash();
  ASSERT_EQ(LostSince(), Files());
  GetParam().damage(folder_);
  {
    auto files = Open();
    EXPECT_EQ(LostSince(), GetParam().lost);
    EXPECT_NE(files->journal().Acquire({Id::New().ToBytes(), "ws", "key", "m"}), nullptr)
        << "the router goes on";
  }
  Open();
  EXPECT_EQ(LostSince(), Files()) << "the next start finds what this one left";
}

void Truncate(const std::string& path, uintmax_t size) { fs::resize_file(path, size); }
void Replace(const std::string& path, const std::string& by) {
  fs::copy_file(by, path, fs::copy_options::overwrite_existing);
}
void FlipByte(const std::string& path, std::streamoff at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(at);
  const int byte = file.get();
  file.seekp(at);
  file.put(static_cast<char>(byte ^ 0x10));
}
// The replacement belongs to a router with another folder.
void ReplaceByForeign(const std::string& folder, const std::string& name) {
  const std::string other = folder + "/other";
  fs::create_directory(other);
  (void)SettlementFiles::Open(other, kBoot);
  Replace(folder + "/" + name, other + "/" + name);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, SettlementLossTest,
    ::testing::Values(
        LossCase{"outbox_deleted", [](auto& f) { fs::remove(f + "/outbox"); }, {{"outbox", 1}}},
        LossCase{"outbox_emptied", [](auto& f) { Truncate(f + "/outbox", 0); }, {{"outbox", 1}}},
        LossCase{
            "outbox_header_damaged", [](auto& f) { FlipByte(f + "/outbox", 20); }, {{"outbox", 1}}},
        LossCase{"outbox_replaced_by_an_older_copy",
                 [](auto& f) { Replace(f + "/outbox", f + "/earlier/outbox"); },
                 {{"outbox", 1}}},
        LossCase{"outbox_of_another_router",
                 [](auto& f) { ReplaceByForeign(f, "outbox"); },
                 {{"outbox", 1}}},
        LossCase{"journal_deleted", [](auto& f) { fs::remove(f + "/inflight"); }, {{"journal", 1}}},
        LossCase{
            "journal_emptied", [](auto& f) { Truncate(f + "/inflight", 0); }, {{"journal", 1}}},
        LossCase{"journal_shortened",
                 [](auto& f) { Truncate(f + "/inflight", 4096); },
                 {{"journal", 1}}},
        LossCase{"journal_header_damaged",
                 [](auto& f) { FlipByte(f + "/inflight", 20); },
                 {{"journal", 1}}},
        LossCase{"journal_replaced_by_an_older_copy",
                 [](auto& f) { Replace(f + "/inflight", f + "/earlier/inflight"); },
                 {{"journal", 1}}},
        LossCase{"journal_of_another_router",
                 [](auto& f) { ReplaceByForeign(f, "inflight"); },
                 {{"journal", 1}}},
        LossCase{"both_deleted",
                 [](auto& f) {
                   fs::remove(f + "/outbox");
                   fs::remove(f + "/inflight");
                 },
                 {{"journal", 1}, {"outbox", 1}}},
        LossCase{
            "state_deleted", [](auto& f) { fs::remove(f + "/settlement-state"); }, {{"state", 1}}},
        LossCase{"state_damaged",
                 [](auto& f) { FlipByte(f + "/settlement-state", 40); },
                 {{"state", 1}}}),
    [](const auto& info) { return std::string(info.param.name); });

TEST_F(SettlementFilesTest, WhatALostOutboxStillHasIsDelivered) {
  RunAndCrash();
  FlipByte(outbox_, 20);
  EXPECT_EQ(Open()->outbox().recovered().size(), 1u);
  EXPECT_EQ(LostSince(), (Files{{"outbox", 1}}));
}

TEST_F(SettlementFilesTest, AfterAnotherBootNothingIsChargedFromTheJournal) {
  RunAndCrash();
  auto files = Open(kOtherBoot);
  EXPECT_TRUE(files->journal().recovered().empty());
  EXPECT_EQ(files->journal().found().other_boot, 1);
  EXPECT_EQ(files->journal().in_use(), 0);
  EXPECT_EQ(files->outbox().recovered().size(), 1u) << "the outbox is flushed: it stays valid";
  EXPECT_EQ(LostSince(), Files()) << "a power cut is not a lost file";
}

TEST_F(SettlementFilesTest, ACrashBetweenTheHeadersAndTheStateFileIsSilent) {
  RunAndCrash();
  fs::copy_file(state_, state_ + ".kept");
  RunAndCrash();
  Replace(state_, state_ + ".kept");
  EXPECT_EQ(Open()->outbox().recovered().size(), 2u);
  EXPECT_EQ(LostSince(), Files());
}

TEST_F(SettlementFilesTest, FilesOfTheVersionWithoutHeadersAreTakenOver) {
  // One settlement in the format of the previous version: length, CRC-32, kind, id, payload.
  const std::string id = Id::New().ToBytes();
  const std::string body = std::string(1, '\1') + id + "op";
  const uint32_t head[] = {static_cast<uint32_t>(body.size()), Crc32(body)};
  std::ofstream(outbox_, std::ios::binary)
      << std::string_view(reinterpret_cast<const char*>(head), sizeof(head)) << body;
  std::ofstream(journal_, std::ios::binary) << std::string(589'824, '\0');
  {
    auto files = Open();
    EXPECT_EQ(files->outbox().recovered(), (std::map<std::string, std::string>{{id, "op"}}));
    EXPECT_EQ(LostSince(), Files());
  }
  EXPECT_EQ(Open()->outbox().recovered().size(), 1u);
  EXPECT_EQ(LostSince(), Files());
}

}  // namespace
}  // namespace tollgate::inference_router
