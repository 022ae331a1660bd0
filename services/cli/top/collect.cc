#include "services/cli/top/collect.h"

#include <future>
#include <optional>

#include "common/base/clock.h"
#include "common/config/substitute.h"
#include "common/http/http_call.h"
#include "common/json/json.h"

namespace tollgate::cli {
namespace {

// Metric of the number of requests that wait in an engine of this kind; empty: it has none.
std::string QueueMetric(const std::string& kind) {
  if (kind == "vllm") return "vllm:num_requests_waiting";
  if (kind == "sglang") return "sglang:num_queue_reqs";
  if (kind == "llamacpp") return "llamacpp:requests_deferred";
  if (kind == "tgi") return "tgi_queue_size";
  return "";
}

std::optional<Exposition> Fetch(const std::string& url, const std::string& bearer, int timeout_ms) {
  http::HttpCall call;
  call.url = url;
  call.bearer = bearer;
  call.timeout_ms = timeout_ms;
  call.connect_timeout_ms = timeout_ms;
  call.use_proxy = false;
  const http::HttpAnswer answer = http::Send(call);
  if (answer.outcome != http::HttpAnswer::Outcome::kAnswered || answer.status != 200) {
    return std::nullopt;
  }
  return Exposition::Parse(answer.body);
}

}  // namespace

std::vector<Source> SourcesOf(const Inventory& inventory) {
  std::vector<Source> sources;
  for (const ServiceConfig& service : inventory.services) {
    const auto& host = service.config.host();
    const std::string ops = host.ops_listen().empty() ? host.admin_listen() : host.ops_listen();
    if (!ops.empty() && !ops.ends_with(":0")) sources.push_back({.address = CalledFromHere(ops)});
  }
  for (const CatalogConfig& catalog : inventory.catalogs) {
    for (const auto& pool : catalog.file.pools()) {
      for (const auto& engine : pool.engines()) {
        const std::string metric = QueueMetric(engine.kind());
        if (metric.empty()) continue;
        sources.push_back({.engine = engine.id(),
                           .url = engine.base_url() + "/metrics",
                           .bearer = engine.api_key(),
                           .queue_metric = metric});
      }
    }
  }
  return sources;
}

std::vector<Source> SourcesOfHome(const std::string& home) {
  const auto text = config::ReadWholeFile(home + "/run/addresses.json");
  if (!text) return {};
  const auto addresses = json::Document::ParseView(*text);
  if (!addresses.ok()) return {};
  const std::string admin = addresses->root().Find("admin").string();
  if (admin.empty()) return {};
  return {{.address = admin}};
}

Reading ReadAll(const std::vector<Source>& sources, int timeout_ms) {
  Reading reading;
  reading.at_us = SystemClock::Get().MonotonicUs();
  std::vector<std::future<std::optional<Exposition>>> answers;
  for (const Source& source : sources) {
    const std::string url =
        source.engine.empty() ? "http://" + source.address + "/metrics" : source.url;
    answers.push_back(std::async(std::launch::async, Fetch, url, source.bearer, timeout_ms));
  }
  for (size_t i = 0; i < sources.size(); ++i) {
    std::optional<Exposition> answer = answers[i].get();
    const Source& source = sources[i];
    if (!source.engine.empty()) {
      if (answer && answer->Has(source.queue_metric)) {
        reading.queues[source.engine] = answer->Sum(source.queue_metric);
      }
      continue;
    }
    Reading::Process& process = reading.processes[source.address];
    process.answers = answer.has_value();
    if (answer) process.metrics = std::move(*answer);
  }
  return reading;
}

}  // namespace tollgate::cli
