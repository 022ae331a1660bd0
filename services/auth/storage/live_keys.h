// The filter of live keys for gateways (ADR 0013). Reads all keys page by page, then follows the
// changes. Used by one thread.
#pragma once

#include <prometheus/gauge.h>

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/keys/key_filter.h"
#include "services/auth/storage/auth_store.h"

namespace tollgate::auth {

class LiveKeys {
 public:
  struct Options {
    // A filter has room for a quarter more keys than exist, and for at least this many.
    size_t min_keys = 16'384;
    int page_size = 10'000;
    // Work per ReadOn, about 100 ms each, so that a large database does not delay the changes.
    int pages = 5;
    size_t elements = 500'000;
  };
  LiveKeys(AuthStore& store, Options options);

  // Drops the filter and starts reading all keys. Call it before the first Add.
  void Restart();
  // Adds a key that was created or changed.
  void Add(const v1::KeyChange& change);
  // Reads the next pages, if any are left. After the last page the filter is complete: it contains
  // every live key as of Restart, and those added since. Starts again if more keys were added than
  // the filter has room for.
  Result<void> ReadOn();

  // Null until the filter is complete.
  const std::shared_ptr<KeyFilter>& filter() const { return filter_; }
  // Whether the filter holds some keys by their public id, because they have no tag.
  bool has_untagged() const { return has_untagged_; }
  // Number of filters completed so far.
  int64_t generation() const { return generation_; }

 private:
  void BeginReading();
  Result<void> ReadPages();
  // Adds the elements read so far to the new filter.
  void Build();
  void Read(uint64_t element, bool is_tagged);
  void Complete();

  AuthStore& store_;
  const Options options_;
  prometheus::Gauge& bytes_;
  std::shared_ptr<KeyFilter> filter_;
  int64_t generation_ = 0;
  // Upper bound of the keys in the filter, and its planned size.
  size_t count_ = 0;
  size_t planned_ = 0;

  bool has_untagged_ = false;

  // Set from BeginReading until the filter is complete.
  bool reading_ = false;
  bool has_read_all_ = false;
  // The last id read, and the elements of all keys so far.
  std::string cursor_;
  std::vector<uint64_t> elements_;
  bool read_untagged_ = false;
  // Null until all keys are read. Contains the first built_ elements.
  std::shared_ptr<KeyFilter> next_;
  size_t built_ = 0;
  size_t planned_of_next_ = 0;
};

}  // namespace tollgate::auth
