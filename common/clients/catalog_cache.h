// The catalog's stream with an on-disk cache of the last snapshot: a process that starts while the
// catalog is unreachable serves from the cache (docs/design/limits.md 8). It does not expire.
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
  // Whether engines with their API keys are asked for, and written, too. Only for processes that
  // call engines.
  bool with_engines = false;
  // A catalog older than the one in use is taken after this many milliseconds without a newer one:
  // replicas of the catalog service whose files differ for a while must not take turns.
  int64_t older_after_ms = 60'000;
};

// Like CatalogClient::WatchCatalog, but delivers the cached snapshot first, before this returns,
// and writes each received snapshot to the file. Failures to read or write the file are logged
// only. What a stream repeats when it is opened again, at whichever replica, is not delivered
// twice. loop: that of the client.
std::unique_ptr<Subscription> WatchCatalogCached(
    Loop& loop, CatalogClient& client, CatalogCache cache,
    WatchHandler<catalog::v1::WatchCatalogResponse> handler);

// Writes the file atomically (temporary file and rename), with permissions for its owner only.
Result<void> StoreCatalog(const std::string& file, const catalog::v1::Snapshot& snapshot);
// Empty if the file is missing or damaged.
std::optional<catalog::v1::Snapshot> LoadCatalog(const std::string& file);

}  // namespace tollgate
