#include <sys/resource.h>
#include <sys/statvfs.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <fstream>
#include <map>

#include "common/http/http_call.h"
#include "services/cli/doctor/probe.h"

namespace tollgate::cli {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kDefaultEdgeConnections = 20'000;
// Backlog that the gateway requests from the kernel (listen).
constexpr int64_t kBacklog = 4096;
// Thresholds of the alerts DiskFull and DiskFills.
constexpr int64_t kFullPercent = 5, kFillingPercent = 15;

// Value of a metric without labels; -1 if it does not exist.
int64_t MetricOf(const std::string& text, const std::string& name) {
  size_t at = text.starts_with(name + " ") ? 0 : text.find("\n" + name + " ");
  if (at == std::string::npos) return -1;
  at = text.find(' ', at) + 1;
  double value = -1;
  std::from_chars(text.data() + at, text.data() + text.size(), value);
  return static_cast<int64_t>(value);
}

// A metric of the process with this configuration on this machine; -1 if it does not answer.
int64_t AskProcess(const ServiceConfig& service, const std::string& metric, int timeout_ms) {
  const auto& host = service.config.host();
  const std::string ops = host.ops_listen().empty() ? host.admin_listen() : host.ops_listen();
  if (ops.empty() || ops.ends_with(":0")) return -1;
  http::HttpCall call;
  call.url = "http://" + CalledFromHere(ops) + "/metrics";
  call.timeout_ms = timeout_ms / 2;
  call.connect_timeout_ms = timeout_ms / 2;
  const http::HttpAnswer answer = http::Send(call);
  return answer.status == 200 ? MetricOf(answer.body, metric) : -1;
}

// Number that docs/operations.md, Connections and file descriptors, requires.
int64_t DescriptorsFor(const ServiceConfig& service) {
  const auto& gateway = service.config.gateway();
  const int64_t connections =
      gateway.max_connections() > 0 ? gateway.max_connections() : kDefaultEdgeConnections;
  int64_t needed = std::max(connections * 8 / 7 + 1, connections + 256);
  if (service.service == "allinone") needed *= 2;
  return needed;
}

Findings LookAtDescriptors(const ServiceConfig& service, int timeout_ms) {
  const std::string subject = service.path + " open files";
  const int64_t needed = DescriptorsFor(service);
  int64_t limit = AskProcess(service, "process_max_fds", timeout_ms);
  std::string whose = "the process may open ";
  if (limit < 0) {
    rlimit own{};
    ::getrlimit(RLIMIT_NOFILE, &own);
    limit = static_cast<int64_t>(std::min<rlim_t>(own.rlim_max, INT64_MAX));
    whose = "the process does not answer here; this session may open ";
  }
  const std::string text = whose + std::to_string(limit) + ", " + std::to_string(needed) +
                           " are needed for its max_connections";
  if (limit >= needed) return {Ok(subject, text)};
  return {Warning(subject, text,
                  "LimitNOFILE=" + std::to_string(needed) +
                      " in its systemd unit, or ulimits of its container; else it takes fewer "
                      "connections")};
}

// Whether a proxy stands in front whose X-Forwarded-For is ignored.
Findings LookAtProxies(const ServiceConfig& service, int timeout_ms) {
  const std::string subject = service.path + " trusted_proxies";
  const int64_t ignored = AskProcess(service, "tollgate_http_untrusted_forwards_total", timeout_ms);
  if (ignored < 0) return {Skipped(subject, "the process does not answer here")};
  if (ignored == 0) return {Ok(subject, "no request came through a proxy that is not listed")};
  return {Warning(subject,
                  std::to_string(ignored) +
                      " requests had X-Forwarded-For and came from an address that is not listed: "
                      "if it is your proxy, all clients behind it count as one address",
                  "list the address that the log names in gateway.trusted_proxies or "
                  "dashboard.trusted_proxies")};
}

int64_t KernelNumber(const std::string& path) {
  std::ifstream file(path);
  int64_t number = -1;
  file >> number;
  return file ? number : -1;
}

Findings LookAtKernel() {
  Findings findings;
  const int64_t queue = KernelNumber("/proc/sys/net/core/somaxconn");
  if (queue >= 0 && queue < kBacklog) {
    findings.push_back(Warning("net.core.somaxconn",
                               "is " + std::to_string(queue) +
                                   ": of a burst of new connections, those beyond it wait a second "
                                   "or are refused",
                               "sysctl -w net.core.somaxconn=4096, and the same in /etc/sysctl.d"));
  } else if (queue >= 0) {
    findings.push_back(Ok("net.core.somaxconn", "is " + std::to_string(queue)));
  }
  const int64_t files = KernelNumber("/proc/sys/fs/file-max");
  if (files >= 0 && files < 100'000) {
    findings.push_back(Warning("fs.file-max", "is " + std::to_string(files),
                               "sysctl -w fs.file-max=1000000, and the same in /etc/sysctl.d"));
  }
  if (findings.empty()) findings.push_back(Skipped("kernel", "its settings cannot be read here"));
  return findings;
}

Findings LookAtDisk(const std::string& subject, const std::string& path) {
  // Uses the nearest existing parent folder.
  fs::path folder = fs::absolute(path);
  while (!folder.empty() && !fs::is_directory(folder) && folder.has_relative_path()) {
    folder = folder.parent_path();
  }
  struct statvfs system{};
  if (::statvfs(folder.c_str(), &system) != 0 || system.f_blocks == 0) {
    return {Skipped(subject, "the file system of " + path + " cannot be checked here")};
  }
  const auto block = static_cast<int64_t>(system.f_frsize);
  const int64_t free = static_cast<int64_t>(system.f_bavail) * block;
  const int64_t size = static_cast<int64_t>(system.f_blocks) * block;
  const std::string text = Bytes(free) + " of " + Bytes(size) + " are free";
  if (system.f_files > 0 && system.f_favail * 100 < system.f_files * kFullPercent) {
    return {Failure(subject, "the file system has almost no inodes left",
                    "remove files that are not Tollgate's, or move the folder")};
  }
  const char* advice =
      "make room or move the folder: while settlements cannot be written, answers "
      "fail at their end (docs/runbooks/DiskFull.md)";
  if (free * 100 < size * kFullPercent) return {Failure(subject, text, advice)};
  if (free * 100 < size * kFillingPercent) return {Warning(subject, text, advice)};
  return {Ok(subject, text)};
}

}  // namespace

