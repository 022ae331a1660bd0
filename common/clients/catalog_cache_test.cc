#include "common/clients/catalog_cache.h"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <filesystem>
#include <fstream>
#include <future>

namespace tollgate {
namespace {

using Message = catalog::v1::WatchCatalogResponse;

// Exposes the handler, so that the test can send messages.
class FakeCatalog : public CatalogClient {
 public:
  std::unique_ptr<Subscription> WatchCatalog(EngineKeys, WatchHandler<Message> with) override {
    handler = std::move(with);
    return std::make_unique<Subscription>();
  }
  WatchHandler<Message> handler;
};

Message Catalog(int64_t version) {
  Message message;
  message.mutable_snapshot()->set_version(version);
  message.mutable_snapshot()->add_models()->set_id("a/b");
  message.mutable_snapshot()->add_pools()->add_engines()->set_api_key("engine-secret");
  return message;
}

class CatalogCacheTest : public ::testing::Test {
 protected:
  CatalogCacheTest() {
    std::string pattern = ::testing::TempDir() + "catalog-XXXXXX";
    folder_ = mkdtemp(pattern.data());
    file_ = folder_ + "/deep/catalog";
  }
  ~CatalogCacheTest() override { std::filesystem::remove_all(folder_); }

  Loop& loop() { return loops_.loop(0); }
  // Starts the client; received_ then holds the cached snapshot, if any.
  void Start(bool with_engines = false) {
    received_.clear();
    subscription_ = WatchCatalogCached(
        loop(), client_, {.file = file_, .with_engines = with_engines, .older_after_ms = 30},
        {[this](Message message) { received_.push_back(std::move(*message.mutable_snapshot())); },
         {}});
  }
  std::string Bytes() const {
    std::ifstream in(file_, std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }

  LoopPool loops_{1};  // started by the tests that wait
  FakeCatalog client_;
  std::string folder_, file_;
  std::vector<catalog::v1::Snapshot> received_;
  std::unique_ptr<Subscription> subscription_;
};

TEST_F(CatalogCacheTest, TheLastSnapshotIsDeliveredFirstAtTheNextStart) {
  Start();
  EXPECT_TRUE(received_.empty());
  client_.handler.on_message(Catalog(7));
  client_.handler.on_message(Catalog(8));
  client_.handler.on_message(Message());  // Without a snapshot, the cache stays as it is.
  EXPECT_EQ(received_.size(), 3u);
  Start();
  ASSERT_EQ(received_.size(), 1u);
  EXPECT_EQ(received_[0].version(), 8);
  EXPECT_EQ(received_[0].models(0).id(), "a/b");
  // A received snapshot replaces it.
  client_.handler.on_message(Catalog(9));
  EXPECT_EQ(received_.back().version(), 9);
}

TEST_F(CatalogCacheTest, WhatAnotherReplicaRepeatsIsNotDeliveredTwice) {
  Start();
  Message catalog = Catalog(7);
  catalog.mutable_snapshot()->set_digest("content");
  client_.handler.on_message(catalog);
  client_.handler.on_message(catalog);
  catalog.mutable_snapshot()->set_version(8);  // the same file, copied later
  client_.handler.on_message(catalog);
  EXPECT_EQ(received_.size(), 1u);
}

TEST_F(CatalogCacheTest, ReplicasWithAnOldAndANewFileDoNotTakeTurns) {
  loops_.Start();
  loop().RunAndWait([this] {
    Start();
    for (int i = 0; i < 5; ++i) {
      client_.handler.on_message(Catalog(8));
      client_.handler.on_message(Catalog(7));
    }
    client_.handler.on_message(Catalog(9));
    for (const auto& snapshot : received_) EXPECT_NE(snapshot.version(), 7);
    EXPECT_EQ(received_.back().version(), 9);
    received_.clear();
  });
  std::promise<void> later;
  loop().Post([&] { loop().RunAfter(100, [&] { later.set_value(); }); });
  later.get_future().wait();
  loop().RunAndWait([this] {
    EXPECT_TRUE(received_.empty()) << "the newer catalog was received";
    client_.handler.on_message(Catalog(6));
    EXPECT_TRUE(received_.empty());
  });
  std::promise<void> at_last;
  loop().Post([&] { loop().RunAfter(100, [&] { at_last.set_value(); }); });
  at_last.get_future().wait();
  loop().RunAndWait([this] {
    ASSERT_EQ(received_.size(), 1u);
    EXPECT_EQ(received_[0].version(), 6) << "the operator went back to an earlier file";
    subscription_.reset();
    client_.handler = {};
  });
}

TEST_F(CatalogCacheTest, EnginesAreCachedOnlyIfRequested) {
  Start();
  client_.handler.on_message(Catalog(7));
  EXPECT_EQ(received_[0].pools_size(), 1);
  EXPECT_EQ(Bytes().find("engine-secret"), std::string::npos);
  Start(true);
  client_.handler.on_message(Catalog(7));
  Start(true);
  ASSERT_EQ(received_.size(), 1u);
  EXPECT_EQ(received_[0].pools(0).engines(0).api_key(), "engine-secret");
  struct stat info{};
  ASSERT_EQ(stat(file_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(CatalogCacheTest, ADamagedFileIsIgnored) {
  Start();
  client_.handler.on_message(Catalog(7));
  const std::string good = Bytes();
  ASSERT_GT(good.size(), 40u);
  for (const std::string& bad :
       {std::string(), good.substr(0, 10), good.substr(0, good.size() - 1), good + "x", [&] {
          std::string flipped = good;
          flipped.back() ^= 1;
          return flipped;
        }()}) {
    std::ofstream(file_, std::ios::binary | std::ios::trunc) << bad;
    EXPECT_FALSE(LoadCatalog(file_)) << bad.size();
  }
  Start();
  EXPECT_TRUE(received_.empty());
  client_.handler.on_message(Catalog(8));
  EXPECT_EQ(LoadCatalog(file_)->version(), 8);
}

TEST_F(CatalogCacheTest, LeavesNoTemporaryFile) {
  Start();
  client_.handler.on_message(Catalog(7));
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_ + "/deep")) {
    (void)entry;
    ++files;
  }
  EXPECT_EQ(files, 1);
}

TEST_F(CatalogCacheTest, AnUnwritableFolderIsNotAnError) {
  file_ = "/proc/no-such-folder/catalog";
  Start();
  client_.handler.on_message(Catalog(7));
  ASSERT_EQ(received_.size(), 1u);
  EXPECT_FALSE(StoreCatalog(file_, received_[0]).ok());
}

TEST_F(CatalogCacheTest, WithoutAFileNothingIsCached) {
  file_.clear();
  Start();
  client_.handler.on_message(Catalog(7));
  Start();
  EXPECT_TRUE(received_.empty());
}

}  // namespace
}  // namespace tollgate
