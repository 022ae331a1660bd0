// Request bodies that arrive in pieces, until they are whole.
#pragma once

#include <atomic>
#include <cstdint>
#include <optional>
#include <string>
#include <unordered_map>

#include "common/error/error.h"
#include "common/observability/coarse_gauge.h"
#include "tollgate/inference/v1/inference.pb.h"

namespace tollgate::inference_router {

struct BodyLimits {
  // Of one request, in bytes.
  int64_t max_body_bytes;
  // Of all that are incomplete, on all links of the process, as announced; the last one may exceed
  // it. One more is refused.
  int64_t max_incomplete_bytes = 256 << 20;
};

// What the links of a process share.
struct BodyBudget {
  BodyLimits limits;
  std::atomic<int64_t> incomplete_bytes{0};
};

// Why a body of this size is not taken, if it is not.
std::optional<Error> RefuseBody(const BodyLimits& limits, int64_t body_bytes);

// The incomplete bodies of one link. Lives on its loop.
class IncomingBodies {
 public:
  explicit IncomingBodies(BodyBudget& budget);
  ~IncomingBodies() { Clear(); }

  // Announces a body. The error ends this request only.
  Result<void> Begin(uint64_t stream_id, inference::v1::StartInPieces start);
  bool Has(uint64_t stream_id) const { return bodies_.count(stream_id) > 0; }
  // Appends a piece; returns the whole request when it was the last one.
  Result<std::optional<inference::v1::GenerateRequest>> Add(uint64_t stream_id,
                                                            const std::string& piece);
  void Drop(uint64_t stream_id);
  void Clear();

 private:
  void Reserve(int64_t bytes);

  BodyBudget& budget_;
  metrics::CoarseGauge gauge_;
  std::unordered_map<uint64_t, inference::v1::StartInPieces> bodies_;
};

}  // namespace tollgate::inference_router
