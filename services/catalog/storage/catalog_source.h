// The catalog file on disk and the last good snapshot of it. A file that breaks a rule changes
// nothing: the last good snapshot stays. spec: reliability.md section 2, "Dependency lost".
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "services/catalog/domain/catalog_rules.h"

namespace tollgate::catalog {

class CatalogSource {
 public:
  using SnapshotPtr = std::shared_ptr<const v1::Snapshot>;

  CatalogSource(std::string path, std::string brand)
      : path_(std::move(path)), brand_(std::move(brand)) {}

  // Reads the file now. Fails with the complaints; the last good snapshot stays.
  BasicResult<SnapshotPtr, Complaints> Load();

  enum class Change { kNone, kNew, kBad };
  // Call a few times a second. A changed file is read once it has rested for a whole period, so
  // that one that is still being written is not. Every fortieth call reads in any case: the secrets
  // that the file refers to may have changed. kBad is reported once per change, with its
  // complaints.
  Change Poll(Complaints& complaints);

  // The last good one; null before the first. One thread at a time may use this class; what it
  // hands out may go anywhere.
  const SnapshotPtr& current() const { return current_; }

 private:
  // What tells one state of the file from another without reading it.
  struct Signature {
    int64_t modified_ns = 0;
    int64_t size = -1;  // -1: no file
    uint64_t inode = 0;
    friend bool operator==(const Signature&, const Signature&) = default;
  };
  Signature Look() const;

  const std::string path_;
  const std::string brand_;
  SnapshotPtr current_;
  Signature loaded_;
  Signature seen_;
  Complaints reported_;
  int polls_ = 0;
};

}  // namespace tollgate::catalog
