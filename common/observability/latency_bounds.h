// Upper bounds of histograms of model latencies, in seconds.
#pragma once

#include <vector>

namespace tollgate::metrics {

// For whole answers, from 10 ms to an hour.
inline const std::vector<double>& AnswerBounds() {
  static const auto* bounds = new std::vector<double>{
      0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 20, 30, 60, 120, 300, 600, 1200, 3600};
  return *bounds;
}

// Time to the first token, from 1 ms to 5 min.
inline const std::vector<double>& FirstTokenBounds() {
  static const auto* bounds =
      new std::vector<double>{1e-3, 2e-3, 5e-3, 10e-3, 20e-3, 50e-3, 0.1, 0.2, 0.3, 0.5,
                              0.75, 1,    2,    5,     10,    20,    30,  60,  120, 300};
  return *bounds;
}

}  // namespace tollgate::metrics
