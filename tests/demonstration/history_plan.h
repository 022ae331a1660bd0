// Plans the requests of a demonstration's month: pure, and the same for the same seed and times.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "services/billing/domain/types.h"

namespace tollgate::demonstration {

// When a key is used. All times are UTC.
enum class Rhythm : uint8_t {
  kOffice,   // on working days, most of it between 8 and 18 h
  kAlways,   // day and night, more by day
  kNightly,  // every night between 2 and 4 h
};

// One key of the workspace, and the requests that its application makes.
struct PlannedKey {
  const char* name;
  const char* monthly_quota_usd;  // "": none
  Rhythm rhythm;
  billing::Surface surface;
  bool streamed;
  bool small_model;        // the cheaper one of the catalog
  int per_day;             // requests on a working day, about
  int64_t prompt_tokens;   // about
  int64_t output_tokens;   // about
  int cached_percent;      // of the prompt, about
  int reasoning_percent;   // of the output
  int first_day, end_day;  // days of the history; end_day: the key is disabled then; -1: never
};
const std::vector<PlannedKey>& Keys();

struct PlannedRequest {
  int64_t admitted_us = 0;
  int64_t closed_us = 0;
  int64_t first_token_us = 0;  // after the admission
  size_t key = 0;              // of Keys()
  int engine = 1;
  uint64_t random_high = 0, random_low = 0;  // of its id
  int64_t prompt_bound = 0, output_bound = 0;
  // kFailedBeforeOutput: the hold is voided, and the request is free.
  billing::Outcome outcome = billing::Outcome::kCompleted;
  billing::Usage usage;
};

// The requests from start_us to end_us by time of admission; all have ended at end_us. start_us is
// the first microsecond of the history's first day.
std::vector<PlannedRequest> PlanRequests(uint64_t seed, int64_t start_us, int64_t end_us);

}  // namespace tollgate::demonstration