void AddMachineChecks(const Inventory& inventory, const DoctorOptions& options, Checks& checks) {
  if (inventory.services.empty()) return;
  bool has_gateway = false;
  const auto disk = [&](const std::string& subject, const std::string& path) {
    checks.push_back({"machine", subject, [=] { return LookAtDisk(subject, path); }});
  };
  const auto database = [&](const ServiceConfig& service, const char* name,
                            const std::string& url) {
    constexpr std::string_view kSqlite = "sqlite:";
    if (!url.starts_with(kSqlite)) return;
    disk(service.path + " " + name + ".sql", fs::path(url.substr(kSqlite.size())).parent_path());
  };
  for (const ServiceConfig& service : inventory.services) {
    const auto& config = service.config;
    if (config.has_gateway()) {
      has_gateway = true;
      checks.push_back({"machine", service.path, [service, timeout_ms = options.timeout_ms] {
                          return LookAtDescriptors(service, timeout_ms);
                        }});
    }
    if (config.has_gateway() || config.has_dashboard()) {
      checks.push_back({"machine", service.path, [service, timeout_ms = options.timeout_ms] {
                          return LookAtProxies(service, timeout_ms);
                        }});
    }
    database(service, "auth", config.auth().sql().url());
    database(service, "billing", config.billing().sql().url());
    if (config.has_router()) {
      const std::string& folder = config.router().data_dir();
      disk(service.path + " router.data_dir", folder.empty() ? "." : folder);
    }
  }
  if (has_gateway) checks.push_back({"machine", "kernel", LookAtKernel});
}

}  // namespace tollgate::cli
