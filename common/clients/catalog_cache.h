// The catalog's stream with a memory: the last good snapshot is kept on disk, so that a process
// that starts while the catalog is away serves what it served before (reliability.md section 2).
// It has no expiry.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "common/clients/clients.h"

namespace tollgate {

struct CatalogCache {
  // Empty: nothing is kept.
  std::string file;
  // Whether the engines, with their keys, are written too: only where they are used.
  bool with_engines = false;
};

// As CatalogClient::WatchCatalog. What the file holds comes first, before this returns; each
// snapshot that is pushed is written. A file that can not be read or written is logged and no
// obstacle.
std::unique_ptr<Subscription> WatchCatalogCached(
    CatalogClient& client, CatalogCache cache,
    WatchHandler<catalog::v1::WatchCatalogResponse> handler);

// The file alone. Written to a temporary file that then takes its place: a reader, and a crash,
// find the old or the new one whole. Readable by its owner only.
Result<void> StoreCatalog(const std::string& file, const catalog::v1::Snapshot& snapshot);
// None when there is no file, or not a whole one.
std::optional<catalog::v1::Snapshot> LoadCatalog(const std::string& file);

}  // namespace tollgate
