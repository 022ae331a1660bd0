#include "services/inference_router/choice/engine_state.h"

#include <algorithm>

namespace tollgate::inference_router {
namespace {

constexpr int64_t kFirstRestUs = 1'000'000;
constexpr int64_t kLongestRestUs = 15'000'000;

bool IsPort(std::string_view text) {
  if (text.empty() || text.size() > 5) return false;
  int value = 0;
  for (char c : text) {
    if (c < '0' || c > '9') return false;
    value = value * 10 + (c - '0');
  }
  return value > 0 && value < 65536;
}

}  // namespace

std::optional<EngineAddress> ParseBaseUrl(std::string_view url) {
  EngineAddress address;
  if (url.starts_with("http://")) {
    url.remove_prefix(7);
  } else if (url.starts_with("https://")) {
    url.remove_prefix(8);
    address.tls = true;
  } else {
    return std::nullopt;
  }
  const size_t slash = url.find('/');
  std::string_view authority = url.substr(0, slash);
  if (slash != std::string_view::npos) {
    std::string_view prefix = url.substr(slash);
    while (!prefix.empty() && prefix.back() == '/') prefix.remove_suffix(1);
    if (prefix.find_first_of(" ?#\r\n") != std::string_view::npos) return std::nullopt;
    address.path_prefix = prefix;
  }
  std::string_view port = address.tls ? "443" : "80";
  if (authority.starts_with("[")) {
    const size_t close = authority.find(']');
    if (close == std::string_view::npos) return std::nullopt;
    address.host = authority.substr(1, close - 1);
    authority.remove_prefix(close + 1);
    if (authority.starts_with(":")) port = authority.substr(1);
  } else {
    const size_t colon = authority.rfind(':');
    address.host = authority.substr(0, colon);
    if (colon != std::string_view::npos) port = authority.substr(colon + 1);
  }
  if (address.host.empty() || address.host.find_first_of(" @\r\n") != std::string::npos ||
      !IsPort(port)) {
    return std::nullopt;
  }
  address.port = port;
  return address;
}

EngineState::EngineState(catalog::v1::Engine engine, EngineAddress address)
    : engine_(std::move(engine)), address_(std::move(address)) {}

bool EngineState::TryEnter() {
  const int64_t most = engine_.max_concurrency();
  int64_t running = running_.load(std::memory_order_relaxed);
  do {
    if (most > 0 && running >= most) return false;
  } while (!running_.compare_exchange_weak(running, running + 1, std::memory_order_relaxed));
  return true;
}

bool EngineState::Available(int64_t now_us) const {
  return !down_.load(std::memory_order_relaxed) &&
         rests_until_us_.load(std::memory_order_relaxed) <= now_us;
}

int64_t EngineState::RetryAfterMs(int64_t now_us) const {
  const int64_t left_us = rests_until_us_.load(std::memory_order_relaxed) - now_us;
  return std::clamp<int64_t>(left_us / 1000, 1000, kLongestRestUs / 1000);
}

void EngineState::OnConnectFailure(int64_t now_us) {
  const int failures = std::min(connect_failures_.fetch_add(1, std::memory_order_relaxed), 10);
  const int64_t rest = std::min(kFirstRestUs << failures, kLongestRestUs);
  rests_until_us_.store(now_us + rest, std::memory_order_relaxed);
}

void EngineState::OnSuccess() {
  connect_failures_.store(0, std::memory_order_relaxed);
  health_failures_.store(0, std::memory_order_relaxed);
  rests_until_us_.store(0, std::memory_order_relaxed);
  down_.store(false, std::memory_order_relaxed);
}

void EngineState::OnHealthFailure(bool definite) {
  const int failures = health_failures_.fetch_add(1, std::memory_order_relaxed) + 1;
  if (definite || failures >= 2) down_.store(true, std::memory_order_relaxed);
}

}  // namespace tollgate::inference_router
