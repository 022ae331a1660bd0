#include "services/inference_router/balancer/work_meter.h"

#include <algorithm>
#include <utility>

namespace tollgate::inference_router {
namespace {

// Assumed rest of an answer that is longer than expected, in tokens.
constexpr int64_t kLeastOutputLeft = 32;
// All loops write an engine's count, so it is not updated for each token.
constexpr int64_t kStep = 16 * kOutputWeight;

}  // namespace

void WorkMeter::Enter(EnginePointer engine, int64_t work, int64_t output) {
  Leave();
  engine_ = std::move(engine);
  left_ = work;
  output_ = output;
}

void WorkMeter::OnOutput(int64_t tokens) {
  if (engine_ == nullptr || tokens <= 0) return;
  const int64_t expected = std::max(output_ - tokens, std::min(output_, kLeastOutputLeft));
  const int64_t done = left_ - expected * kOutputWeight;
  if (done < kStep) return;
  engine_->OnWorkDone(done);
  left_ -= done;
}

void WorkMeter::Leave() {
  if (engine_ == nullptr) return;
  engine_->Leave(left_);
  engine_.reset();
  left_ = 0;
}

}  // namespace tollgate::inference_router
