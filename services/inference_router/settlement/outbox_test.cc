#include "services/inference_router/settlement/outbox.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <future>

#include "common/base/crypto.h"
#include "common/base/id.h"

namespace tollgate::inference_router {
namespace {

class OutboxTest : public ::testing::Test {
 protected:
  OutboxTest() {
    std::string pattern = (std::filesystem::temp_directory_path() / "outboxXXXXXX").string();
    folder_ = ::mkdtemp(pattern.data());
    path_ = folder_ + "/outbox";
  }
  ~OutboxTest() override { std::filesystem::remove_all(folder_); }

  std::unique_ptr<Outbox> Open() {
    auto opened = Outbox::Open(path_);
    EXPECT_TRUE(opened.ok());
    return std::move(opened).value();
  }
  static std::string NewKey() { return OutboxKey(Id::New().ToBytes(), 1); }
  static bool AppendAndWait(Outbox& outbox, const std::string& key, const std::string& payload) {
    std::promise<bool> done;
    outbox.Append(key, payload, [&](bool durable) { done.set_value(durable); });
    return done.get_future().get();
  }

  static std::string Content(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return std::string((std::istreambuf_iterator<char>(file)), {});
  }

  std::string folder_, path_;
};

TEST_F(OutboxTest, ReplaysUnacknowledgedRecords) {
  const std::string a = NewKey(), b = NewKey();
  {
    auto outbox = Open();
    ASSERT_TRUE(AppendAndWait(*outbox, a, "op a"));
    ASSERT_TRUE(AppendAndWait(*outbox, b, "op b"));
    outbox->Acknowledge(a);
  }
  auto outbox = Open();
  EXPECT_EQ(outbox->recovered(), (std::map<std::string, std::string>{{b, "op b"}}));
  EXPECT_EQ(outbox->depth(), 1);
  outbox->Acknowledge(b);
  outbox.reset();
  EXPECT_TRUE(Open()->recovered().empty());
}

TEST_F(OutboxTest, TwoTriesOfARequestHaveARecordEach) {
  const std::string id = Id::New().ToBytes();
  const std::string first = OutboxKey(id, 0), second = OutboxKey(id, 1);
  {
    auto outbox = Open();
    ASSERT_TRUE(AppendAndWait(*outbox, first, "first"));
    ASSERT_TRUE(AppendAndWait(*outbox, second, "second"));
    EXPECT_EQ(outbox->depth(), 2);
  }
  {
    auto outbox = Open();
    EXPECT_EQ(outbox->recovered(),
              (std::map<std::string, std::string>{{first, "first"}, {second, "second"}}));
    outbox->Acknowledge(first);
  }
  EXPECT_EQ(Open()->recovered(), (std::map<std::string, std::string>{{second, "second"}}));
}

TEST_F(OutboxTest, RecordsOfEarlierVersionsHaveTheIdAsTheirKey) {
  const std::string a = Id::New().ToBytes(), b = Id::New().ToBytes();
  std::string records;
  for (const std::string& id : {a, b}) {
    AppendOutboxRecord(records, RecordKind::kSettle, id, "op of a try");
  }
  EXPECT_EQ(records.substr(16, 1 + a.size()), "\x01" + a) << "the layout of that version";
  const std::string key = OutboxKey(a, 0);
  {
    ASSERT_TRUE(AppendAndWait(*Open(), key, "op of another try"));
  }
  std::ofstream(path_, std::ios::binary | std::ios::app) << records;
  {
    auto outbox = Open();
    EXPECT_EQ(outbox->recovered().size(), 3u);
    outbox->Acknowledge(a);
  }
  EXPECT_EQ(Open()->recovered(),
            (std::map<std::string, std::string>{{key, "op of another try"}, {b, "op of a try"}}));
}

TEST_F(OutboxTest, IsOnDiskWhenTheCallbackRuns) {
  auto outbox = Open();
  const std::string id = NewKey();
  ASSERT_TRUE(AppendAndWait(*outbox, id, "the payload"));
  std::ifstream file(path_, std::ios::binary);
  const std::string content((std::istreambuf_iterator<char>(file)), {});
  EXPECT_NE(content.find("the payload"), std::string::npos);
}

TEST_F(OutboxTest, TruncatesATornTailAtEveryByteAndKeepsCompleteRecords) {
  const std::string a = NewKey(), b = NewKey();
  size_t first = 0, both = 0;
  {
    auto outbox = Open();
    ASSERT_TRUE(AppendAndWait(*outbox, a, "op a"));
    first = std::filesystem::file_size(path_);
    ASSERT_TRUE(AppendAndWait(*outbox, b, "op b"));
    both = std::filesystem::file_size(path_);
  }
  std::ifstream file(path_, std::ios::binary);
  const std::string content((std::istreambuf_iterator<char>(file)), {});
  for (size_t cut = first; cut < both; ++cut) {
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << content.substr(0, cut);
    auto outbox = Open();
    EXPECT_EQ(outbox->recovered(), (std::map<std::string, std::string>{{a, "op a"}})) << cut;
    outbox.reset();
    EXPECT_EQ(std::filesystem::file_size(path_), first);
  }
}

TEST_F(OutboxTest, AFlippedBitAnywhereLosesOneRecordToTheQuarantineAndNoneBehindIt) {
  const std::string a = NewKey(), b = NewKey(), c = NewKey();
  size_t begin = 0, end = 0;
  {
    auto outbox = Open();
    ASSERT_TRUE(AppendAndWait(*outbox, a, "op a"));
    begin = std::filesystem::file_size(path_);
    ASSERT_TRUE(AppendAndWait(*outbox, b, "op b"));
    end = std::filesystem::file_size(path_);
    ASSERT_TRUE(AppendAndWait(*outbox, c, "op c"));
  }
  const std::string sound = Content(path_);
  for (size_t at = begin; at < end; ++at) {
    std::string damaged = sound;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (at % 8)));
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << damaged;
    std::filesystem::remove(path_ + ".quarantine");
    EXPECT_EQ(Open()->recovered(), (std::map<std::string, std::string>{{a, "op a"}, {c, "op c"}}))
        << at;
    const std::string line = Content(path_ + ".quarantine");
    EXPECT_NE(line.find("\"reason\":\"corrupt\",\"offset\":" + std::to_string(begin)),
              std::string::npos)
        << at << ": " << line;
    EXPECT_NE(line.find(HexEncode(damaged.substr(begin, end - begin))), std::string::npos) << at;
    const std::string quarantined = line;
    EXPECT_EQ(Open()->recovered().size(), 2u);
    EXPECT_EQ(Content(path_ + ".quarantine"), quarantined) << "once";
  }
}

