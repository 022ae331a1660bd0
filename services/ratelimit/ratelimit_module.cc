#include "services/ratelimit/ratelimit_module.h"

#include <grpcpp/server_builder.h>

#include <atomic>

#include "common/observability/metrics.h"
#include "common/rpc/error_status.h"
#include "services/ratelimit/rpc/callers.h"
#include "services/ratelimit/rpc/ratelimit_rpc.h"

namespace tollgate {
namespace {

constexpr int64_t kDefaultLeaseSeconds = 30;
constexpr int64_t kSweepMs = 1000;

// Sweeps the store once a second and updates the gauges. Shared with its timer, which may still
// fire after the module has stopped.
class Sweeper : public std::enable_shared_from_this<Sweeper> {
 public:
  Sweeper(Loop& loop, const Clock& clock, int64_t lease_us)
      : store(clock, lease_us),
        loop_(loop),
        leases_(metrics::Gauge("tollgate_ratelimit_leases", "Requests that hold a lease.")),
        subjects_(metrics::Gauge("tollgate_ratelimit_subjects",
                                 "Keys and workspaces with state in memory.")),
        expired_(metrics::Counter("tollgate_ratelimit_leases_expired_total",
                                  "Leases that expired without a release.")) {}

  void Start() {
    loop_.Post([self = shared_from_this()] { self->Arm(); });
  }
  void Stop() { stopped_ = true; }

  ratelimit::LimiterStore store;

 private:
  void Arm() {
    loop_.RunAfter(kSweepMs, [self = shared_from_this()] {
      if (self->stopped_) return;
      self->Sweep();
      self->Arm();
    });
  }
  void Sweep() {
    const auto totals = store.Sweep();
    leases_.Set(static_cast<double>(totals.leases));
    subjects_.Set(static_cast<double>(totals.subjects));
    expired_.Increment(static_cast<double>(totals.expired - expired_counted_));
    expired_counted_ = totals.expired;
  }

  Loop& loop_;
  prometheus::Gauge& leases_;
  prometheus::Gauge& subjects_;
  prometheus::Counter& expired_;
  int64_t expired_counted_ = 0;  // already in the counter
  std::atomic<bool> stopped_{false};
};

class RateLimitModule : public Module {
 public:
  RateLimitModule(HostContext& context, const config::v1::RateLimitSettings& settings)
      : sweeper_(std::make_shared<Sweeper>(
            context.loops.Next(), context.clock,
            (settings.lease_seconds() > 0 ? settings.lease_seconds() : kDefaultLeaseSeconds) *
                1'000'000)),
        rpc_(sweeper_->store) {
    context.direct.acquire = [this](const ratelimit::v1::AcquireRequest& request, auto done) {
      ratelimit::v1::AcquireResponse response;
      const grpc::Status status = rpc_.DoAcquire(request, response);
      if (!status.ok()) return done(Fail{rpc::FromStatus(status)});
      done(std::move(response));
    };
    context.direct.release = [this](const ratelimit::v1::ReleaseRequest& request, auto done) {
      const grpc::Status status = rpc_.DoRelease(request);
      if (!status.ok()) return done(Fail{rpc::FromStatus(status)});
      done(ratelimit::v1::ReleaseResponse());
    };
    context.direct.peek = [this](const ratelimit::v1::PeekRequest& request, auto done) {
      ratelimit::v1::PeekResponse response;
      const grpc::Status status = rpc_.DoPeek(request, response);
      if (!status.ok()) return done(Fail{rpc::FromStatus(status)});
      done(std::move(response));
    };
  }

  std::string_view name() const override { return "ratelimit"; }
  void Register(grpc::ServerBuilder& builder) override { builder.RegisterService(&rpc_); }
  std::span<const rpc::MethodCallers> Callers() const override { return ratelimit::kCallers; }
  Result<void> Start() override {
    sweeper_->Start();
    ready_ = true;
    return {};
  }
  bool Ready() const override { return ready_; }
  void Stop() override {
    ready_ = false;
    sweeper_->Stop();
  }

 private:
  std::shared_ptr<Sweeper> sweeper_;
  ratelimit::RateLimitRpc rpc_;
  std::atomic<bool> ready_{false};
};

}  // namespace

std::unique_ptr<Module> MakeRateLimitModule(HostContext& context,
                                            const config::v1::RateLimitSettings& settings) {
  return std::make_unique<RateLimitModule>(context, settings);
}

}  // namespace tollgate
