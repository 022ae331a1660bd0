// The filter of live keys that gateways get (ADR 0013): read from the database page by page,
// then kept by the changes. Used by one thread.
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
    // A filter is planned for a quarter more keys than there are, and for at least this many.
    size_t min_keys = 16'384;
    int page_size = 10'000;
    // Per ReadOn: each about 100 ms, so that a large database does not delay the changes.
    int pages = 5;
    size_t elements = 500'000;
  };
  LiveKeys(AuthStore& store, Options options);

  // Drops the filter and reads all keys again. Call it before the first change to Add.
  void Restart();
  // A key that was created or changed.
  void Add(const v1::KeyChange& change);
  // Reads the next pages, if any are left. After the last one the filter is complete: it contains
  // every live key of the database as it was at Restart, and those added since. Reads all again
  // when more keys were added than it was planned for.
  Result<void> ReadOn();

  // Null until it is complete.
  const std::shared_ptr<KeyFilter>& filter() const { return filter_; }
  // Whether some of its keys are in it by their public id, since they have no tag.
  bool has_untagged() const { return has_untagged_; }
  // Counts the filters that were completed.
  int64_t generation() const { return generation_; }

 private:
  void BeginReading();
  Result<void> ReadPages();
  // Adds what was read to the new filter.
  void Build();
  void Read(uint64_t element, bool is_tagged);
  void Complete();

  AuthStore& store_;
  const Options options_;
  prometheus::Gauge& bytes_;
  std::shared_ptr<KeyFilter> filter_;
  int64_t generation_ = 0;
  // Keys in the filter, at most; and those it was planned for.
  size_t count_ = 0;
  size_t planned_ = 0;

  bool has_untagged_ = false;

  // From BeginReading until the filter is complete.
  bool reading_ = false;
  bool has_read_all_ = false;
  // The last id that was read, and the elements of all keys so far.
  std::string cursor_;
  std::vector<uint64_t> elements_;
  bool read_untagged_ = false;
  // Null until all were read. It has the first built_ elements.
  std::shared_ptr<KeyFilter> next_;
  size_t built_ = 0;
  size_t planned_of_next_ = 0;
};

}  // namespace tollgate::auth
