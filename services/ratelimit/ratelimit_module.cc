#include "services/ratelimit/ratelimit_module.h"

#include <grpcpp/server_builder.h>

#include <atomic>
#include <thread>

#include "common/base/crypto.h"
#include "common/config/substitute.h"
#include "common/observability/log.h"
#include "common/observability/metrics.h"
#include "common/rpc/error_status.h"
#include "services/ratelimit/redis/failover_store.h"
#include "services/ratelimit/rpc/callers.h"
#include "services/ratelimit/rpc/ratelimit_rpc.h"
#include "services/ratelimit/storage/state_file.h"

namespace tollgate {
namespace {

using ratelimit::FailoverStore;
using ratelimit::LimiterStore;
using ratelimit::MemoryStore;
using ratelimit::RedisClient;
using ratelimit::StateFile;

constexpr int64_t kDefaultSlotSeconds = 9;
constexpr int64_t kDefaultSharePercent = 120;
constexpr int64_t kDefaultTimeoutMs = 50;
constexpr int64_t kSweepMs = 1000;
constexpr int64_t kAwaitRedisUs = 2'000'000;
constexpr int64_t kWindowUs = ratelimit::kWindowNs / 1000;

int64_t SlotLifeUs(const config::v1::RateLimitSettings& settings) {
  const int64_t seconds = settings.lease_seconds();
  return (seconds > 0 ? seconds : kDefaultSlotSeconds) * 1'000'000;
}

// The limits, in Redis or in memory. Shared with the timer, which may still fire after the module
// has stopped.
struct Store {
  std::unique_ptr<RedisClient> redis;
  std::unique_ptr<FailoverStore> shared;  // set with Redis
  std::unique_ptr<MemoryStore> memory;    // set without Redis
  std::unique_ptr<StateFile> file;

  LimiterStore& limits() {
    return shared ? static_cast<LimiterStore&>(*shared) : static_cast<LimiterStore&>(*memory);
  }
  MemoryStore::Totals Sweep() { return shared ? shared->Sweep() : memory->Sweep(); }
};

Result<std::shared_ptr<Store>> OpenRedis(const config::v1::RateLimitSettings& settings,
                                         const Clock& clock) {
  ratelimit::RedisOptions options;
  auto url = ratelimit::ParseRedisUrl(settings.redis_url());
  if (!url) return Internal(url.error());
  options.url = std::move(*url);
  options.user = settings.redis_user();
  if (!settings.redis_password_file().empty()) {
    auto password = config::ReadWholeFile(settings.redis_password_file());
    if (!password) return Internal("ratelimit.redis_password_file: " + password.error());
    options.password = password->substr(0, password->find_last_not_of(" \r\n") + 1);
  }
  options.authority_file = settings.redis_authority_file();
  const int64_t timeout_ms = settings.redis_timeout_ms();
  options.timeout_us = (timeout_ms > 0 ? timeout_ms : kDefaultTimeoutMs) * 1000;
  auto client = RedisClient::Make(std::move(options));
  if (!client) return Internal(client.error());
  auto store = std::make_shared<Store>();
  store->redis = std::move(*client);
  const int64_t percent = settings.local_share_percent();
  store->shared = std::make_unique<FailoverStore>(
      *store->redis, clock,
      ratelimit::FailoverOptions{
          // Equal in all processes with the same configuration. "2" is the format of the keys:
          // processes with different formats do not share limits.
          .redis_id =
              "redis:2:" + Id::FromBytes(Sha256(settings.redis_url()).substr(0, 16))->ToHex(),
          .slot_life_us = SlotLifeUs(settings),
          .share_percent = percent > 0 ? percent : kDefaultSharePercent,
          .replicas = settings.replicas()});
  return store;
}

Result<std::shared_ptr<Store>> OpenMemory(const config::v1::RateLimitSettings& settings,
                                          const Clock& clock) {
  if (settings.replicas() > 1) {
    return Internal("ratelimit.replicas is " + std::to_string(settings.replicas()) +
                    " without ratelimit.redis_url: each process would grant every limit in full. "
                    "Set redis_url, or run one process");
  }
  auto store = std::make_shared<Store>();
  const bool keeps = !settings.state_file().empty();
  store->memory = std::make_unique<MemoryStore>(clock, SlotLifeUs(settings),
                                                keeps ? 0 : clock.MonotonicUs() + kWindowUs);
  if (!keeps) {
    log::Warn(
        "rate limits start without a burst, because earlier use is unknown: set "
        "ratelimit.state_file or ratelimit.redis_url");
    return store;
  }
  store->file = std::make_unique<StateFile>(settings.state_file(), *store->memory, clock);
  if (const auto loaded = store->file->Load(); !loaded) return Internal(loaded.error());
  if (const auto saved = store->file->Save(); !saved) return Internal(saved.error());
  return store;
}

// Sweeps the store once a second and updates the gauges.
class Sweeper : public std::enable_shared_from_this<Sweeper> {
 public:
  Sweeper(Loop& loop, std::shared_ptr<Store> store)
      : store_(std::move(store)),
        loop_(loop),
        slots_(metrics::Gauge("tollgate_ratelimit_leases", "Slots in this process's memory.")),
        subjects_(metrics::Gauge("tollgate_ratelimit_subjects",
                                 "Keys, workspaces and models with state in memory.")),
        replicas_(metrics::Gauge("tollgate_ratelimit_replicas",
                                 "Ratelimit processes that share the limits.")),
        expired_(metrics::Counter("tollgate_ratelimit_leases_expired_total",
                                  "Slots in memory that expired without a release.")) {}

