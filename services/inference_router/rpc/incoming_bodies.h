// Assembles request bodies that arrive in pieces.
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
  // Bytes of one request.
  int64_t max_body_bytes;
  // Announced bytes of all incomplete bodies on all links of the process. The last one may exceed
  // the limit; further ones are refused.
  int64_t max_incomplete_bytes = 256 << 20;
};

// Shared by the links of a process.
struct BodyBudget {
  BodyLimits limits;
  std::atomic<int64_t> incomplete_bytes{0};
};

// Returns an error if a body of this size is not accepted.
std::optional<Error> RefuseBody(const BodyLimits& limits, int64_t body_bytes);

// The incomplete bodies of one link. Lives on its loop.
class IncomingBodies {
 public:
  explicit IncomingBodies(BodyBudget& budget);
  ~IncomingBodies() { Clear(); }

  // Announces a body. An error ends only this request.
  Result<void> Begin(uint64_t stream_id, inference::v1::StartInPieces start);
  bool Has(uint64_t stream_id) const { return bodies_.count(stream_id) > 0; }
  // Appends a piece. Returns the whole request when it was the last piece.
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
