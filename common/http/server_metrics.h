// Metrics of a public server. All events here are rare, or are read only when metrics are scraped.
#pragma once

#include <prometheus/counter.h>
#include <prometheus/gauge.h>

#include <array>
#include <cstddef>
#include <cstdint>

namespace tollgate::http {

// Step at which something is refused or closed because memory is short (MemoryBudget::Level).
enum class ShedStep : uint8_t { kLargeBody, kRequest, kIdle, kBody };

// Why a connection was closed right after it was accepted.
enum class ConnectionRefusal : uint8_t { kFull, kAddress, kDescriptors };

// The part of a request in which a client was too slow.
enum class SlowPart : uint8_t { kHandshake, kHead, kBody, kReader };

struct ServerMetrics {
  ServerMetrics();
  prometheus::Counter& slow(SlowPart part) { return *slow_[static_cast<size_t>(part)]; }
  prometheus::Counter& refused(ConnectionRefusal reason) {
    return *refused_[static_cast<size_t>(reason)];
  }
  prometheus::Counter& shed(ShedStep step) { return *shed_[static_cast<size_t>(step)]; }

  prometheus::Gauge& memory_used;
  prometheus::Gauge& memory_limit;

  prometheus::Gauge& connections;
  prometheus::Gauge& idle_connections;
  prometheus::Gauge& connection_limit;
  prometheus::Counter& evicted;

 private:
  std::array<prometheus::Counter*, 4> slow_;
  std::array<prometheus::Counter*, 3> refused_;
  std::array<prometheus::Counter*, 4> shed_;
};

}  // namespace tollgate::http
