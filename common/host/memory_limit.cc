#include "common/host/memory_limit.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <sstream>

namespace tollgate::host {
namespace {

// Used if neither file can be read.
constexpr int64_t kUnknownMemoryBytes = int64_t{1} << 30;

std::string ReadAll(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// The number at the start of the text; -1: none ("max").
int64_t Number(std::string_view text) {
  int64_t number = -1;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), number);
  return parsed.ec == std::errc() ? number : -1;
}

int64_t MachineBytes(const std::string& root) {
  const std::string text = ReadAll(root + "/proc/meminfo");
  const size_t at = text.find("MemTotal:");
  if (at == std::string::npos) return kUnknownMemoryBytes;
  const size_t digits = text.find_first_of("0123456789", at);
  if (digits == std::string::npos) return kUnknownMemoryBytes;
  const int64_t kib = Number(std::string_view(text).substr(digits));
  return kib > 0 ? kib * 1024 : kUnknownMemoryBytes;
}

// The lowest limit of a group and its ancestors. In a container the path of /proc/self/cgroup may
// be the host's and not exist: then only the topmost folder exists.
int64_t LowestLimit(const std::string& mount, std::string group, const std::string& file,
                    int64_t lowest) {
  while (true) {
    const int64_t limit = Number(ReadAll(mount + group + "/" + file));
    if (limit > 0) lowest = std::min(lowest, limit);
    if (group.empty()) return lowest;
    group.resize(group.rfind('/') == std::string::npos ? 0 : group.rfind('/'));
  }
}

}  // namespace

int64_t AvailableMemoryBytes(const std::string& root) {
  int64_t lowest = MachineBytes(root);
  std::istringstream groups(ReadAll(root + "/proc/self/cgroup"));
  // "0::/path" is version 2, "4:memory:/path" version 1.
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':');
    const size_t second = first == std::string::npos ? first : line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    std::string group = line.substr(second + 1);
    if (group == "/") group.clear();
    if (controllers == ",,") {
      lowest = LowestLimit(root + "/sys/fs/cgroup", group, "memory.max", lowest);
    } else if (controllers.find(",memory,") != std::string::npos) {
      lowest = LowestLimit(root + "/sys/fs/cgroup/memory", group, "memory.limit_in_bytes", lowest);
    }
  }
  return lowest;
}

}  // namespace tollgate::host
