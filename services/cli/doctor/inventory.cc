#include "services/cli/doctor/inventory.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>

#include "common/base/ascii.h"
#include "common/config/config.h"
#include "common/config/substitute.h"
#include "common/rpc/tls.h"

namespace tollgate::cli {
namespace {

namespace fs = std::filesystem;
using config::v1::AllInOneConfig;
using Read = BasicResult<void, std::string>;

constexpr char kMend[] =
    "correct the line; tollgate-SERVICE --config FILE --check-config says the same, and "
    "proto/tollgate/config/v1/config.proto lists the fields";

// Top-level keys of a YAML file, which identify its program.
std::set<std::string> TopKeys(const std::string& text) {
  std::set<std::string> keys;
  for (size_t at = 0; at < text.size();) {
    const size_t end = std::min(text.find('\n', at), text.size());
    const std::string line = text.substr(at, end - at);
    const size_t colon = line.find(':');
    if (colon != std::string::npos && colon > 0 && IsLower(line[0])) {
      keys.insert(line.substr(0, colon));
    }
    at = end + 1;
  }
  return keys;
}

// The program that a configuration with these sections is for; empty: unknown.
std::string ServiceOf(const std::set<std::string>& keys) {
  constexpr std::pair<const char*, const char*> kSections[] = {
      {"gateway", "gateway"},    {"auth", "auth"},       {"ratelimit", "ratelimit"},
      {"catalog", "catalog"},    {"billing", "billing"}, {"router", "inference-router"},
      {"dashboard", "dashboard"}};
  std::string found;
  for (const auto& [section, service] : kSections) {
    if (!keys.contains(section)) continue;
    if (!found.empty()) return "allinone";
    found = service;
  }
  return found;
}

template <typename Config>
Read ReadStrictly(const std::string& path) {
  Config config;
  return config::LoadFile(path, config);
}

// Reads the file as its program does, which refuses sections of other programs.
Read ReadStrictly(const std::string& service, const std::string& path) {
  namespace pb = config::v1;
  if (service == "gateway") return ReadStrictly<pb::GatewayConfig>(path);
  if (service == "auth") return ReadStrictly<pb::AuthConfig>(path);
  if (service == "ratelimit") return ReadStrictly<pb::RateLimitConfig>(path);
  if (service == "catalog") return ReadStrictly<pb::CatalogConfig>(path);
  if (service == "billing") return ReadStrictly<pb::BillingConfig>(path);
  if (service == "inference-router") return ReadStrictly<pb::RouterConfig>(path);
  if (service == "dashboard") return ReadStrictly<pb::DashboardConfig>(path);
  return {};
}

class Reader {
 public:
  explicit Reader(Inventory& into) : into_(into) {}

  void ReadFile(const std::string& path) {
    std::error_code ignored;
    if (!read_.insert(fs::weakly_canonical(path, ignored).string()).second) return;
    const auto text = config::ReadWholeFile(path);
    if (!text) {
      Note(Failure(path, text.error(), "give a file that exists and that you may read"));
      return;
    }
    const std::set<std::string> keys = TopKeys(*text);
    if (keys.contains("models") || keys.contains("pools") || keys.contains("unlisted")) {
      ReadCatalog(path);
    } else {
      ReadService(path, ServiceOf(keys));
    }
  }

  void ReadFolder(const std::string& path) {
    std::vector<std::string> files;
    std::error_code failed;
    for (const auto& entry : fs::directory_iterator(path, failed)) {
      const std::string extension = entry.path().extension().string();
      if (extension == ".yaml" || extension == ".yml") files.push_back(entry.path().string());
    }
    std::ranges::sort(files);
    if (failed || files.empty()) {
      Note(Failure(path, failed ? "cannot be read: " + failed.message() : "has no *.yaml files",
                   "name the folder with the configuration of the services"));
    }
    for (const std::string& file : files) ReadFile(file);
  }

 private:
  void Note(Finding finding) { into_.reading.push_back(std::move(finding)); }
  // error: "FILE:LINE:COLUMN: what is wrong", or without a position.
  void NoteWrong(const std::string& path, const std::string& error) {
    const size_t text = error.find(": ", path.size());
    const bool placed = error.starts_with(path + ":") && text != std::string::npos;
    Note(Failure(placed ? error.substr(0, text) : path, placed ? error.substr(text + 2) : error,
                 kMend));
  }

  void ReadCatalog(const std::string& path) {
    CatalogConfig catalog{.path = path, .file = {}};
    if (const Read read = config::LoadFile(path, catalog.file); !read) {
      NoteWrong(path, read.error());
      return;
    }
    int engines = 0;
    for (const auto& pool : catalog.file.pools()) engines += pool.engines_size();
    Note(Ok(path, "a catalog of " + std::to_string(catalog.file.models_size()) + " models on " +
                      std::to_string(engines) + " engines, well-formed"));
    into_.catalogs.push_back(std::move(catalog));
  }

  void ReadService(const std::string& path, const std::string& service) {
    ServiceConfig found{.path = path, .service = service, .config = {}};
    // All sections are fields of the all-in-one's configuration.
    if (const Read read = config::LoadFile(path, found.config); !read) {
      NoteWrong(path, read.error());
      return;
    }
    if (service.empty()) {
      Note(Warning(path,
                   "has none of the sections gateway, auth, ratelimit, catalog, billing, "
                   "router, dashboard: its program is unknown",
                   "leave it out, or write the section of its service, even if it is empty"));
      return;
    }
    if (const Read read = ReadStrictly(service, path); !read) {
      NoteWrong(path, read.error());
      return;
    }
    Note(Ok(path, "the configuration of " + service + ", well-formed"));
    const std::string catalog = found.config.catalog().file();
    into_.services.push_back(std::move(found));
    if (!catalog.empty()) ReadFile(catalog);
  }

  Inventory& into_;
  std::set<std::string> read_;
};

}  // namespace

Inventory ReadInventory(const std::vector<std::string>& paths) {
  Inventory inventory;
  Reader reader(inventory);
  for (const std::string& path : paths) {
    if (fs::is_directory(path)) {
      reader.ReadFolder(path);
    } else {
      reader.ReadFile(path);
    }
  }
  return inventory;
}

std::string CalledFromHere(const std::string& listen) {
  for (const char* any : {"0.0.0.0:", "[::]:", "*:"}) {
    if (listen.starts_with(any)) return "127.0.0.1:" + listen.substr(std::string(any).size());
  }
  return listen;
}

std::vector<std::string> SplitAddresses(const std::string& addresses) {
  std::vector<std::string> parts;
  for (size_t at = 0; at < addresses.size();) {
    const size_t end = std::min(addresses.find(',', at), addresses.size());
    std::string part = addresses.substr(at, end - at);
    part.erase(0, part.find_first_not_of(' '));
    while (part.ends_with(' ')) part.pop_back();
    if (!part.empty()) parts.push_back(std::move(part));
    at = end + 1;
  }
  return parts;
}

bool UsesTls(const ServiceConfig& service) { return rpc::TlsIsOn(service.config.host().tls()); }

}  // namespace tollgate::cli