  void Start() {
    loop_.Post([self = shared_from_this()] {
      self->Sweep();
      self->Arm();
    });
  }
  void Stop() { stopped_ = true; }

 private:
  void Arm() {
    loop_.RunAfter(kSweepMs, [self = shared_from_this()] {
      if (self->stopped_) return;
      self->Sweep();
      self->Arm();
    });
  }
  void Sweep() {
    const auto totals = store_->Sweep();
    slots_.Set(static_cast<double>(totals.slots));
    subjects_.Set(static_cast<double>(totals.subjects));
    expired_.Increment(static_cast<double>(totals.expired - expired_counted_));
    expired_counted_ = totals.expired;
    if (store_->shared) store_->shared->Beat();
    replicas_.Set(store_->shared ? static_cast<double>(store_->shared->replicas()) : 1);
  }

  std::shared_ptr<Store> store_;
  Loop& loop_;
  prometheus::Gauge& slots_;
  prometheus::Gauge& subjects_;
  prometheus::Gauge& replicas_;
  prometheus::Counter& expired_;
  int64_t expired_counted_ = 0;  // already added to the counter
  std::atomic<bool> stopped_{false};
};

class RateLimitModule : public Module {
 public:
  RateLimitModule(HostContext& context, const config::v1::RateLimitSettings& settings)
      : loops_(context.loops),
        store_(settings.redis_url().empty() ? OpenMemory(settings, context.clock)
                                            : OpenRedis(settings, context.clock)) {
    if (!store_) return;  // Start reports the error
    rpc_ = std::make_unique<ratelimit::RateLimitRpc>((*store_)->limits());
    context.direct.acquire = [this](const ratelimit::v1::AcquireRequest& request, auto done) {
      Run<ratelimit::v1::AcquireRequest, ratelimit::v1::AcquireResponse>(
          request, std::move(done), [this](const auto& in, auto& out, auto end) {
            rpc_->DoAcquire(in, out, std::move(end));
          });
    };
    context.direct.release = [this](const ratelimit::v1::ReleaseRequest& request, auto done) {
      Run<ratelimit::v1::ReleaseRequest, ratelimit::v1::ReleaseResponse>(
          request, std::move(done),
          [this](const auto& in, auto&, auto end) { rpc_->DoRelease(in, std::move(end)); });
    };
    context.direct.peek = [this](const ratelimit::v1::PeekRequest& request, auto done) {
      Run<ratelimit::v1::PeekRequest, ratelimit::v1::PeekResponse>(
          request, std::move(done),
          [this](const auto& in, auto& out, auto end) { rpc_->DoPeek(in, out, std::move(end)); });
    };
    context.direct.limit_use = [this](const ratelimit::v1::GetUseRequest& request, auto done) {
      Run<ratelimit::v1::GetUseRequest, ratelimit::v1::GetUseResponse>(
          request, std::move(done),
          [this](const auto& in, auto& out, auto end) { rpc_->DoGetUse(in, out, std::move(end)); });
    };
  }
  ~RateLimitModule() override { Stop(); }

  std::string_view name() const override { return "ratelimit"; }
  void Register(grpc::ServerBuilder& builder) override {
    if (rpc_) builder.RegisterService(rpc_.get());
  }
  std::span<const rpc::MethodCallers> Callers() const override { return ratelimit::kCallers; }
  Result<void> Start() override {
    if (!store_) return Fail{store_.error()};
    if ((*store_)->redis) (*store_)->redis->Start();
    if ((*store_)->file) (*store_)->file->Start();
    sweeper_ = std::make_shared<Sweeper>(loops_.Next(), *store_);
    sweeper_->Start();
    ready_ = true;
    if ((*store_)->shared) AwaitRedis(*(*store_)->shared);
    return {};
  }
  // Ready without Redis, too: the process then serves the local share.
  bool Ready() const override { return ready_; }
  void Stop() override {
    if (!ready_.exchange(false)) return;
    rpc_->CloseStreams();
    sweeper_->Stop();
    if ((*store_)->shared) (*store_)->shared->Leave();
    if ((*store_)->redis) (*store_)->redis->Stop();
    if ((*store_)->file) (*store_)->file->Stop();
  }

 private:
  // Without this wait, the first requests could be refused by a share that has no burst yet. The
  // wait is bounded, because without Redis the share must be served.
  static void AwaitRedis(FailoverStore& store) {
    const int64_t until_us = SystemClock::Get().MonotonicUs() + kAwaitRedisUs;
    while (!store.counted() && SystemClock::Get().MonotonicUs() < until_us) {
      store.Beat();
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
  // Calls with a response object that lives until the answer.
  template <typename Request, typename Response, typename Done, typename Call>
  static void Run(const Request& request, Done done, const Call& call) {
    auto both = std::make_shared<std::pair<Request, Response>>(request, Response());
    call(both->first, both->second, [both, done = std::move(done)](const grpc::Status& status) {
      if (!status.ok()) return done(Fail{rpc::FromStatus(status)});
      done(std::move(both->second));
    });
  }

  LoopPool& loops_;
  Result<std::shared_ptr<Store>> store_;
  std::unique_ptr<ratelimit::RateLimitRpc> rpc_;
  std::shared_ptr<Sweeper> sweeper_;
  std::atomic<bool> ready_{false};
};

}  // namespace

std::unique_ptr<Module> MakeRateLimitModule(HostContext& context,
                                            const config::v1::RateLimitSettings& settings) {
  return std::make_unique<RateLimitModule>(context, settings);
}

}  // namespace tollgate
