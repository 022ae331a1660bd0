#include "common/keys/key_filter.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "common/base/crypto.h"
#include "common/base/mix.h"

namespace tollgate {

namespace {

constexpr size_t kWordBytes = sizeof(uint64_t);
constexpr auto kRelaxed = std::memory_order_relaxed;
// Bit i of the filter is bit (i mod 8) of byte i / 8, on the wire and in the words.
static_assert(std::endian::native == std::endian::little);

}  // namespace

uint64_t FilterKeyId(std::string_view tag_key) {
  uint64_t id = 0;
  std::memcpy(&id, Sha256(std::string(tag_key)).data(), sizeof id);
  return id;
}

uint64_t KeyTag(std::string_view tag_key, std::string_view digest) {
  uint64_t tag = 0;
  for (const char byte : HmacSha256(tag_key, digest).substr(0, sizeof(tag))) {
    tag = tag << 8 | static_cast<uint8_t>(byte);
  }
  return std::max<uint64_t>(tag, 1);
}

uint64_t KeyIdElement(std::string_view key_id) {
  uint64_t hash = key_id.size();
  while (!key_id.empty()) {
    const size_t count = std::min(key_id.size(), kWordBytes);
    uint64_t block = 0;
    std::memcpy(&block, key_id.data(), count);
    hash = MixBits(hash ^ block);
    key_id.remove_prefix(count);
  }
  return hash;
}

KeyFilter::Shape KeyFilter::ShapeFor(size_t keys, uint64_t seed) {
  const size_t words = keys * kBitsPerKey / (8 * kWordBytes) + 1;
  return {.seed = seed, .bytes = std::min(words * kWordBytes, kMaxBytes)};
}

std::shared_ptr<KeyFilter> KeyFilter::Make(const Shape& shape) {
  if (shape.bytes == 0 || shape.bytes > kMaxBytes || shape.bytes % kWordBytes != 0 ||
      shape.hashes < 1 || shape.hashes > kMaxHashes) {
    return nullptr;
  }
  return std::shared_ptr<KeyFilter>(new KeyFilter(shape));
}

KeyFilter::KeyFilter(const Shape& shape)
    : shape_(shape), words_(std::make_unique<std::atomic<uint64_t>[]>(shape.bytes / kWordBytes)) {}

uint64_t KeyFilter::HashOf(uint64_t element) const {
  return MixBits(MixBits(element + shape_.seed) ^ shape_.seed);
}

uint64_t KeyFilter::BitOf(uint64_t hash, int i) const {
  // Double hashing; the upper bits of the product are uniform below the number of bits.
  const uint64_t step = MixBits(hash) | 1;
  const uint64_t point = hash + static_cast<uint64_t>(i) * step;
  const uint64_t bits = uint64_t{shape_.bytes} * 8;
  return static_cast<uint64_t>((static_cast<unsigned __int128>(point) * bits) >> 64);
}

void KeyFilter::Add(uint64_t element) {
  const uint64_t hash = HashOf(element);
  for (int i = 0; i < shape_.hashes; ++i) {
    const uint64_t bit = BitOf(hash, i);
    words_[bit / 64].fetch_or(uint64_t{1} << (bit % 64), kRelaxed);
  }
}

bool KeyFilter::MayContain(uint64_t element) const {
  const uint64_t hash = HashOf(element);
  for (int i = 0; i < shape_.hashes; ++i) {
    const uint64_t bit = BitOf(hash, i);
    if ((words_[bit / 64].load(kRelaxed) >> (bit % 64) & 1) == 0) return false;
  }
  return true;
}

std::string KeyFilter::Read(size_t offset, size_t count) const {
  offset = std::min(offset, shape_.bytes) / kWordBytes * kWordBytes;
  count = std::min(count, shape_.bytes - offset) / kWordBytes * kWordBytes;
  std::string bytes(count, '\0');
  for (size_t i = 0; i < count; i += kWordBytes) {
    const uint64_t word = words_[(offset + i) / kWordBytes].load(kRelaxed);
    std::memcpy(bytes.data() + i, &word, kWordBytes);
  }
  return bytes;
}

bool KeyFilter::Merge(size_t offset, std::string_view bytes) {
  if (offset % kWordBytes != 0 || bytes.size() % kWordBytes != 0 || offset > shape_.bytes ||
      bytes.size() > shape_.bytes - offset) {
    return false;
  }
  for (size_t i = 0; i < bytes.size(); i += kWordBytes) {
    uint64_t word = 0;
    std::memcpy(&word, bytes.data() + i, kWordBytes);
    words_[(offset + i) / kWordBytes].fetch_or(word, kRelaxed);
  }
  return true;
}

}  // namespace tollgate
