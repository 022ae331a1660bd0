#include "services/catalog/catalog_module.h"

#include <grpcpp/server_builder.h>

#include <atomic>

#include "common/observability/log.h"
#include "common/observability/metrics.h"
#include "common/runtime/periodic_thread.h"
#include "services/catalog/rpc/callers.h"
#include "services/catalog/rpc/catalog_rpc.h"
#include "services/catalog/rpc/model_rpc.h"
#include "services/catalog/rpc/status_rpc.h"
#include "services/catalog/storage/catalog_source.h"

namespace tollgate {
namespace {

// CatalogSource::Poll reads a changed file after two periods: half a second.
constexpr auto kPollPeriod = std::chrono::milliseconds(250);

class CatalogModule : public Module {
 public:
  CatalogModule(HostContext& context, const config::v1::CatalogSettings& settings)
      : path_(settings.file()),
        source_(settings.file(), settings.brand().empty() ? "tollgate" : settings.brand()),
        publisher_(context.loops.loop(0)),
        rpc_(publisher_),
        model_rpc_(publisher_),
        status_rpc_(publisher_, context.clock),
        version_(metrics::Gauge("tollgate_catalog_version", "Version of the current snapshot.")),
        models_(metrics::Gauge("tollgate_catalog_models", "Models in the current snapshot.")),
        good_(Reloads("good")),
        bad_(Reloads("bad")) {}
  ~CatalogModule() override { Stop(); }

  std::string_view name() const override { return "catalog"; }
  void Register(grpc::ServerBuilder& builder) override { builder.RegisterService(&rpc_); }
  void RegisterAdmin(grpc::ServerBuilder& builder) override {
    builder.RegisterService(&model_rpc_);
    builder.RegisterService(&status_rpc_);
  }
  std::span<const rpc::MethodCallers> Callers() const override { return catalog::kCallers; }

  Result<void> Start() override {
    if (path_.empty()) return Internal("catalog.file is not set");
    if (auto loaded = source_.Load(); !loaded) {
      std::string all;
      for (const std::string& problem : loaded.error()) all += "\n  " + problem;
      return Internal("the catalog file is invalid:" + all);
    }
    Publish();
    // Reading files may block, so it must not run on a loop.
    thread_.Start("catalog-file", kPollPeriod, [this] { Poll(); });
    ready_ = true;
    return {};
  }
  bool Ready() const override { return ready_; }
  // Watch streams do not end by themselves.
  void Drain(int64_t deadline_us) override { publisher_.Close(); }
  void Stop() override {
    ready_ = false;
    publisher_.Close();
    thread_.Stop();
  }

 private:
  static prometheus::Counter& Reloads(const char* result) {
    return metrics::Counter("tollgate_catalog_reloads_total",
                            "Reads of a changed catalog file, by result.", {{"result", result}});
  }

  void Poll() {
    catalog::Problems problems;
    switch (source_.Poll(problems)) {
      case catalog::CatalogSource::Change::kNone:
        // A refused file may have been restored to the content that is already published.
        if (source_.refused().empty()) status_rpc_.Loaded(/*anew=*/false);
        return;
      case catalog::CatalogSource::Change::kNew:
        good_.Increment();
        return Publish();
      case catalog::CatalogSource::Change::kInvalid:
        bad_.Increment();
        status_rpc_.Refused(problems);
        for (const std::string& problem : problems) {
          log::Error("catalog file refused; keeping the last valid catalog",
                     {{"problem", problem}});
        }
    }
  }
  void Publish() {
    const auto& snapshot = *source_.current();
    publisher_.Publish(snapshot);
    status_rpc_.Loaded(/*anew=*/true);
    version_.Set(static_cast<double>(snapshot.version()));
    models_.Set(snapshot.models_size());
    log::Info("catalog loaded", {{"version", snapshot.version()},
                                 {"digest", snapshot.digest()},
                                 {"models", snapshot.models_size()},
                                 {"pools", snapshot.pools_size()}});
  }

  const std::string path_;
  catalog::CatalogSource source_;  // used by Start, then only by the thread
  catalog::CatalogPublisher publisher_;
  catalog::CatalogRpc rpc_;
  catalog::ModelRpc model_rpc_;
  catalog::StatusRpc status_rpc_;
  prometheus::Gauge& version_;
  prometheus::Gauge& models_;
  prometheus::Counter& good_;
  prometheus::Counter& bad_;
  PeriodicThread thread_;
  std::atomic<bool> ready_{false};
};

}  // namespace

std::unique_ptr<Module> MakeCatalogModule(HostContext& context,
                                          const config::v1::CatalogSettings& settings) {
  return std::make_unique<CatalogModule>(context, settings);
}

}  // namespace tollgate
