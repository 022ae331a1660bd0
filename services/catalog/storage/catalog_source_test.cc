#include "services/catalog/storage/catalog_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

#include "services/catalog/testing/sample_catalog.h"

namespace tollgate::catalog {
namespace {

using Change = CatalogSource::Change;

class CatalogSourceTest : public testing::Test {
 protected:
  CatalogSourceTest() {
    std::string folder = testing::TempDir() + "catalog_XXXXXX";
    folder_ = ::mkdtemp(folder.data());
  }
  ~CatalogSourceTest() override { std::filesystem::remove_all(folder_); }

  std::string path() const { return folder_ + "/catalog.yaml"; }
  void Write(const std::string& text, const std::string& name = "catalog.yaml") const {
    std::ofstream(folder_ + "/" + name, std::ios::binary | std::ios::trunc) << text;
  }
  // Polls twice: a change counts once the file is the same in two calls.
  Change PollTwice(CatalogSource& source) {
    problems_.clear();
    const Change first = source.Poll(problems_);
    EXPECT_EQ(first, Change::kNone) << "a change must be seen twice first";
    return source.Poll(problems_);
  }

  std::string folder_;
  Problems problems_;
};

TEST_F(CatalogSourceTest, LoadFailsOnAMissingOrInvalidFile) {
  CatalogSource source(path(), "tollgate");
  EXPECT_FALSE(source.Load());
  Write("models: [{}]");
  EXPECT_FALSE(source.Load());
  EXPECT_EQ(source.current(), nullptr);
}

// Watchers get the catalog in one message; a larger one would never reach them.
TEST_F(CatalogSourceTest, ACatalogAboveTheLargestMessageIsRefused) {
  Write(CatalogWith("name: Acme Large",
                    "name: Acme Large\n    description: " + std::string(kMaxSnapshotBytes, 'x')));
  CatalogSource source(path(), "tollgate");
  const auto loaded = source.Load();
  ASSERT_FALSE(loaded);
  EXPECT_THAT(loaded.error().at(0), testing::HasSubstr("bytes of models and engines"));
  Write(CatalogWith("name: Acme Large", "name: Acme Large\n    description: " +
                                            std::string(kMaxSnapshotBytes - 10'000, 'x')));
  EXPECT_TRUE(source.Load());
}

TEST_F(CatalogSourceTest, AChangedFileGivesANewerSnapshot) {
  Write(kGoodCatalog);
  CatalogSource source(path(), "tollgate");
  ASSERT_TRUE(source.Load());
  const auto before = source.current();
  EXPECT_GT(before->version(), 0);
  EXPECT_EQ(PollTwice(source), Change::kNone);
  Write(CatalogWith("\"2.2\"", "\"3.25\""));
  EXPECT_EQ(PollTwice(source), Change::kNew);
  EXPECT_GT(source.current()->version(), before->version());
  EXPECT_EQ(source.current()->models(0).price().output_pico_usd(), 3'250'000);
  EXPECT_EQ(source.current()->models(0).price().version(), source.current()->version());
  EXPECT_EQ(before->models(0).price().output_pico_usd(),
            2'200'000);  // a published snapshot does not change
}

TEST_F(CatalogSourceTest, AnInvalidFileKeepsTheLastValidSnapshotAndIsReportedOnce) {
  Write(kGoodCatalog);
  CatalogSource source(path(), "tollgate");
  ASSERT_TRUE(source.Load());
  const auto good = source.current();
  Write(CatalogWith("pool: main", "pool: nowhere"));
  EXPECT_EQ(PollTwice(source), Change::kInvalid);
  EXPECT_THAT(problems_, testing::ElementsAre(testing::HasSubstr("nowhere")));
  EXPECT_EQ(source.current(), good);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(source.Poll(problems_), Change::kNone);
  std::filesystem::remove(path());
  EXPECT_EQ(PollTwice(source), Change::kInvalid);
  EXPECT_EQ(source.current(), good);
  Write(kGoodCatalog);
  EXPECT_EQ(PollTwice(source), Change::kNone);  // content is unchanged
  EXPECT_EQ(source.current(), good);
}

TEST_F(CatalogSourceTest, AFileThatIsEmptyForAMomentTakesNoModelAway) {
  Write(kGoodCatalog);
  CatalogSource source(path(), "tollgate");
  ASSERT_TRUE(source.Load());
  const auto good = source.current();
  for (const char* text : {"", "\n\n", "# nothing yet\n", "models: []\n"}) {
    Write(text);
    Change change = Change::kNone;
    // The problem is reported once.
    for (int i = 0; i < 2; ++i) change = std::max(change, source.Poll(problems_));
    EXPECT_NE(change, Change::kNew) << text;
    EXPECT_EQ(source.current(), good) << text;
  }
  EXPECT_THAT(source.refused(), testing::ElementsAre(testing::HasSubstr("allow_empty")));
  Write("allow_empty: true\n");
  EXPECT_EQ(PollTwice(source), Change::kNew);
  EXPECT_EQ(source.current()->models_size(), 0);
}

TEST_F(CatalogSourceTest, ReplicasThatReadTheSameFileAgree) {
  Write(kGoodCatalog);
  CatalogSource one(path(), "tollgate");
  CatalogSource two(path(), "tollgate");
  ASSERT_TRUE(one.Load());
  ASSERT_TRUE(two.Load());
  EXPECT_EQ(one.current()->SerializeAsString(), two.current()->SerializeAsString());
}

TEST_F(CatalogSourceTest, AnOlderFileStillGetsANewerVersion) {
  Write(kGoodCatalog);
  CatalogSource source(path(), "tollgate");
  ASSERT_TRUE(source.Load());
  const int64_t before = source.current()->version();
  Write(CatalogWith("\"2.2\"", "\"3\""));
  std::filesystem::last_write_time(
      path(), std::filesystem::file_time_type::clock::now() - std::chrono::hours(1000));
  EXPECT_EQ(PollTwice(source), Change::kNew);
  EXPECT_EQ(source.current()->version(), before + 1);
}

TEST_F(CatalogSourceTest, SecretsInFilesAreReadAgainPeriodically) {
  Write("first", "key");
  Write(CatalogWith("api_key: secret", "api_key: ${file:key}"));
  CatalogSource source(path(), "tollgate");
  ASSERT_TRUE(source.Load());
  EXPECT_EQ(source.current()->pools(0).engines(1).api_key(), "first");
  Write("second", "key");
  bool changed = false;
  for (int i = 0; i < 41 && !changed; ++i) changed = source.Poll(problems_) == Change::kNew;
  EXPECT_TRUE(changed);
  EXPECT_EQ(source.current()->pools(0).engines(1).api_key(), "second");
}

}  // namespace
}  // namespace tollgate::catalog
