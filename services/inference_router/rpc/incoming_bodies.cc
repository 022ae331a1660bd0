#include "services/inference_router/rpc/incoming_bodies.h"

#include <utility>

#include "common/observability/metrics.h"

namespace tollgate::inference_router {

using inference::v1::GenerateRequest;
using inference::v1::StartInPieces;

std::optional<Error> RefuseBody(const BodyLimits& limits, int64_t body_bytes) {
  if (body_bytes <= limits.max_body_bytes) return std::nullopt;
  return Error{.id = ErrorId::kRequestTooLarge,
               .internal = "a body of " + std::to_string(body_bytes) +
                           " bytes is above router.max_body_bytes",
               .reason = Reason::kBodyTooLarge};
}

IncomingBodies::IncomingBodies(BodyBudget& budget)
    : budget_(budget),
      gauge_(metrics::Gauge("tollgate_router_incoming_body_bytes",
                            "Announced bytes of request bodies that are not complete")) {}

void IncomingBodies::Reserve(int64_t bytes) {
  budget_.incomplete_bytes += bytes;
  gauge_.Add(bytes);
}

Result<void> IncomingBodies::Begin(uint64_t stream_id, StartInPieces start) {
  const int64_t bytes = start.body_bytes();
  if (auto refused = RefuseBody(budget_.limits, bytes)) return Fail{std::move(*refused)};
  if (bytes <= 0 || bodies_.count(stream_id) > 0) {
    return FailWith(ErrorId::kServerError, "", "a request in pieces is malformed");
  }
  if (budget_.incomplete_bytes >= budget_.limits.max_incomplete_bytes) {
    return Unavailable(Reason::kMemory, "too many incomplete request bodies");
  }
  Reserve(bytes);
  start.mutable_request()->mutable_members_json()->reserve(static_cast<size_t>(bytes));
  bodies_[stream_id] = std::move(start);
  return {};
}

Result<std::optional<GenerateRequest>> IncomingBodies::Add(uint64_t stream_id,
                                                           const std::string& piece) {
  StartInPieces& start = bodies_.at(stream_id);
  std::string& body = *start.mutable_request()->mutable_members_json();
  const size_t announced = static_cast<size_t>(start.body_bytes());
  if (piece.size() > announced - body.size()) {
    Drop(stream_id);
    return FailWith(ErrorId::kServerError, "", "a body is longer than it was announced");
  }
  body += piece;
  std::optional<GenerateRequest> whole;
  if (body.size() == announced) {
    whole = std::move(*start.mutable_request());
    Drop(stream_id);
  }
  return whole;
}

void IncomingBodies::Drop(uint64_t stream_id) {
  const auto found = bodies_.find(stream_id);
  if (found == bodies_.end()) return;
  Reserve(-found->second.body_bytes());
  bodies_.erase(found);
}

void IncomingBodies::Clear() {
  for (const auto& [id, start] : bodies_) Reserve(-start.body_bytes());
  bodies_.clear();
}

}  // namespace tollgate::inference_router
