// Files that the processes write are accessible only by their own user: 0600 for files, 0700 for
// folders.
#include <sys/stat.h>

#include <filesystem>
#include <map>
#include <set>

#include "tests/integration/system_test.h"

namespace tollgate::test {
namespace {
namespace fs = std::filesystem;

class FilesTest : public ::testing::TestWithParam<bool> {};
INSTANTIATE_TEST_SUITE_P(Systems, FilesTest, ::testing::Bool(),
                         [](const auto& info) { return info.param ? "allinone" : "tcp"; });

std::set<std::string> Listed(const std::string& folder) {
  std::set<std::string> names;
  for (const auto& entry : fs::recursive_directory_iterator(folder)) names.insert(entry.path());
  return names;
}

mode_t ModeOf(const std::string& path) {
  struct stat info{};
  return stat(path.c_str(), &info) == 0 ? info.st_mode & 07777 : 0;
}

// Checks the files that were created since `before`.
void ExpectPrivate(const std::string& folder, const std::set<std::string>& before) {
  for (const std::string& path : Listed(folder)) {
    if (before.contains(path)) continue;
    EXPECT_EQ(ModeOf(path) & 077, 0u)
        << path << " is open to other users: " << std::oct << ModeOf(path);
  }
}

TEST_P(FilesTest, NothingThatIsWrittenIsOpenToOtherUsers) {
  const mode_t usual = umask(022);
  EngineSim engine{EngineSimOptions{}};
  std::string error;
  ASSERT_TRUE(engine.Start(&error)) << error;
  TempDir caches;
  ClusterOptions options;
  options.all_in_one = GetParam();
  options.catalog = DefaultCatalog({engine.base_url()});
  options.gateway_settings = {"catalog_cache_file: " + caches.path() + "/gateway/catalog"};
  options.router_settings = {"catalog_cache_file: " + caches.path() + "/router/catalog"};
  Cluster cluster(options);
  // Written by the test itself.
  std::set<std::string> of_test = Listed(cluster.dir());
  for (const std::string& name : cluster.process_names()) {
    of_test.insert(cluster.dir() + "/" + name + ".yaml");
    of_test.insert(cluster.dir() + "/" + name + ".metrics");
  }
  ASSERT_EQ(cluster.Start(), "");
  const ApiKey key = cluster.NewCustomer(kUsd);
  EXPECT_EQ(cluster.Post(key, kChat, ChatBody()).status, 200);
  const std::string catalogs[] = {caches.path() + "/gateway/catalog",
                                  caches.path() + "/router/catalog"};
  EXPECT_TRUE(
      WaitUntil([&] { return fs::exists(catalogs[0]) && fs::exists(catalogs[1]); }, 10'000));
  for (const char* file : {"auth.db", "billing.db", "billing.db-wal", "router/outbox"}) {
    EXPECT_TRUE(fs::exists(cluster.dir() + "/" + file)) << file;
  }
  ExpectPrivate(cluster.dir(), of_test);
  ExpectPrivate(caches.path(), {});

  // A database that an earlier version left readable by other users is made private at the next
  // start.
  EXPECT_EQ(cluster.StopOrderly(), "");
  const std::string database = cluster.dir() + "/auth.db";
  ASSERT_EQ(chmod(database.c_str(), 0644), 0);
  EXPECT_EQ(cluster.Start(), "");
  ExpectPrivate(cluster.dir(), of_test);
  EXPECT_EQ(cluster.StopOrderly(), "");
  umask(usual);
}

}  // namespace
}  // namespace tollgate::test
