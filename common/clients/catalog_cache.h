// The catalog's stream with an on-disk cache of the last snapshot: a process that starts while the
// catalog is unreachable serves from the cache (docs/design/limits.md 8). It does not expire.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "common/clients/clients.h"

namespace tollgate {

struct CatalogCache {
  // Empty: no cache.
  std::string file;
  // Whether engines with their API keys are asked for, and written, too. Only for processes that
  // call engines.
  bool with_engines = false;
};

// Like CatalogClient::WatchCatalog, but delivers the cached snapshot first, before this returns,
// and writes each received snapshot to the file. Failures to read or write the file are logged
// only.
std::unique_ptr<Subscription> WatchCatalogCached(
    CatalogClient& client, CatalogCache cache,
    WatchHandler<catalog::v1::WatchCatalogResponse> handler);

// Writes the file atomically (temporary file and rename), with permissions for its owner only.
Result<void> StoreCatalog(const std::string& file, const catalog::v1::Snapshot& snapshot);
// Empty if the file is missing or damaged.
std::optional<catalog::v1::Snapshot> LoadCatalog(const std::string& file);

}  // namespace tollgate
