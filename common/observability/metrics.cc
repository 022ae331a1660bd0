#include "common/observability/metrics.h"

#include <prometheus/registry.h>
#include <prometheus/text_serializer.h>

#include <exception>
#include <list>
#include <mutex>
#include <shared_mutex>
#include <unordered_map>

#include "common/observability/held_metrics.h"
#include "common/observability/log.h"

namespace tollgate::metrics {
namespace {

// Never destroyed: other threads may still use it while the process exits.
prometheus::Registry& TheRegistry() {
  static auto* registry = new prometheus::Registry();
  return *registry;
}

std::string CacheKey(const std::string& name, const Labels& labels) {
  std::string key = name;
  for (const auto& [label, value] : labels) {
    key += '\0';
    key += label;
    key += '\0';
    key += value;
  }
  return key;
}

// Metrics of one type by name and labels. The registry, with its single lock and hashing, is used
// only once per metric.
template <typename Metric>
class Cache {
 public:
  template <typename Make>
  Metric& Get(const std::string& name, const Labels& labels, Make make, Metric& fallback) {
    const std::string key = CacheKey(name, labels);
    {
      std::shared_lock lock(mutex_);
      if (const auto found = metrics_.find(key); found != metrics_.end()) return *found->second;
    }
    std::unique_lock lock(mutex_);
    Metric*& slot = metrics_[key];
    if (slot == nullptr) {
      // prometheus-cpp throws on a malformed name, and on a name that another type of metric has.
      try {
        slot = &make();
      } catch (const std::exception& error) {
        log::Error("invalid metric", {{"metric", name}, {"reason", error.what()}});
        slot = &fallback;  // counts, but is not exported
      }
    }
    return *slot;
  }

 private:
  std::shared_mutex mutex_;
  std::unordered_map<std::string, Metric*> metrics_;
};

// Metrics of one type that are removed when their last handle is destroyed.
template <typename Metric>
class HeldMetrics {
 public:
  template <typename FamilyOf>
  std::shared_ptr<Metric> Get(const std::string& name, const Labels& labels, FamilyOf family_of) {
    const std::string key = CacheKey(name, labels);
    std::lock_guard lock(mutex_);
    Held& held = held_[key];
    if (held.holders == 0) {
      try {
        held.family = &family_of();
        held.metric = &held.family->Add(labels);
      } catch (const std::exception& error) {
        log::Error("invalid metric", {{"metric", name}, {"reason", error.what()}});
        held_.erase(key);
        return std::make_shared<Metric>();  // counts, but is not exported
      }
    }
    ++held.holders;
    return {held.metric, [this, key](Metric*) { Release(key); }};
  }

 private:
  struct Held {
    prometheus::Family<Metric>* family = nullptr;
    Metric* metric = nullptr;
    int holders = 0;
  };

  void Release(const std::string& key) {
    std::lock_guard lock(mutex_);
    const auto found = held_.find(key);
    if (--found->second.holders > 0) return;
    found->second.family->Remove(found->second.metric);
    held_.erase(found);
  }

  std::mutex mutex_;
  std::unordered_map<std::string, Held> held_;
};

struct Updates {
  std::mutex mutex;  // held while functions run: a removed one does not run again
  std::list<std::function<void()>> functions;
};

Updates& TheUpdates() {
  static auto* updates = new Updates();
  return *updates;
}

}  // namespace

prometheus::Counter& Counter(const std::string& name, const std::string& help,
                             const Labels& labels) {
  static auto* cache = new Cache<prometheus::Counter>();
  static auto* fallback = new prometheus::Counter();
  return cache->Get(
      name, labels,
      [&]() -> prometheus::Counter& {
        return prometheus::BuildCounter().Name(name).Help(help).Register(TheRegistry()).Add(labels);
      },
      *fallback);
}

prometheus::Gauge& Gauge(const std::string& name, const std::string& help, const Labels& labels) {
  static auto* cache = new Cache<prometheus::Gauge>();
  static auto* fallback = new prometheus::Gauge();
  return cache->Get(
      name, labels,
      [&]() -> prometheus::Gauge& {
        return prometheus::BuildGauge().Name(name).Help(help).Register(TheRegistry()).Add(labels);
      },
      *fallback);
}

prometheus::Histogram& Histogram(const std::string& name, const std::string& help,
                                 const std::vector<double>& bounds, const Labels& labels) {
  static auto* cache = new Cache<prometheus::Histogram>();
  static auto* fallback = new prometheus::Histogram(std::vector<double>{1.0});
  return cache->Get(
      name, labels,
      [&]() -> prometheus::Histogram& {
        return prometheus::BuildHistogram()
            .Name(name)
            .Help(help)
            .Register(TheRegistry())
            .Add(labels, bounds);
      },
      *fallback);
}

std::shared_ptr<prometheus::Counter> HeldCounter(const std::string& name, const std::string& help,
                                                 const Labels& labels) {
  static auto* held = new HeldMetrics<prometheus::Counter>();
  return held->Get(name, labels, [&]() -> prometheus::Family<prometheus::Counter>& {
    return prometheus::BuildCounter().Name(name).Help(help).Register(TheRegistry());
  });
}

std::shared_ptr<prometheus::Gauge> HeldGauge(const std::string& name, const std::string& help,
                                             const Labels& labels) {
  static auto* held = new HeldMetrics<prometheus::Gauge>();
  return held->Get(name, labels, [&]() -> prometheus::Family<prometheus::Gauge>& {
    return prometheus::BuildGauge().Name(name).Help(help).Register(TheRegistry());
  });
}

const std::vector<double>& LatencyBounds() {
  static const auto* bounds =
      new std::vector<double>{50e-6, 100e-6, 200e-6, 500e-6, 1e-3, 2e-3, 5e-3, 10e-3, 20e-3, 50e-3,
                              0.1,   0.2,    0.5,    1,      2,    5,    10,   20,    60};
  return *bounds;
}

std::shared_ptr<void> BeforeRender(std::function<void()> update) {
  Updates& updates = TheUpdates();
  std::lock_guard lock(updates.mutex);
  auto* const entry = &updates.functions.emplace_back(std::move(update));
  return {entry, [&updates](std::function<void()>* removed) {
            std::lock_guard removing(updates.mutex);
            updates.functions.remove_if([removed](const auto& one) { return &one == removed; });
          }};
}

std::string Render() {
  {
    Updates& updates = TheUpdates();
    std::lock_guard lock(updates.mutex);
    for (const auto& update : updates.functions) update();
  }
  return prometheus::TextSerializer().Serialize(TheRegistry().Collect());
}

}  // namespace tollgate::metrics
