#include "common/observability/disk_metrics.h"

#include <sys/statvfs.h>

#include <string_view>

#include "common/observability/metrics.h"

namespace tollgate::metrics {

std::shared_ptr<void> ReportDisk(const std::string& name, const std::string& path) {
  auto& free = Gauge("tollgate_disk_free_bytes",
                     "Bytes that this process may still write where it keeps its files, by folder: "
                     "router, auth or billing.",
                     {{"folder", name}});
  auto& size = Gauge("tollgate_disk_size_bytes",
                     "Size of the file system of tollgate_disk_free_bytes.", {{"folder", name}});
  const auto update = [&free, &size, path] {
    struct statvfs disk{};
    if (statvfs(path.c_str(), &disk) != 0) return;
    const auto block = static_cast<double>(disk.f_frsize);
    free.Set(static_cast<double>(disk.f_bavail) * block);
    size.Set(static_cast<double>(disk.f_blocks) * block);
  };
  update();
  return BeforeRender(update);
}

std::shared_ptr<void> ReportDatabaseDisk(const std::string& name, const std::string& url) {
  constexpr std::string_view kPrefix = "sqlite:";
  if (!url.starts_with(kPrefix)) return nullptr;
  const std::string file = url.substr(kPrefix.size());
  // The file may not exist yet.
  const size_t slash = file.rfind('/');
  return ReportDisk(name, slash == std::string::npos ? "." : file.substr(0, slash + 1));
}

}  // namespace tollgate::metrics
