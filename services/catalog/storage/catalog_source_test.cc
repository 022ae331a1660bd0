#include "services/catalog/storage/catalog_source.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

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
  // Polls until the file has rested.
  Change Settle(CatalogSource& source) {
    complaints_.clear();
    const Change first = source.Poll(complaints_);
    EXPECT_EQ(first, Change::kNone) << "a change must rest for one period first";
    return source.Poll(complaints_);
  }

  std::string folder_;
  Complaints complaints_;
};

TEST_F(CatalogSourceTest, AMissingOrBadFileIsAComplaintAtStart) {
  CatalogSource source(path(), "tollgate");
  EXPECT_FALSE(source.Load());
  Write("models: [{}]");
  EXPECT_FALSE(source.Load());
  EXPECT_EQ(source.current(), nullptr);
}

TEST_F(CatalogSourceTest, AChangedFileGivesANewerSnapshot) {
  Write(kGoodCatalog);
  CatalogSource source(path(), "tollgate");
  ASSERT_TRUE(source.Load());
  const auto before = source.current();
  EXPECT_GT(before->version(), 0);
  EXPECT_EQ(Settle(source), Change::kNone);
  Write(Bent("\"2.2\"", "\"3.25\""));
  EXPECT_EQ(Settle(source), Change::kNew);
  EXPECT_GT(source.current()->version(), before->version());
  EXPECT_EQ(source.current()->models(0).price().output_pico_usd(), 3'250'000);
  EXPECT_EQ(source.current()->models(0).price().version(), source.current()->version());
  EXPECT_EQ(before->models(0).price().output_pico_usd(), 2'200'000);  // handed-out ones stay
}

TEST_F(CatalogSourceTest, ABadFileKeepsTheLastGoodOneAndIsReportedOnce) {
  Write(kGoodCatalog);
  CatalogSource source(path(), "tollgate");
  ASSERT_TRUE(source.Load());
  const auto good = source.current();
  Write(Bent("pool: main", "pool: nowhere"));
  EXPECT_EQ(Settle(source), Change::kBad);
  EXPECT_THAT(complaints_, testing::ElementsAre(testing::HasSubstr("nowhere")));
  EXPECT_EQ(source.current(), good);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(source.Poll(complaints_), Change::kNone);
  std::filesystem::remove(path());
  EXPECT_EQ(Settle(source), Change::kBad);
  EXPECT_EQ(source.current(), good);
  Write(kGoodCatalog);
  EXPECT_EQ(Settle(source), Change::kNone);  // the same content as before
  EXPECT_EQ(source.current(), good);
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
  Write(Bent("\"2.2\"", "\"3\""));
  std::filesystem::last_write_time(
      path(), std::filesystem::file_time_type::clock::now() - std::chrono::hours(1000));
  EXPECT_EQ(Settle(source), Change::kNew);
  EXPECT_EQ(source.current()->version(), before + 1);
}

TEST_F(CatalogSourceTest, SecretsInFilesAreReadAgainNowAndThen) {
  Write("first", "key");
  Write(Bent("api_key: secret", "api_key: ${file:key}"));
  CatalogSource source(path(), "tollgate");
  ASSERT_TRUE(source.Load());
  EXPECT_EQ(source.current()->pools(0).engines(1).api_key(), "first");
  Write("second", "key");
  bool changed = false;
  for (int i = 0; i < 41 && !changed; ++i) changed = source.Poll(complaints_) == Change::kNew;
  EXPECT_TRUE(changed);
  EXPECT_EQ(source.current()->pools(0).engines(1).api_key(), "second");
}

}  // namespace
}  // namespace tollgate::catalog
