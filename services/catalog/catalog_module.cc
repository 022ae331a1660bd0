#include "services/catalog/catalog_module.h"

#include <grpcpp/server_builder.h>

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <thread>

#include "common/observability/log.h"
#include "common/observability/metrics.h"
#include "services/catalog/rpc/catalog_rpc.h"
#include "services/catalog/storage/catalog_source.h"

namespace tollgate {
namespace {

// Twice until a changed file counts as finished: half a second in all.
constexpr auto kPollPeriod = std::chrono::milliseconds(250);

class CatalogModule : public Module {
 public:
  CatalogModule(HostContext& context, const config::v1::CatalogSettings& settings)
      : path_(settings.file()),
        source_(settings.file(), settings.brand().empty() ? "tollgate" : settings.brand()),
        publisher_(context.loops.loop(0)),
        rpc_(publisher_),
        version_(metrics::Gauge("tollgate_catalog_version", "Version of the snapshot in force.")),
        models_(metrics::Gauge("tollgate_catalog_models", "Models in the snapshot in force.")),
        good_(Reloads("good")),
        bad_(Reloads("bad")) {}
  ~CatalogModule() override { Stop(); }

  std::string_view name() const override { return "catalog"; }
  void Register(grpc::ServerBuilder& builder) override { builder.RegisterService(&rpc_); }

  Result<void> Start() override {
    if (path_.empty()) return Internal("catalog.file is not set");
    if (auto loaded = source_.Load(); !loaded) {
      std::string all;
      for (const std::string& complaint : loaded.error()) all += "\n  " + complaint;
      return Internal("the catalog file can not be used:" + all);
    }
    Publish();
    thread_ = std::thread([this] { Watch(); });
    ready_ = true;
    return {};
  }
  bool Ready() const override { return ready_; }
  // The watchers' streams would never end by themselves.
  void Drain(int64_t deadline_us) override { publisher_.Close(); }
  void Stop() override {
    ready_ = false;
    publisher_.Close();
    {
      std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

 private:
  static prometheus::Counter& Reloads(const char* result) {
    return metrics::Counter("tollgate_catalog_reloads_total",
                            "Changed catalog files that were read, by result.",
                            {{"result", result}});
  }

  // A thread of its own: it reads files, which may take their time.
  void Watch() {
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, kPollPeriod, [this] { return stopping_; })) {
      lock.unlock();
      Poll();
      lock.lock();
    }
  }
  void Poll() {
    catalog::Complaints complaints;
    switch (source_.Poll(complaints)) {
      case catalog::CatalogSource::Change::kNone:
        return;
      case catalog::CatalogSource::Change::kNew:
        good_.Increment();
        return Publish();
      case catalog::CatalogSource::Change::kBad:
        bad_.Increment();
        for (const std::string& complaint : complaints) {
          log::Error("catalog file refused, the last good one stays", {{"complaint", complaint}});
        }
    }
  }
  void Publish() {
    const auto& snapshot = *source_.current();
    publisher_.Publish(snapshot);
    version_.Set(static_cast<double>(snapshot.version()));
    models_.Set(snapshot.models_size());
    log::Info("catalog in force", {{"version", snapshot.version()},
                                   {"digest", snapshot.digest()},
                                   {"models", snapshot.models_size()},
                                   {"pools", snapshot.pools_size()}});
  }

  const std::string path_;
  catalog::CatalogSource source_;  // of Start and then of the thread
  catalog::CatalogPublisher publisher_;
  catalog::CatalogRpc rpc_;
  prometheus::Gauge& version_;
  prometheus::Gauge& models_;
  prometheus::Counter& good_;
  prometheus::Counter& bad_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool stopping_ = false;
  std::thread thread_;
  std::atomic<bool> ready_{false};
};

}  // namespace

std::unique_ptr<Module> MakeCatalogModule(HostContext& context,
                                          const config::v1::CatalogSettings& settings) {
  return std::make_unique<CatalogModule>(context, settings);
}

}  // namespace tollgate
