#include "services/inference_router/settlement/outbox.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <future>

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
  static bool AppendAndWait(Outbox& outbox, const std::string& id, const std::string& payload) {
    std::promise<bool> done;
    outbox.Append(id, payload, [&](bool durable) { done.set_value(durable); });
    return done.get_future().get();
  }

  std::string folder_, path_;
};

TEST_F(OutboxTest, ReplaysUnacknowledgedRecords) {
  const std::string a = Id::New().ToBytes(), b = Id::New().ToBytes();
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

TEST_F(OutboxTest, IsOnDiskWhenTheCallbackRuns) {
  auto outbox = Open();
  const std::string id = Id::New().ToBytes();
  ASSERT_TRUE(AppendAndWait(*outbox, id, "the payload"));
  std::ifstream file(path_, std::ios::binary);
  const std::string content((std::istreambuf_iterator<char>(file)), {});
  EXPECT_NE(content.find("the payload"), std::string::npos);
}

TEST_F(OutboxTest, TruncatesATornTailAtEveryByteAndKeepsCompleteRecords) {
  const std::string a = Id::New().ToBytes(), b = Id::New().ToBytes();
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

TEST_F(OutboxTest, AFlippedBitEndsTheReplayThere) {
  const std::string a = Id::New().ToBytes(), b = Id::New().ToBytes();
  {
    auto outbox = Open();
    ASSERT_TRUE(AppendAndWait(*outbox, a, "op a"));
    ASSERT_TRUE(AppendAndWait(*outbox, b, "op b"));
  }
  std::fstream file(path_, std::ios::in | std::ios::out | std::ios::binary);
  const std::string content((std::istreambuf_iterator<char>(file)), {});
  file.clear();
  file.seekp(static_cast<std::streamoff>(content.find("op b")));
  file.put('O');
  file.close();
  EXPECT_EQ(Open()->recovered(), (std::map<std::string, std::string>{{a, "op a"}}));
}

TEST_F(OutboxTest, IsTruncatedOnceAllIsAcknowledged) {
  auto outbox = Open();
  const std::string payload(1000, 'p');
  std::vector<std::string> ids;
  for (int i = 0; i < 400; ++i) {
    ids.push_back(Id::New().ToBytes());
    outbox->Append(ids.back(), payload, nullptr);
  }
  for (const std::string& id : ids) outbox->Acknowledge(id);
  outbox.reset();
  EXPECT_EQ(std::filesystem::file_size(path_), 0u);
}

TEST_F(OutboxTest, IsRewrittenWhenMostOfItIsAcknowledged) {
  auto outbox = Open();
  const std::string payload(60'000, 'p');
  const std::string keep = Id::New().ToBytes();
  ASSERT_TRUE(AppendAndWait(*outbox, keep, "keep me"));
  for (int i = 0; i < 300; ++i) {
    const std::string id = Id::New().ToBytes();
    outbox->Append(id, payload, nullptr);
    outbox->Acknowledge(id);
  }
  outbox.reset();
  EXPECT_LT(std::filesystem::file_size(path_), 16u * 1024 * 1024);
  EXPECT_EQ(Open()->recovered(), (std::map<std::string, std::string>{{keep, "keep me"}}));
}

}  // namespace
}  // namespace tollgate::inference_router
