#include "services/inference_router/balancer/prefix_chain.h"

#include <algorithm>
#include <cstring>

namespace tollgate::inference_router {
namespace {

constexpr uint64_t kOdd[] = {0x9e3779b97f4a7c15, 0xc2b2ae3d27d4eb4f, 0x165667b19e3779f9,
                             0x85ebca77c2b2ae63};
// Points up to here have the same distance.
constexpr size_t kEvenBytes = 8192;

// Multiplies and folds the two halves of the product, so that each bit of the arguments affects all
// of the result.
uint64_t Fold(uint64_t a, uint64_t b) {
  const auto product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

uint64_t Load(const char* at) {
  uint64_t word;
  std::memcpy(&word, at, sizeof word);
  return word;
}

// size: a multiple of 64. Uses four lanes whose products do not depend on each other.
uint64_t HashBlock(uint64_t seed, const char* at, size_t size) {
  uint64_t lanes[4] = {seed ^ kOdd[0], seed ^ kOdd[1], seed ^ kOdd[2], seed ^ kOdd[3]};
  for (const char* end = at + size; at != end; at += 64) {
    for (int i = 0; i < 4; ++i) {
      lanes[i] = Fold(lanes[i] ^ Load(at + 16 * i), kOdd[i] ^ Load(at + 16 * i + 8)) + lanes[i];
    }
  }
  return Fold(Fold(lanes[0] ^ kOdd[1], lanes[1] ^ kOdd[2]) ^ size,
              Fold(lanes[2] ^ kOdd[3], lanes[3] ^ kOdd[0]) ^ kOdd[2]);
}

size_t NextPoint(size_t bytes) {
  if (bytes < kEvenBytes) return bytes + PrefixChain::kFirstBytes;
  return bytes + bytes / 8 / 64 * 64;
}

}  // namespace

uint64_t HashBytes(uint64_t seed, std::string_view bytes) {
  const size_t whole = bytes.size() / 64 * 64;
  char rest[64] = {};
  if (bytes.size() > whole) std::memcpy(rest, bytes.data() + whole, bytes.size() - whole);
  return HashBlock(HashBlock(seed, bytes.data(), whole) ^ bytes.size(), rest, sizeof rest);
}

std::string_view PromptBytes(std::string_view members) {
  constexpr size_t kLooked = 256;
  const std::string_view head = members.substr(0, kLooked);
  size_t begin = head.size();
  for (const std::string_view name : {R"("messages":)", R"("prompt":)", R"("input":)"}) {
    begin = std::min(begin, head.find(name));
  }
  return begin < head.size() ? members.substr(begin) : members;
}

PrefixChain::PrefixChain(uint64_t seed, std::string_view prompt)
    : bytes_(static_cast<int64_t>(prompt.size())) {
  const size_t end = std::min(prompt.size(), kMostBytes);
  uint64_t hash = seed;
  size_t from = 0;
  for (size_t to = kFirstBytes; to <= end && size_ < kMostPoints; to = NextPoint(to)) {
    hash = HashBlock(hash, prompt.data() + from, to - from);
    points_[size_++] = {hash, static_cast<int64_t>(to)};
    from = to;
  }
}

}  // namespace tollgate::inference_router
