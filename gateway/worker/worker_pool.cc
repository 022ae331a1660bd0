#include "gateway/worker/worker_pool.h"

#include <algorithm>
#include <chrono>

#include "common/clients/catalog_cache.h"
#include "common/observability/log.h"
#include "common/observability/metrics.h"

namespace tollgate::gateway {

namespace {

// Equals the time for which cached keys are valid without auth (decision 14).
constexpr int64_t kAuthSilenceUs = 30'000'000;

}  // namespace

WorkerPool::WorkerPool(HostContext& host, PipelineOptions options, std::string catalog_file)
    : host_(host),
      options_([&] {
        options.loops = host.loops.size();
        return std::move(options);
      }()),
      catalog_file_(std::move(catalog_file)),
      filter_bytes_(metrics::Gauge("tollgate_gateway_key_filter_bytes",
                                   "Size of the filter of live keys; 0: the gateway has none.")),
      key_version_(metrics::Gauge("tollgate_gateway_key_version",
                                  "Version of the latest key change that the gateway has.")),
      change_seconds_(metrics::Histogram("tollgate_gateway_key_change_seconds",
                                         "Time from a key change in auth until a loop of the "
                                         "gateway applies it, by the clocks of both.",
                                         metrics::LatencyBounds())) {}

WorkerPool::~WorkerPool() { Stop(); }

void WorkerPool::RunOnEachLoop(const std::function<void(Loop&)>& callback) {
  for (int i = 0; i < host_.loops.size(); ++i) {
    Loop& loop = host_.loops.loop(i);
    loop.RunAndWait([&] { callback(loop); });
  }
}

void WorkerPool::Start() {
  const auto unknown_key_limiter =
      std::make_shared<AddressLimiter>(KeyCache::kUnknownKeysPerAddress);
  const int loops = host_.loops.size();
  const auto decoders = std::make_shared<ThreadPool>(
      loops, static_cast<size_t>(loops) * Worker::kMaxWaitingBodies, "decode");
  const auto refusals = std::make_shared<RefusalBudget>();
  workers_.resize(static_cast<size_t>(host_.loops.size()));
  RunOnEachLoop([this, &unknown_key_limiter, &decoders, &refusals](Loop& loop) {
    WorkerClients clients;
    clients.auth = host_.clients.Auth(loop);
    clients.limiter = host_.clients.RateLimit(loop);
    clients.billing = host_.clients.Billing(loop);
    clients.inference = host_.clients.Inference(loop);
    workers_[static_cast<size_t>(loop.index())] =
        std::make_shared<Worker>(loop, host_.clock, options_, std::move(clients),
                                 unknown_key_limiter, decoders, refusals, clock_check_);
  });
  ConnectKeyCaches();
  host_.loops.loop(0).RunAndWait([this] {
    OpenStreams();
    workers_[0]->presence->Start();
  });
}

void WorkerPool::ConnectKeyCaches() {
  RunOnEachLoop([this](Loop& loop) {
    const Worker& worker = *workers_[static_cast<size_t>(loop.index())];
    std::vector<KeyCache::Peer> others;
    for (const std::shared_ptr<Worker>& other : workers_) {
      if (other.get() != &worker) others.push_back({&other->loop, other->keys});
    }
    worker.keys->ShareWith(std::move(others));
  });
}

void WorkerPool::PostToEach(std::function<void(Worker&)> callback) {
  for (const std::shared_ptr<Worker>& worker : workers_) {
    worker->loop.Post([weak = std::weak_ptr<Worker>(worker), callback] {
      if (const auto worker = weak.lock()) callback(*worker);
    });
  }
}

void WorkerPool::OnKeyMessage(auth::v1::WatchKeysResponse message) {
  last_auth_message_us_.store(host_.clock.MonotonicUs(), std::memory_order_relaxed);
  // The filter is updated first, so that it has each key before a cache learns of its version.
  if (live_filter_.Apply(message)) {
    const LiveFilterPtr filter = live_filter_.current();
    const size_t bytes = filter ? filter->keys().shape().bytes : 0;
    log::Info("filter of live keys replaced", {{"bytes", static_cast<int64_t>(bytes)}});
    filter_bytes_.Set(static_cast<double>(bytes));
    PostToEach([filter](Worker& worker) { worker.keys->SetFilter(filter); });
  }
  key_version_.Set(static_cast<double>(message.version()));
  message.clear_filter_piece();
  const auto shared = std::make_shared<const auth::v1::WatchKeysResponse>(std::move(message));
  PostToEach([this, shared](Worker& worker) {
    worker.keys->OnChanges(*shared);
    // Measures from the change in auth to its application on this loop, once per loop.
    for (const auth::v1::KeyChange& change : shared->changes()) {
      if (change.key().changed_at_us() == 0) continue;
      const int64_t us = worker.clock.WallUs() - change.key().changed_at_us();
      change_seconds_.Observe(static_cast<double>(std::max<int64_t>(us, 0)) / 1e6);
    }
  });
}

// Opens one stream of each kind per process. Messages are immutable and shared by all loops.
void WorkerPool::OpenStreams() {
  Loop& loop = host_.loops.loop(0);
  auth_ = host_.clients.Auth(loop);
  catalog_ = host_.clients.Catalog(loop);
  WatchHandler<auth::v1::WatchKeysResponse> keys;
  keys.on_message = [this](auth::v1::WatchKeysResponse message) {
    OnKeyMessage(std::move(message));
    ReportProgress();
  };
  keys.on_lost = [](const Error& error) {
    log::Warn("key change stream lost", {{"reason", error.ToString()}});
  };
  keys_stream_ = auth_->WatchKeys(std::move(keys));

  WatchHandler<catalog::v1::WatchCatalogResponse> catalog;
  catalog.on_message = [this](catalog::v1::WatchCatalogResponse message) {
    if (!message.has_snapshot()) return;
    const CatalogPtr view =
        std::make_shared<const CatalogView>(std::move(*message.mutable_snapshot()));
    log::Info("catalog updated", {{"version", view->snapshot().version()},
                                  {"models", view->snapshot().models_size()}});
    PostToEach([view](Worker& worker) { worker.catalog = view; });
    has_catalog_.store(true, std::memory_order_release);
    ReportProgress();
  };
  // The last snapshot stays valid for the whole outage (docs/design/limits.md 8).
  catalog.on_lost = [](const Error& error) {
    log::Warn("catalog stream lost", {{"reason", error.ToString()}});
  };
  catalog_stream_ =
      WatchCatalogCached(loop, *catalog_, {.file = catalog_file_}, std::move(catalog));
}

bool WorkerPool::Ready() const {
  const int64_t now_us = host_.clock.MonotonicUs();
  return has_catalog_.load(std::memory_order_acquire) &&
         now_us - last_auth_message_us_.load(std::memory_order_relaxed) <= kAuthSilenceUs &&
         !clock_check_->IsRefused(now_us);
}

void WorkerPool::ReportProgress() {
  // Locks so that no waiter can miss this notification after it has checked Ready().
  const std::lock_guard lock(progress_mutex_);
  progress_.notify_all();
}

void WorkerPool::AwaitReady(int64_t max_ms) {
  std::unique_lock lock(progress_mutex_);
  progress_.wait_for(lock, std::chrono::milliseconds(max_ms), [this] { return Ready(); });
}

void WorkerPool::Stop() {
  if (workers_.empty()) return;
  RunOnEachLoop([this](Loop& loop) {
    if (loop.index() == 0) {
      keys_stream_.reset();
      catalog_stream_.reset();
      auth_.reset();
      catalog_.reset();
    }
    workers_[static_cast<size_t>(loop.index())].reset();
  });
  workers_.clear();
}

}  // namespace tollgate::gateway
