#include "common/clients/catalog_cache.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <utility>

#include "common/base/crypto.h"
#include "common/observability/log.h"

namespace tollgate {

namespace {

using catalog::v1::WatchCatalogResponse;

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

// Delivers the newest snapshot, whichever catalog replica sends it.
class Newest : public std::enable_shared_from_this<Newest> {
 public:
  Newest(Loop& loop, CatalogCache cache, std::function<void(WatchCatalogResponse)> on_message)
      : loop_(loop), cache_(std::move(cache)), on_message_(std::move(on_message)) {}
  ~Newest() { ForgetOlder(); }

  void DeliverCached() {
    if (cache_.file.empty()) return;
    auto kept = LoadCatalog(cache_.file);
    if (!kept) return;
    log::Info("using the cached catalog until the service is reachable",
              {{"file", cache_.file}, {"version", kept->version()}});
    version_ = kept->version();
    WatchCatalogResponse message;
    *message.mutable_snapshot() = std::move(*kept);
    on_message_(std::move(message));
  }

  void Take(WatchCatalogResponse message) {
    if (!message.has_snapshot()) return on_message_(std::move(message));
    const auto& snapshot = message.snapshot();
    if (!digest_.empty() && snapshot.digest() == digest_) return ForgetOlder();
    if (snapshot.version() >= version_) return Use(std::move(message));
    log::Warn("a catalog replica sent an older catalog than the one in use; check its file",
              {{"version", snapshot.version()}, {"in_use", version_}});
    older_ = std::move(message);
    if (timer_ != 0) return;
    timer_ = loop_.RunAfter(cache_.older_after_ms, [weak = weak_from_this()] {
      const auto self = weak.lock();
      if (!self) return;
      self->timer_ = 0;
      log::Warn("using the older catalog: no newer one was received",
                {{"version", self->older_.snapshot().version()}});
      self->Use(std::move(self->older_));
    });
  }

 private:
  void ForgetOlder() {
    if (timer_ != 0) loop_.CancelTimer(std::exchange(timer_, 0));
  }
  void Use(WatchCatalogResponse message) {
    ForgetOlder();
    version_ = message.snapshot().version();
    digest_ = message.snapshot().digest();
    // The file is written after the handler has run. Changes are rare, so blocking the loop is
    // acceptable.
    const catalog::v1::Snapshot snapshot = message.snapshot();
    on_message_(std::move(message));
    if (!cache_.file.empty()) Store(cache_, snapshot);
  }

  Loop& loop_;
  const CatalogCache cache_;
  const std::function<void(WatchCatalogResponse)> on_message_;
  int64_t version_ = 0;
  std::string digest_;  // of the last snapshot from a stream
  WatchCatalogResponse older_;
  Loop::TimerId timer_ = 0;
};

}  // namespace

Result<void> StoreCatalog(const std::string& file, const catalog::v1::Snapshot& snapshot) {
  const std::string content = snapshot.SerializeAsString();
  // The process id keeps processes that share a file by mistake from sharing the temporary file.
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

std::unique_ptr<Subscription> WatchCatalogCached(Loop& loop, CatalogClient& client,
                                                 CatalogCache cache,
                                                 WatchHandler<WatchCatalogResponse> handler) {
  const EngineKeys keys = cache.with_engines ? EngineKeys::kWith : EngineKeys::kWithout;
  const auto newest =
      std::make_shared<Newest>(loop, std::move(cache), std::move(handler.on_message));
  newest->DeliverCached();
  handler.on_message = [newest](WatchCatalogResponse message) { newest->Take(std::move(message)); };
  return client.WatchCatalog(keys, std::move(handler));
}

}  // namespace tollgate
