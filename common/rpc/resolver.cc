#include "common/rpc/resolver.h"

#include <arpa/inet.h>
#include <netdb.h>

#include <chrono>
#include <map>
#include <mutex>
#include <sstream>
#include <thread>
#include <utility>

#include "common/base/sort_unique.h"

namespace tollgate::rpc {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kMaxAge{3};

}  // namespace

std::vector<std::string> LookUpAddresses(const std::string& part) {
  const size_t colon = part.rfind(':');
  if (colon == std::string::npos) return {};
  const std::string host = part.substr(0, colon);
  const std::string port = part.substr(colon + 1);
  addrinfo hints{};
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (getaddrinfo(host.c_str(), port.c_str(), &hints, &found) != 0) return {};
  std::vector<std::string> v4, v6;
  for (addrinfo* at = found; at != nullptr; at = at->ai_next) {
    char text[INET6_ADDRSTRLEN];
    if (at->ai_family == AF_INET) {
      const auto* address = reinterpret_cast<sockaddr_in*>(at->ai_addr);
      inet_ntop(AF_INET, &address->sin_addr, text, sizeof text);
      v4.push_back(std::string(text) + ":" + port);
    } else if (at->ai_family == AF_INET6) {
      const auto* address = reinterpret_cast<sockaddr_in6*>(at->ai_addr);
      inet_ntop(AF_INET6, &address->sin6_addr, text, sizeof text);
      v6.push_back("[" + std::string(text) + "]:" + port);
    }
  }
  freeaddrinfo(found);
  // A host with both families is listed once.
  return v4.empty() ? v6 : v4;
}

std::vector<std::string> SplitTargets(const std::string& target) {
  std::vector<std::string> parts;
  std::stringstream stream(target);
  for (std::string part; std::getline(stream, part, ',');) {
    const size_t begin = part.find_first_not_of(' ');
    if (begin == std::string::npos) continue;
    parts.push_back(part.substr(begin, part.find_last_not_of(' ') - begin + 1));
  }
  return parts;
}

bool IsName(const std::string& part) {
  const size_t colon = part.rfind(':');
  if (colon == std::string::npos || colon == 0 || colon + 1 == part.size()) return false;
  const std::string host = part.substr(0, colon);
  in_addr address{};
  return host.find_first_of(":/[") == std::string::npos && host != "unix" &&
         inet_pton(AF_INET, host.c_str(), &address) != 1;
}

struct Resolver::State {
  explicit State(LookUp look_up) : look_up(std::move(look_up)) {}

  struct Entry {
    std::vector<std::string> addresses;
    Clock::time_point asked;
    bool running = false;
    bool known = false;
  };
  const LookUp look_up;
  std::mutex mutex;
  std::map<std::string, Entry> entries;
};

Resolver::Resolver(LookUp look_up) : state_(std::make_shared<State>(std::move(look_up))) {}
Resolver::~Resolver() = default;

std::vector<std::string> Resolver::AddressesOf(const std::string& part) {
  std::lock_guard lock(state_->mutex);
  State::Entry& entry = state_->entries[part];
  if (!entry.running && (!entry.known || Clock::now() - entry.asked >= kMaxAge)) {
    entry.running = true;
    // getaddrinfo has no timeout, so the thread is never joined.
    std::thread([state = state_, part] {
      std::vector<std::string> addresses = state->look_up(part);
      std::lock_guard lock(state->mutex);
      State::Entry& entry = state->entries[part];
      entry.running = false;
      entry.known = true;
      entry.asked = Clock::now();
      if (!addresses.empty()) entry.addresses = std::move(addresses);
    }).detach();
  }
  return entry.addresses;
}

std::vector<std::string> Resolver::AddressesOfAll(const std::vector<std::string>& parts) {
  std::vector<std::string> addresses;
  for (const std::string& part : parts) {
    const auto found = IsName(part) ? AddressesOf(part) : std::vector<std::string>();
    if (found.empty()) addresses.push_back(part);
    addresses.insert(addresses.end(), found.begin(), found.end());
  }
  SortUnique(addresses);
  return addresses;
}

}  // namespace tollgate::rpc
