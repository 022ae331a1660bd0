// The load generator: one thread, epoll, HTTP/1.1 keep-alive connections that all send the same
// requests. Closed loop, open loop, or a number of streams that are held open.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "tests/bench/histogram.h"

namespace tollgate::bench {

enum class Mode {
  kClosed,   // every connection sends its next request after each response
  kOpen,     // requests start at a fixed rate, independent of responses
  kStreams,  // every connection keeps one long stream; starts are spread over the ramp
};

struct LoadOptions {
  Mode mode = Mode::kClosed;
  int port = 0;
  std::vector<std::string> requests;  // the exact bytes of each; sent in turn
  int connections = 32;               // closed, streams; open: the maximum at a time
  double rate = 100;                  // requests per second, open
  int64_t warmup_ms = 500;
  int64_t window_ms = 3000;  // the measurement window
  std::vector<int> pids;     // CPU time and memory are sampled at both ends of the window
};

struct LoadReport {
  double seconds = 0;
  int64_t requests = 0;  // completed within the window
  int64_t errors = 0;    // not 200, broken off, or a stream without its end
  int64_t late = 0;      // open loop: not started in time because no connection was free
  int64_t events = 0;    // stream events within the window
  int64_t bytes = 0;
  Histogram latency;        // whole request; open loop: from the time it was due
  Histogram first_token;    // until the first event with text
  Histogram gap;            // between two events of one stream
  int64_t cpu_us = 0;       // of all pids together within the window
  int64_t rss_before = 0;   // bytes, before the first connection
  int64_t rss_after = 0;    // at the window's end
  int64_t open_at_end = 0;  // responses in progress at the window's end
  std::string first_error;
};

LoadReport RunLoad(const LoadOptions& options);

// User and system time of all threads so far.
int64_t CpuUsOf(const std::vector<int>& pids);
int64_t RssOf(const std::vector<int>& pids);
int64_t NowUs();

}  // namespace tollgate::bench
