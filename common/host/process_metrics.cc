#include "common/host/process_metrics.h"

#include <dirent.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <ctime>

#include "common/host/descriptors.h"
#include "common/json/writer.h"
#include "common/observability/metrics.h"

namespace tollgate::host {
namespace {

double CpuSeconds() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

double ResidentBytes() {
  FILE* file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr) return 0;
  long total = 0;
  long resident = 0;
  int fields = std::fscanf(file, "%ld %ld", &total, &resident);
  std::fclose(file);
  return fields == 2 ? static_cast<double>(resident) * static_cast<double>(sysconf(_SC_PAGESIZE))
                     : 0;
}

double OpenDescriptors() {
  DIR* directory = opendir("/proc/self/fd");
  if (directory == nullptr) return 0;
  int count = 0;
  while (readdir(directory) != nullptr) ++count;
  closedir(directory);
  return count - 3;  // ".", ".." and the directory itself
}

}  // namespace

void RegisterProcessMetrics(std::string_view process_name) {
  metrics::Gauge("tollgate_build_info", "Constant 1, labelled with what was built.",
                 {{"process", std::string(process_name)}, {"version", TOLLGATE_VERSION}})
      .Set(1);
  metrics::Gauge("process_start_time_seconds", "Start of the process, Unix time in seconds.")
      .Set(static_cast<double>(std::time(nullptr)));
  metrics::Gauge("process_max_fds", "Most open file descriptors.")
      .Set(static_cast<double>(DescriptorLimit()));
}

void UpdateProcessMetrics() {
  // The standard names of Prometheus client libraries.
  static auto& cpu = metrics::Counter("process_cpu_seconds_total", "CPU time used, in seconds.");
  static auto& resident =
      metrics::Gauge("process_resident_memory_bytes", "Resident memory, in bytes.");
  static auto& descriptors = metrics::Gauge("process_open_fds", "Open file descriptors.");
  cpu.Increment(std::max(0.0, CpuSeconds() - cpu.Value()));  // scrapes may overlap
  resident.Set(ResidentBytes());
  descriptors.Set(OpenDescriptors());
}

std::string BuildInformationJson(std::string_view process_name) {
  return json::Writer()
      .Text("name", process_name)
      .Text("version", TOLLGATE_VERSION)
      .Text("compiler", __VERSION__)
      .Done();
}

}  // namespace tollgate::host
