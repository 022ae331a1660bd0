#include "services/inference_router/inference_router_module.h"

#include <fcntl.h>
#include <grpcpp/server_builder.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "common/base/try.h"
#include "common/clients/catalog_cache.h"
#include "common/http/tls.h"
#include "common/observability/disk_metrics.h"
#include "common/observability/log.h"
#include "common/rpc/resolver.h"
#include "services/inference_router/admin/engine_admin_rpc.h"
#include "services/inference_router/balancer/health_checker.h"
#include "services/inference_router/rpc/callers.h"
#include "services/inference_router/rpc/link_request.h"
#include "services/inference_router/rpc/link_server.h"
#include "services/inference_router/run/worker.h"
#include "services/inference_router/settlement/settlement_files.h"
#include "tollgate/billing/v1/lease_recalls.pb.h"

namespace tollgate {
namespace {

namespace router = inference_router;

constexpr int64_t kGaugesMs = 1'000;
// Upper bound of max_answer_bytes, because gateways buffer answers that are not streamed.
constexpr int64_t kMostAnswerBytes = 128 << 20;
constexpr size_t kMinCacheSaltKey = 32;
// How long terminated requests may take to settle when the process exits.
constexpr int64_t kTerminateUs = 2'000'000;
// How long a stopping router tries to deliver what is left in its outbox.
constexpr int64_t kDeliverUs = 5'000'000;

int64_t SecondsOr(int32_t seconds, int64_t fallback) {
  return (seconds > 0 ? seconds : fallback) * 1000;
}

class InferenceRouterModule : public Module {
 public:
  InferenceRouterModule(HostContext& context, const config::v1::RouterSettings& settings)
      : context_(context), settings_(settings) {
    link_ = router::LinkServer::Make(
        context_.loops,
        [this](inference::v1::GenerateRequest request, std::shared_ptr<router::EventSink> sink) {
          return Serve(std::move(request), std::move(sink));
        },
        [this](inference::v1::CountTokensRequest request) { return Count(std::move(request)); },
        router::BodyLimits{.max_body_bytes = settings_.max_body_bytes() > 0
                                                 ? settings_.max_body_bytes()
                                                 : kDefaultRouterBodyBytes});
    context_.direct.count_tokens = [this](inference::v1::CountTokensRequest request) {
      return Count(std::move(request));
    };
    context_.direct.generate = [this](Loop& loop, inference::v1::GenerateRequest request) {
      return link_->StartDirect(loop, std::move(request));
    };
  }
  ~InferenceRouterModule() override {
    if (lock_file_ >= 0) ::close(lock_file_);
  }

  std::string_view name() const override { return "inference_router"; }
  void Register(grpc::ServerBuilder& builder) override {
    builder.RegisterService(link_->service());
  }
  void RegisterAdmin(grpc::ServerBuilder& builder) override {
    builder.RegisterService(&engine_admin_);
  }
  std::span<const rpc::MethodCallers> Callers() const override { return router::kCallers; }
  std::span<const rpc::MethodCallers> AdminCallers() const override {
    return router::kAdminCallers;
  }
  Result<void> Start() override;
  bool Ready() const override { return started_.load() && table_.Get() != nullptr; }
  void Drain(int64_t deadline_us) override;
  void Stop() override;

 private:
  Result<void> OpenFiles();
  router::WorkerOptions Options() const;
  router::RoutingOptions TableOptions() const;
  Task<void> Serve(inference::v1::GenerateRequest request, std::shared_ptr<router::EventSink> sink);
  Task<Result<inference::v1::CountTokensResponse>> Count(inference::v1::CountTokensRequest request);
  void OnCatalog(catalog::v1::Snapshot snapshot);
  void OnLeaseRecalls(std::vector<std::string> workspaces);
  void BuildTable();
  void ScheduleGauges();

