#include <cstring>
#include <random>

#include "common/base/crypto.h"
#include "common/http/server.h"

namespace tollgate::http {

bool IsWellFormedRequestId(std::string_view id) {
  if (id.empty() || id.size() > 128) return false;
  for (unsigned char c : id) {
    bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                c == '.' || c == '_' || c == '-';
    if (!good) return false;
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
  static constexpr char kDigits[] =
      "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  std::string id = "req_";
  for (int word = 0; word < 2; ++word) {
    uint64_t random = generator();
    for (int i = 0; i < 10; ++i) {
      id.push_back(kDigits[random % 62]);
      random /= 62;
    }
  }
  return id;
}

}  // namespace tollgate::http
