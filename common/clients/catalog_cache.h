// The catalog's stream with an on-disk cache of the last snapshot: a process that starts while the
// catalog is unreachable serves from the cache (docs/design/limits.md 8). The cache does not
// expire.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "common/clients/clients.h"
#include "common/runtime/loop.h"

namespace tollgate {

struct CatalogCache {
  // Empty: no cache.
  std::string file;
  // Whether to request and cache engines with their API keys. Only for processes that call engines.
  bool with_engines = false;
  // An older catalog than the one in use is accepted after this many milliseconds without a newer
  // one, so that the catalog does not flip between replicas whose files differ for a while.
  int64_t older_after_ms = 60'000;
};

// Like CatalogClient::WatchCatalog, but delivers the cached snapshot first, before it returns, and
// writes each received snapshot to the file. File errors are only logged. A snapshot that a
// reopened stream repeats is not delivered again. loop: the client's.
std::unique_ptr<Subscription> WatchCatalogCached(
    Loop& loop, CatalogClient& client, CatalogCache cache,
    WatchHandler<catalog::v1::WatchCatalogResponse> handler);

// Writes the file atomically (temporary file and rename), with permissions for its owner only.
Result<void> StoreCatalog(const std::string& file, const catalog::v1::Snapshot& snapshot);
// nullopt if the file is missing or damaged.
std::optional<catalog::v1::Snapshot> LoadCatalog(const std::string& file);

}  // namespace tollgate