  HostContext& context_;
  const config::v1::RouterSettings settings_;
  std::unique_ptr<router::LinkServer> link_;
  std::shared_ptr<const http::TlsClientContext> engine_tls_;
  int lock_file_ = -1;
  std::unique_ptr<router::SettlementFiles> files_;
  std::shared_ptr<void> disk_;
  router::TableHolder table_;
  router::DrainedEngines drained_;
  router::EngineAdminRpc engine_admin_{[this] { return table_.Get(); }, drained_, context_.clock};
  std::unique_ptr<router::RouterMetrics> metrics_;
  std::vector<std::unique_ptr<router::Worker>> workers_;
  // The members below live on the first loop.
  std::unique_ptr<CatalogClient> catalog_;
  std::unique_ptr<Subscription> watch_;
  std::unique_ptr<Subscription> recalls_;
  std::unique_ptr<router::HealthChecker> health_;
  catalog::v1::Snapshot snapshot_;  // the snapshot of the current table
  rpc::Resolver engine_names_;      // resolves engines that are one engine per address
  const router::AddressesOf addresses_of_ = [this](const std::string& target) {
    return rpc::IsName(target) ? engine_names_.AddressesOf(target) : std::vector<std::string>();
  };
  Loop::TimerId gauges_timer_ = 0;
  int64_t outbox_empty_us_ = 0;  // when the outbox was last empty; used by the gauges' timer
  std::atomic<bool> started_{false};
};

Result<void> InferenceRouterModule::OpenFiles() {
  const std::string folder = settings_.data_dir().empty() ? "." : settings_.data_dir();
  std::error_code failed;
  std::filesystem::create_directories(folder, failed);
  if (failed) return Internal("cannot create " + folder + ": " + failed.message());
  // Two routers with one data directory would settle each other's running requests.
  lock_file_ = ::open((folder + "/lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (lock_file_ < 0 || ::flock(lock_file_, LOCK_EX | LOCK_NB) != 0) {
    return Internal("the data directory " + folder +
                    " is in use or cannot be locked: " + std::strerror(errno));
  }
  TRY(auto files, router::SettlementFiles::Open(folder));
  files_ = std::move(files);
  disk_ = metrics::ReportDisk("router", folder);
  return drained_.Open(folder + "/drained-engines");
}

router::WorkerOptions InferenceRouterModule::Options() const {
  router::WorkerOptions options;
  options.heartbeat_ms = SecondsOr(settings_.heartbeat_seconds(), 5);
  options.http.tls = engine_tls_;
  options.http.connect_timeout_ms = SecondsOr(settings_.connect_timeout_seconds(), 3);
  router::RunSettings& run = options.run;
  run.idle_timeout_ms = SecondsOr(settings_.idle_timeout_seconds(), 600);
  run.first_output_timeout_ms = SecondsOr(settings_.first_output_timeout_seconds(), 0);
  run.answer_timeout_ms = SecondsOr(settings_.answer_timeout_seconds(), 3600);
  if (settings_.max_answer_bytes() > 0) {
    run.max_answer_bytes = std::min(settings_.max_answer_bytes(), kMostAnswerBytes);
  }
  if (settings_.unstreamed_max_tokens() != 0) {
    run.unstreamed_max_tokens = settings_.unstreamed_max_tokens();
  }
  run.unstreamed_answer_ms = SecondsOr(settings_.unstreamed_answer_seconds(), 300);
  run.cache_salt_key = settings_.cache_salt_key();
  run.patience.no_answer_ms = SecondsOr(settings_.ledger_wait_seconds(), 30);
  run.patience.held_ms = SecondsOr(settings_.held_wait_seconds(), 10);
  run.queue_ms = settings_.queue_seconds() < 0 ? 0 : SecondsOr(settings_.queue_seconds(), 10);
  run.hedge_after_ms = std::max(settings_.hedge_after_ms(), 0);
  return options;
}

router::RoutingOptions InferenceRouterModule::TableOptions() const {
  router::RoutingOptions options;
  if (settings_.queue_requests() > 0) {
    options.queue.max_requests = static_cast<size_t>(settings_.queue_requests());
  }
  options.slow_start_us =
      settings_.slow_start_seconds() < 0 ? 0 : SecondsOr(settings_.slow_start_seconds(), 10) * 1000;
  options.now_us = context_.clock.MonotonicUs();
  options.zone = settings_.zone();
  options.addresses_of = addresses_of_;
  return options;
}

Result<void> InferenceRouterModule::Start() {
  TRY(OpenFiles());
  auto tls = http::TlsClientContext::Make(settings_.engine_authority_file());
  if (!tls.ok()) return Internal("router.engine_authority_file: " + tls.error().internal);
  engine_tls_ = std::move(*tls);
  const router::WorkerOptions times = Options();
  if (times.run.first_output_timeout_ms > 0 &&
      times.run.first_output_timeout_ms <= times.http.connect_timeout_ms) {
    return Internal(
        "router.first_output_timeout_seconds must be more than connect_timeout_seconds: otherwise "
        "an unreachable engine looks like a slow one");
  }
  const std::string& salt_key = settings_.cache_salt_key();
  if (!salt_key.empty() && salt_key.size() < kMinCacheSaltKey) {
    return Internal("router.cache_salt_key must have at least 32 characters");
  }
  const router::WorkerOptions options = Options();
  metrics_ = std::make_unique<router::RouterMetrics>(options.run.answer_timeout_ms * 1000);
  for (int i = 0; i < context_.loops.size(); ++i) {
    Loop& loop = context_.loops.loop(i);
    loop.RunAndWait([&] {
      workers_.push_back(std::make_unique<router::Worker>(
          loop, context_.clock, context_.clients.Metering(loop), files_->journal(),
          files_->outbox(), files_->admissions(), table_, *metrics_, options));
      workers_.back()->Start();
    });
  }
  Loop& first = context_.loops.loop(0);
  first.RunAndWait([&] {
    workers_[0]->settler().Recover();
    health_ = std::make_unique<router::HealthChecker>(
        first, workers_[0]->http(), [this] { return table_.Get(); },
        SecondsOr(settings_.health_check_seconds(), 5),
        SecondsOr(settings_.health_check_timeout_seconds(), 4));
    health_->Start();
    catalog_ = context_.clients.Catalog(first);
    watch_ = WatchCatalogCached(first, *catalog_,
                                {.file = settings_.catalog_cache_file(), .with_engines = true},
                                {[this](catalog::v1::WatchCatalogResponse message) {
                                   OnCatalog(std::move(*message.mutable_snapshot()));
                                 },
                                 [](const Error& error) {
                                   log::Warn("catalog stream lost; keeping the last snapshot",
                                             {{"error", error.ToString()}});
                                 }});
    recalls_ = context_.clients.WatchLeaseRecalls(
        first, {[this](const billing::v1::WatchLeaseRecallsResponse& message) {
                  OnLeaseRecalls({message.workspace_ids().begin(), message.workspace_ids().end()});
                },
                [](const Error& error) {
                  log::Warn("stream of lease recalls lost; reconnecting",
                            {{"error", error.ToString()}});
                }});
    ScheduleGauges();
  });
  started_ = true;
  return {};
}

void InferenceRouterModule::OnLeaseRecalls(std::vector<std::string> workspaces) {
  const auto shared = std::make_shared<const std::vector<std::string>>(std::move(workspaces));
  for (int i = 0; i < context_.loops.size(); ++i) {
    router::Worker* const worker = workers_[i].get();
    context_.loops.loop(i).Post([worker, shared] { worker->OnLeaseRecalls(*shared); });
  }
}

void InferenceRouterModule::OnCatalog(catalog::v1::Snapshot snapshot) {
  snapshot_ = std::move(snapshot);
  BuildTable();
  const auto table = table_.Get();
  for (const std::string& engine : table->unusable()) {
    log::Error("ignoring an engine with an invalid base_url", {{"engine", engine}});
  }
  log::Info("catalog updated", {{"version", snapshot_.version()},
                                {"models", snapshot_.models_size()},
                                {"engines", table->engines().size()}});
}

void InferenceRouterModule::BuildTable() {
  std::shared_ptr<const router::RoutingTable> before = table_.Get();
  const router::RoutingOptions options = TableOptions();
  auto table = std::make_shared<const router::RoutingTable>(snapshot_, before.get(), options);
  drained_.Mark(*table, options.now_us);
  table_.Set(table);
  drained_.Mark(*table, options.now_us);
  health_->CheckNow();
}

void InferenceRouterModule::ScheduleGauges() {
  gauges_timer_ = context_.loops.loop(0).RunAfter(kGaugesMs, [this] {
    const int64_t depth = files_->outbox().depth();
    const int64_t checked_us = context_.clock.MonotonicUs();
    if (depth == 0 || outbox_empty_us_ == 0) outbox_empty_us_ = checked_us;
    metrics_->outbox_depth.Set(static_cast<double>(depth));
    metrics_->outbox_waiting.Set(static_cast<double>(checked_us - outbox_empty_us_) / 1e6);
    if (const auto table = table_.Get();
        table != nullptr && table->AddressesChanged(addresses_of_)) {
      BuildTable();
      log::Info("engine addresses have changed", {{"engines", table_.Get()->engines().size()}});
    }
    if (auto table = table_.Get()) {
      const int64_t now_us = context_.clock.MonotonicUs();
      metrics_->engines.Show(*table, now_us);
      const auto available = std::ranges::count_if(
          table->engines(), [now_us](const auto& engine) { return engine->Available(now_us); });
      metrics_->engines_available.Set(static_cast<double>(available));
      metrics_->engines_known.Set(static_cast<double>(table->engines().size()));
    }
    ScheduleGauges();
  });
}

Task<void> InferenceRouterModule::Serve(inference::v1::GenerateRequest request,
                                        std::shared_ptr<router::EventSink> sink) {
  Loop* loop = Loop::Current();
  if (!started_ || loop == nullptr) {
    // Nothing has run, so another router may get the request, and the gateway keeps its hold.
    co_await sink->Send(router::RefusalOf(router::DrainingError()));
    co_return;
  }
  co_await workers_[loop->index()]->Serve(std::move(request), std::move(sink));
}

Task<Result<inference::v1::CountTokensResponse>> InferenceRouterModule::Count(
    inference::v1::CountTokensRequest request) {
  Loop* loop = Loop::Current();
  if (!started_ || loop == nullptr) co_return Unavailable("the inference router is not running");
  co_return co_await workers_[loop->index()]->Count(std::move(request));
}

void InferenceRouterModule::Drain(int64_t deadline_us) {
  link_->Drain();
  // After the drain the links are closed within a second, which is too short for ends that a busy
  // machine has not sent yet.
  while ((link_->running() > 0 || !link_->all_sent()) &&
         context_.clock.MonotonicUs() < deadline_us) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  if (link_->running() > 0) {
    log::Warn("drain deadline reached; terminating the running requests",
              {{"requests", link_->running()}});
  }
  for (int i = 0; started_ && i < context_.loops.size(); ++i) {
    context_.loops.loop(i).RunAndWait([&] { workers_[i]->GiveLeasesBack(); });
  }
  // After a drain the machine's disk may be removed.
  const int64_t deliver_until_us = std::min(deadline_us, context_.clock.MonotonicUs() + kDeliverUs);
  while (files_ != nullptr && files_->outbox().depth() > 0 &&
         context_.clock.MonotonicUs() < deliver_until_us) {
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
}

void InferenceRouterModule::Stop() {
  engine_admin_.Stop();
  if (!started_.exchange(false)) return;
  for (int i = 0; i < context_.loops.size(); ++i) {
    context_.loops.loop(i).RunAndWait([&] { workers_[i]->TerminateAll(); });
  }
  auto running = [this] {
    int sum = 0;
    for (const auto& worker : workers_) sum += worker->running();
    return sum;
  };
  const int64_t deadline_us = context_.clock.MonotonicUs() + kTerminateUs;
  while (running() > 0 && context_.clock.MonotonicUs() < deadline_us) {
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  for (int i = 0; i < context_.loops.size(); ++i) {
    context_.loops.loop(i).RunAndWait([&] { workers_[i]->Stop(); });
  }
  context_.loops.loop(0).RunAndWait([this] {
    context_.loops.loop(0).CancelTimer(gauges_timer_);
    watch_.reset();
    recalls_.reset();
    catalog_.reset();
    health_.reset();
  });
  const int64_t left = files_->outbox().depth();
  if (left > 0) {
    log::Warn(
        "stopped with settlements that the ledger has not acknowledged: keep router.data_dir, the "
        "next start delivers them",
        {{"settlements", left}});
  }
  files_->MarkStopped();
}

}  // namespace

std::unique_ptr<Module> MakeInferenceRouterModule(HostContext& context,
                                                  const config::v1::RouterSettings& settings) {
  return std::make_unique<InferenceRouterModule>(context, settings);
}

}  // namespace tollgate
