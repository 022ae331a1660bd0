// Watches the catalog file and keeps the last valid snapshot of it. An invalid file is reported and
// ignored. Not thread-safe, but the snapshots may be shared between threads.
// See docs/design/limits.md 8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "services/catalog/domain/catalog_rules.h"

namespace tollgate::catalog {

// The largest catalog, in bytes as protobuf: watchers get it in one message of at most 4 MiB
// (rpc::kMaxMessageBytes).
inline constexpr size_t kMaxSnapshotBytes = (4 << 20) - (64 << 10);

class CatalogSource {
 public:
  using SnapshotPtr = std::shared_ptr<const v1::Snapshot>;

  CatalogSource(std::string path, std::string brand)
      : path_(std::move(path)), brand_(std::move(brand)) {}

  // Reads the file now. On failure current() stays.
  BasicResult<SnapshotPtr, Problems> Load();

  enum class Change { kNone, kNew, kInvalid };
  // Call a few times a second. A changed file is read when it was the same for two calls in a row:
  // it may still be written until then. Every 40th call reads it in any case, since the secrets
  // that it refers to may have changed. kInvalid is returned once per change, with its problems.
  Change Poll(Problems& problems);

  // What is wrong with the file as it was read last; empty: nothing.
  const Problems& refused() const { return reported_; }

  // The last valid snapshot; null before the first.
  const SnapshotPtr& current() const { return current_; }

 private:
  // Detects a change of the file without reading it.
  struct Signature {
    int64_t modified_ns = 0;
    int64_t size = -1;  // -1: no file
    uint64_t inode = 0;
    friend bool operator==(const Signature&, const Signature&) = default;
  };
  Signature ReadSignature() const;

  const std::string path_;
  const std::string brand_;
  SnapshotPtr current_;
  Signature loaded_;
  Signature seen_;
  Problems reported_;
  int polls_ = 0;
};

}  // namespace tollgate::catalog
