// CPU time and memory of the measured processes, from /proc.
#include <time.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <sstream>

#include "tests/bench/load.h"

namespace tollgate::bench {
namespace {

std::string ReadFile(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
}

}  // namespace

int64_t NowUs() {
  timespec now{};
  clock_gettime(CLOCK_MONOTONIC, &now);
  return static_cast<int64_t>(now.tv_sec) * 1'000'000 + now.tv_nsec / 1000;
}

int64_t CpuUsOf(const std::vector<int>& pids) {
  int64_t ticks = 0;
  for (const int pid : pids) {
    const std::string stat = ReadFile("/proc/" + std::to_string(pid) + "/stat");
    const size_t name_end = stat.rfind(')');  // the name may contain any character
    if (name_end == std::string::npos) continue;
    std::istringstream fields(stat.substr(name_end + 2));
    std::string skipped;
    for (int i = 0; i < 11; ++i) fields >> skipped;
    int64_t user = 0;
    int64_t system = 0;
    fields >> user >> system;
    ticks += user + system;
  }
  return ticks * (1'000'000 / sysconf(_SC_CLK_TCK));
}

int64_t RssOf(const std::vector<int>& pids) {
  int64_t pages = 0;
  for (const int pid : pids) {
    std::istringstream fields(ReadFile("/proc/" + std::to_string(pid) + "/statm"));
    int64_t size = 0;
    int64_t resident = 0;
    fields >> size >> resident;
    pages += resident;
  }
  return pages * sysconf(_SC_PAGESIZE);
}

}  // namespace tollgate::bench
