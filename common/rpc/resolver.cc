#include "common/rpc/resolver.h"

#include <arpa/inet.h>

#include <chrono>
#include <map>
#include <mutex>
#include <sstream>
#include <utility>

#include "common/base/sort_unique.h"
#include "common/runtime/host_resolver.h"

namespace tollgate::rpc {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kMaxAge{3};

std::vector<std::string> WithPort(const HostResolver::Answer& answer, const std::string& port) {
  std::vector<std::string> v4, v6;
  for (const asio::ip::address& address : answer.addresses) {
    if (address.is_v4()) {
      v4.push_back(address.to_string() + ":" + port);
    } else {
      v6.push_back("[" + address.to_string() + "]:" + port);
    }
  }
  // A host with both families is listed once.
  return v4.empty() ? v6 : v4;
}

}  // namespace

LookUp SystemLookUp() {
  const auto hosts = std::make_shared<HostResolver>(HostResolver::System({}));
  return [hosts](const std::string& part, Found found) {
    const size_t colon = part.rfind(':');
    if (colon == std::string::npos) return found({});
    hosts->Ask(part.substr(0, colon), [port = part.substr(colon + 1), found = std::move(found)](
                                          const auto& answer) { found(WithPort(answer, port)); });
  };
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
  {
    std::lock_guard lock(state_->mutex);
    State::Entry& entry = state_->entries[part];
    const bool fresh = entry.known && Clock::now() - entry.asked < kMaxAge;
    if (entry.running || fresh) return entry.addresses;
    entry.running = true;
  }
  state_->look_up(part, [state = state_, part](std::vector<std::string> addresses) {
    std::lock_guard lock(state->mutex);
    State::Entry& entry = state->entries[part];
    entry.running = false;
    entry.known = true;
    entry.asked = Clock::now();
    if (!addresses.empty()) entry.addresses = std::move(addresses);
  });
  std::lock_guard lock(state_->mutex);
  return state_->entries[part].addresses;
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
