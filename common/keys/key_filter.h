// A Bloom filter of keys: a key that is not in it does not exist. Auth builds it, and gateways use
// it to refuse made-up keys (ADR 0013, H49). Its elements are tags (64 bits of a keyed hash of the
// whole key, so that knowing a public id does not help), and public ids for the keys whose tag auth
// does not know. Thread-safe: elements may be added during look-ups.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace tollgate {

// Identifies a tag key without revealing it: the first 8 bytes of its SHA-256.
uint64_t FilterKeyId(std::string_view tag_key);

// The element for a key whose SHA-256 digest is known. Never 0.
uint64_t KeyTag(std::string_view tag_key, std::string_view digest);
// The element for a key of which only the public id is known.
uint64_t KeyIdElement(std::string_view key_id);

class KeyFilter {
 public:
  // If filled as planned, the filter passes one of 15,000 foreign elements.
  static constexpr size_t kBitsPerKey = 20;
  static constexpr int kHashes = 14;
  // Limits for shapes received from another process.
  static constexpr size_t kMaxBytes = size_t{256} << 20;
  static constexpr int kMaxHashes = 32;

  struct Shape {
    // Seed of the hash function. Random, so that an attacker cannot choose keys that pass.
    uint64_t seed = 0;
    size_t bytes = 0;  // a multiple of 8
    int hashes = kHashes;
    bool operator==(const Shape&) const = default;
  };
  // Shape of a filter for this many keys.
  static Shape ShapeFor(size_t keys, uint64_t seed);
  // An empty filter; null for a shape out of bounds.
  static std::shared_ptr<KeyFilter> Make(const Shape& shape);

  const Shape& shape() const { return shape_; }
  void Add(uint64_t element);
  // Returns false if the element was never added.
  bool MayContain(uint64_t element) const;

  // Returns up to `count` bytes from the offset on.
  std::string Read(size_t offset, size_t count) const;
  // Adds elements that Read returned. False if the bytes do not fit.
  bool Merge(size_t offset, std::string_view bytes);

 private:
  explicit KeyFilter(const Shape& shape);
  uint64_t HashOf(uint64_t element) const;
  // The bit for the i-th hash.
  uint64_t BitOf(uint64_t hash, int i) const;

  const Shape shape_;
  const std::unique_ptr<std::atomic<uint64_t>[]> words_;
};

}  // namespace tollgate