TEST_F(OutboxTest, ADamagedLastRecordIsNotTakenForATornOne) {
  const std::string a = NewKey(), b = NewKey();
  size_t begin = 0;
  {
    auto outbox = Open();
    ASSERT_TRUE(AppendAndWait(*outbox, a, "op a"));
    begin = std::filesystem::file_size(path_);
    ASSERT_TRUE(AppendAndWait(*outbox, b, "op b"));
  }
  const std::string sound = Content(path_);
  for (size_t at = begin; at < sound.size(); ++at) {
    std::string damaged = sound;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (at % 8)));
    std::ofstream(path_, std::ios::binary | std::ios::trunc) << damaged;
    std::filesystem::remove(path_ + ".quarantine");
    EXPECT_EQ(Open()->recovered(), (std::map<std::string, std::string>{{a, "op a"}})) << at;
    EXPECT_NE(Content(path_ + ".quarantine").find("corrupt"), std::string::npos) << at;
  }
}

TEST_F(OutboxTest, AFileThatHasGrownWithoutItsDataIsTorn) {
  const std::string a = NewKey();
  {
    ASSERT_TRUE(AppendAndWait(*Open(), a, "op a"));
  }
  std::ofstream(path_, std::ios::binary | std::ios::app) << std::string(5000, '\0');
  EXPECT_EQ(Open()->recovered(), (std::map<std::string, std::string>{{a, "op a"}}));
  EXPECT_FALSE(std::filesystem::exists(path_ + ".quarantine"));
}

TEST_F(OutboxTest, WhatCannotBeDeliveredMovesToTheQuarantine) {
  const std::string a = NewKey(), b = NewKey();
  {
    auto outbox = Open();
    ASSERT_TRUE(AppendAndWait(*outbox, a, "op a"));
    outbox->MoveToQuarantine(a, "op a", "gave_up");
    outbox->MoveToQuarantine(b, "op b", "gave_up");
  }
  EXPECT_TRUE(Open()->recovered().empty());
  const std::string lines = Content(path_ + ".quarantine");
  EXPECT_NE(lines.find("\"reason\":\"gave_up\",\"offset\":-1,\"request_id\":\"" +
                       HexEncode(RequestIdOf(a)) + "\""),
            std::string::npos);
  EXPECT_NE(lines.find(HexEncode("op b")), std::string::npos) << "also without a record";
}

TEST_F(OutboxTest, ARecordStaysWhenTheQuarantineCannotBeWritten) {
  const std::string a = NewKey();
  std::filesystem::create_directory(path_ + ".quarantine");
  {
    auto outbox = Open();
    ASSERT_TRUE(AppendAndWait(*outbox, a, "op a"));
    outbox->MoveToQuarantine(a, "op a", "gave_up");
  }
  EXPECT_EQ(Open()->recovered().size(), 1u);
}

TEST_F(OutboxTest, IsTruncatedOnceAllIsAcknowledged) {
  auto outbox = Open();
  const std::string payload(1000, 'p');
  std::vector<std::string> ids;
  for (int i = 0; i < 400; ++i) {
    ids.push_back(NewKey());
    outbox->Append(ids.back(), payload, nullptr);
  }
  for (const std::string& id : ids) outbox->Acknowledge(id);
  outbox.reset();
  EXPECT_EQ(std::filesystem::file_size(path_), FileHeader::kBytes);
}

TEST_F(OutboxTest, IsRewrittenWhenMostOfItIsAcknowledged) {
  auto outbox = Open();
  const std::string payload(60'000, 'p');
  const std::string keep = NewKey();
  ASSERT_TRUE(AppendAndWait(*outbox, keep, "keep me"));
  for (int i = 0; i < 300; ++i) {
    const std::string id = NewKey();
    outbox->Append(id, payload, nullptr);
    outbox->Acknowledge(id);
  }
  outbox.reset();
  EXPECT_LT(std::filesystem::file_size(path_), 16u * 1024 * 1024);
  EXPECT_EQ(Open()->recovered(), (std::map<std::string, std::string>{{keep, "keep me"}}));
}

}  // namespace
}  // namespace tollgate::inference_router
