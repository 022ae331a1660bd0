#include "common/clients/catalog_cache.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "common/base/crypto.h"
#include "common/observability/log.h"

namespace tollgate {

namespace {

constexpr std::string_view kMagic = "tollgate-catalog 1\n";
constexpr size_t kDigestBytes = 32;

bool WriteAll(int file, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(file, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(count));
  }
  return true;
}

void Store(const CatalogCache& cache, const catalog::v1::Snapshot& snapshot) {
  Result<void> stored;
  if (cache.with_engines) {
    stored = StoreCatalog(cache.file, snapshot);
  } else {
    catalog::v1::Snapshot plain = snapshot;
    plain.clear_pools();
    stored = StoreCatalog(cache.file, plain);
  }
  if (!stored) log::Warn("catalog not cached on disk", {{"reason", stored.error().ToString()}});
}

}  // namespace

Result<void> StoreCatalog(const std::string& file, const catalog::v1::Snapshot& snapshot) {
  const std::string content = snapshot.SerializeAsString();
  // Processes that share a file by mistake do not share the temporary file.
  const std::string temporary = file + "." + std::to_string(::getpid()) + ".tmp";
  std::error_code ignored;
  const auto folder = std::filesystem::path(file).parent_path();
  if (!folder.empty()) std::filesystem::create_directories(folder, ignored);
  const int out = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
  if (out < 0) return Internal("cannot write " + temporary + ": " + std::strerror(errno));
  const bool written = WriteAll(out, kMagic) && WriteAll(out, Sha256(content)) &&
                       WriteAll(out, content) && ::fdatasync(out) == 0;
  const int reason = errno;
  ::close(out);
  if (!written || std::rename(temporary.c_str(), file.c_str()) != 0) {
    const int why = written ? errno : reason;
    ::unlink(temporary.c_str());
    return Internal("cannot write " + file + ": " + std::strerror(why));
  }
  return {};
}

std::optional<catalog::v1::Snapshot> LoadCatalog(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  if (!in) return std::nullopt;
  const std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  catalog::v1::Snapshot snapshot;
  const size_t head = kMagic.size() + kDigestBytes;
  if (!bytes.starts_with(kMagic) || bytes.size() < head ||
      Sha256(std::string_view(bytes).substr(head)) != bytes.substr(kMagic.size(), kDigestBytes) ||
      !snapshot.ParseFromString(bytes.substr(head))) {
    log::Warn("the cached catalog is damaged; ignoring it", {{"file", file}});
    return std::nullopt;
  }
  return snapshot;
}

std::unique_ptr<Subscription> WatchCatalogCached(
    CatalogClient& client, CatalogCache cache,
    WatchHandler<catalog::v1::WatchCatalogResponse> handler) {
  const EngineKeys keys = cache.with_engines ? EngineKeys::kWith : EngineKeys::kWithout;
  if (cache.file.empty()) return client.WatchCatalog(keys, std::move(handler));
  if (auto kept = LoadCatalog(cache.file)) {
    log::Info("using the cached catalog until the service is reachable",
              {{"file", cache.file}, {"version", kept->version()}});
    catalog::v1::WatchCatalogResponse message;
    *message.mutable_snapshot() = std::move(*kept);
    handler.on_message(std::move(message));
  }
  handler.on_message = [cache = std::move(cache), on_message = std::move(handler.on_message)](
                           catalog::v1::WatchCatalogResponse message) {
    // Written after the handler has run. Changes are rare, so blocking the loop is acceptable.
    const bool has_snapshot = message.has_snapshot();
    const catalog::v1::Snapshot snapshot =
        has_snapshot ? message.snapshot() : catalog::v1::Snapshot();
    on_message(std::move(message));
    if (has_snapshot) Store(cache, snapshot);
  };
  return client.WatchCatalog(keys, std::move(handler));
}

}  // namespace tollgate
