#include <cstring>
#include <random>

#include "common/base/ascii.h"
#include "common/base/crypto.h"
#include "common/http/server.h"

namespace tollgate::http {

bool IsWellFormedRequestId(std::string_view id) {
  if (id.empty() || id.size() > 128) return false;
  for (const char c : id) {
    if (!IsAlnum(c) && c != '.' && c != '_' && c != '-') return false;
  }
  return true;
}

// These ids are only for finding requests in logs: a generator that is seeded once per thread
// suffices.
std::string NewRequestId() {
  thread_local std::mt19937_64 generator = [] {
    uint64_t seed = 0;
    std::memcpy(&seed, RandomBytes(sizeof seed).data(), sizeof seed);
    return std::mt19937_64(seed);
  }();
  std::string id = "req_";
  for (int word = 0; word < 2; ++word) {
    uint64_t random = generator();
    for (int i = 0; i < 10; ++i) {
      id.push_back(kBase62[random % 62]);
      random /= 62;
    }
  }
  return id;
}

}  // namespace tollgate::http
