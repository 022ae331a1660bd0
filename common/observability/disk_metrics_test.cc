#include "common/observability/disk_metrics.h"

#include <gtest/gtest.h>

#include "common/observability/metrics.h"

namespace tollgate::metrics {
namespace {

double Free(const std::string& name) {
  return Gauge("tollgate_disk_free_bytes", "", {{"folder", name}}).Value();
}
double Size(const std::string& name) {
  return Gauge("tollgate_disk_size_bytes", "", {{"folder", name}}).Value();
}

TEST(DiskMetrics, TheFileSystemOfAFolderIsReported) {
  const auto held = ReportDisk("temporary", "/tmp");
  EXPECT_GT(Size("temporary"), 0);
  EXPECT_GT(Free("temporary"), 0);
  EXPECT_LE(Free("temporary"), Size("temporary"));
}

TEST(DiskMetrics, TheyAreCurrentAtEachScrapeWhileTheHandleIsHeld) {
  auto held = ReportDisk("scraped", "/tmp");
  auto& free = Gauge("tollgate_disk_free_bytes", "", {{"folder", "scraped"}});
  free.Set(-1);
  Render();
  EXPECT_GE(free.Value(), 0);
  held = nullptr;
  free.Set(-1);
  Render();
  EXPECT_EQ(free.Value(), -1);
}

TEST(DiskMetrics, ADatabaseOfSqliteIsAFileAndOthersAreElsewhere) {
  EXPECT_NE(ReportDatabaseDisk("file", "sqlite:/tmp/not-there-yet.db"), nullptr);
  EXPECT_GT(Size("file"), 0);
  EXPECT_EQ(ReportDatabaseDisk("server", "postgresql://db/billing"), nullptr);
}

}  // namespace
}  // namespace tollgate::metrics
