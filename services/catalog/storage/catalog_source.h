// Watches the catalog file and keeps its last valid snapshot. An invalid file is reported and
// ignored. Not thread-safe, but snapshots may be shared between threads. See docs/design/limits.md
// 8.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "services/catalog/domain/catalog_rules.h"

namespace tollgate::catalog {

// Largest catalog, in bytes as protobuf: watchers get it in one message of at most 4 MiB
// (rpc::kMaxMessageBytes).
inline constexpr size_t kMaxSnapshotBytes = (4 << 20) - (64 << 10);

class CatalogSource {
 public:
  using SnapshotPtr = std::shared_ptr<const v1::Snapshot>;

  CatalogSource(std::string path, std::string brand)
      : path_(std::move(path)), brand_(std::move(brand)) {}

  // Reads the file now. On failure current() does not change.
  BasicResult<SnapshotPtr, Problems> Load();

  enum class Change { kNone, kNew, kInvalid };
  // Call a few times a second. Reads a changed file once it is the same in two consecutive calls,
  // because it may still be written before that. Every 40th call reads it anyway: the secrets that
  // it refers to may have changed. Returns kInvalid once per change, with its problems.
  Change Poll(Problems& problems);

  // Problems of the file at the last read; empty: none.
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
