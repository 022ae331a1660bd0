// A Bloom filter of keys: a key that it lacks does not exist. Auth builds it, gateways refuse
// made-up keys with it (ADR 0013, H49). Its elements are tags, 64 bits of a keyed hash of the whole
// key, so that knowing a public id does not help; and public ids of the keys that auth has no tag
// of. Thread-safe: elements may be added while others look.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace tollgate {

// Names a tag key without telling it: the first 8 bytes of its SHA-256.
uint64_t FilterKeyId(std::string_view tag_key);

// The element of a key of which the SHA-256 digest is known. Never 0.
uint64_t KeyTag(std::string_view tag_key, std::string_view digest);
// The element of a key of which only the public id is known.
uint64_t KeyIdElement(std::string_view key_id);

class KeyFilter {
 public:
  // A filter that is filled as planned lets one of 15,000 other elements pass.
  static constexpr size_t kBitsPerKey = 20;
  static constexpr int kHashes = 14;
  // Bounds of what another process may ask for.
  static constexpr size_t kMaxBytes = size_t{256} << 20;
  static constexpr int kMaxHashes = 32;

  struct Shape {
    // Of the hash function. From a random generator, so that nobody can choose keys that pass.
    uint64_t seed = 0;
    size_t bytes = 0;  // a multiple of 8
    int hashes = kHashes;
    bool operator==(const Shape&) const = default;
  };
  // For this many keys.
  static Shape ShapeFor(size_t keys, uint64_t seed);
  // An empty filter; null for a shape out of bounds.
  static std::shared_ptr<KeyFilter> Make(const Shape& shape);

  const Shape& shape() const { return shape_; }
  void Add(uint64_t element);
  // False: the element was never added.
  bool MayContain(uint64_t element) const;

  // At most `count` bytes from the offset on.
  std::string Read(size_t offset, size_t count) const;
  // Adds the elements of the filter that was read. False: the bytes do not fit.
  bool Merge(size_t offset, std::string_view bytes);

 private:
  explicit KeyFilter(const Shape& shape);
  uint64_t HashOf(uint64_t element) const;
  // The bit of the i-th of the hashes.
  uint64_t BitOf(uint64_t hash, int i) const;

  const Shape shape_;
  const std::unique_ptr<std::atomic<uint64_t>[]> words_;
};

}  // namespace tollgate
