#include "services/cli/top/figures.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <functional>

#include "common/json/writer.h"
#include "common/money/money.h"

namespace tollgate::cli {
namespace {

using Takes = std::function<bool(const Labels&)>;

std::string LabelOf(const Labels& labels, std::string_view name) {
  const auto found = labels.find(name);
  return found == labels.end() ? "" : found->second;
}

Outcome OutcomeOf(const Labels& labels) {
  const std::string status = LabelOf(labels, "status");
  if (status == "429") return Outcome::kRateLimited;
  if (status == "402") return Outcome::kCredit;
  if (status.starts_with('4')) return Outcome::kClientError;
  if (status.starts_with('5')) return Outcome::kServerError;
  return Outcome::kOk;
}

// Two readings of one process.
struct Pair {
  const Exposition* before = nullptr;  // null: the process did not answer then
  const Exposition* now = nullptr;

  // Increase of a counter, or of one bucket of a histogram.
  double Growth(std::string_view name, const Takes& takes = nullptr) const {
    if (before == nullptr) return 0;
    const double was = before->Sum(name, takes), is = now->Sum(name, takes);
    return is >= was ? is - was : is;
  }
};

class Comparison {
 public:
  Comparison(const Reading& before, const Reading& now) : now_(now) {
    figures_.seconds = static_cast<double>(now.at_us - before.at_us) / 1e6;
    for (const auto& [address, process] : now.processes) {
      const auto earlier = before.processes.find(address);
      const bool was = earlier != before.processes.end() && earlier->second.answers;
      const Pair pair{was ? &earlier->second.metrics : nullptr, &process.metrics};
      Process(address, process.answers, pair);
      if (process.answers) pairs_.push_back(pair);
    }
  }

  Figures Done() {
    Requests();
    Tokens();
    FirstToken();
    Money();
    Engines();
    figures_.running = Now("tollgate_router_running_requests");
    figures_.connections = Now("tollgate_http_connections");
    return std::move(figures_);
  }

 private:
  double PerSecond(double growth) const {
    return figures_.seconds > 0 ? growth / figures_.seconds : 0;
  }
  double Growth(std::string_view name, const Takes& takes = nullptr) const {
    double sum = 0;
    for (const Pair& pair : pairs_) sum += pair.Growth(name, takes);
    return sum;
  }
  double Now(std::string_view name, const Takes& takes = nullptr) const {
    double sum = 0;
    for (const Pair& pair : pairs_) sum += pair.now->Sum(name, takes);
    return sum;
  }
  // All billing replicas report the same database: take the maximum.
  double Most(std::string_view name) const {
    double most = 0;
    for (const Pair& pair : pairs_) most = std::max(most, pair.now->Sum(name));
    return most;
  }

  void Process(const std::string& address, bool answers, const Pair& pair) {
    ProcessFigures process{.name = "?", .address = address, .answers = answers};
    for (const auto& series : pair.now->Find("tollgate_build_info")) {
      process.name = LabelOf(series.labels, "process");
      process.version = LabelOf(series.labels, "version");
    }
    if (answers) {
      process.cpu = PerSecond(pair.Growth("process_cpu_seconds_total"));
      process.memory_bytes = pair.now->Sum("process_resident_memory_bytes");
      process.open_files = pair.now->Sum("process_open_fds");
      process.most_files = pair.now->Sum("process_max_fds");
    }
    figures_.processes.push_back(std::move(process));
  }

  void Requests() {
    for (size_t i = 0; i < kOutcomes; ++i) {
      const auto takes = [i](const Labels& labels) {
        return OutcomeOf(labels) == static_cast<Outcome>(i);
      };
      figures_.requests_total[i] = Now("tollgate_gateway_requests_total", takes);
      figures_.requests_per_second[i] = PerSecond(Growth("tollgate_gateway_requests_total", takes));
    }
  }

  void Tokens() {
    const auto kind = [](const char* name) {
      return [name](const Labels& labels) { return LabelOf(labels, "kind") == name; };
    };
    constexpr char kTokens[] = "tollgate_router_tokens_total";
    figures_.input_tokens_total = Now(kTokens, kind("prompt"));
    figures_.output_tokens_total = Now(kTokens, kind("completion"));
    figures_.input_tokens_per_second = PerSecond(Growth(kTokens, kind("prompt")));
    figures_.output_tokens_per_second = PerSecond(Growth(kTokens, kind("completion")));
  }

  void FirstToken() {
    std::map<double, double> counts;
    for (const Pair& pair : pairs_) {
      if (pair.before == nullptr) continue;
      constexpr char kBuckets[] = "tollgate_gateway_first_token_seconds_bucket";
      for (const auto& series : pair.now->Find(kBuckets)) {
        const std::string bound = LabelOf(series.labels, "le");
        const double grown = pair.Growth(
            kBuckets, [&](const Labels& labels) { return LabelOf(labels, "le") == bound; });
        counts[bound == "+Inf" ? INFINITY : std::strtod(bound.c_str(), nullptr)] += grown;
      }
    }
    figures_.first_token_p50 = Quantile(0.5, counts);
    figures_.first_token_p99 = Quantile(0.99, counts);
  }

  void Money() {
    constexpr char kCharged[] = "tollgate_billing_charged_nano_usd_total";
    figures_.charged_nano_usd_total = std::llround(Now(kCharged));
    figures_.charged_nano_usd_per_second = std::llround(PerSecond(Growth(kCharged)));
    figures_.open_holds = Most("tollgate_billing_open_holds");
    figures_.dead_letters = Most("tollgate_billing_dead_letters_open");
    figures_.database_queue = Now("tollgate_billing_queue_operations");
    figures_.settlements_waiting = Now("tollgate_router_outbox_depth");
    figures_.settlements_wait_seconds = Most("tollgate_router_outbox_waiting_seconds");
  }

  void Engines() {
    std::map<std::string, EngineFigures> engines;
    for (const Pair& pair : pairs_) {
      for (const auto& series : pair.now->Find("tollgate_router_engine_available")) {
        EngineFigures& engine = engines[LabelOf(series.labels, "engine")];
        // A negative value marks an engine that the catalog has dropped.
        if (series.value < 0) continue;
        ++engine.routers;
        engine.up += series.value > 0 ? 1 : 0;
      }
    }
    std::erase_if(engines, [](const auto& engine) { return engine.second.routers == 0; });
    for (auto& [id, engine] : engines) {
      engine.id = id;
      const auto of = [&id](const Labels& labels) { return LabelOf(labels, "engine") == id; };
      const auto failed = [&](const Labels& labels) {
        static const std::vector<std::string> fine = {"ok", "cut_by_credit", "client_gone"};
        return of(labels) && std::ranges::find(fine, LabelOf(labels, "outcome")) == fine.end();
      };
      engine.running = Now("tollgate_router_engine_running_requests", of);
      engine.most = Now("tollgate_router_engine_max_requests", of);
      engine.requests_per_second = PerSecond(Growth("tollgate_router_engine_requests_total", of));
      engine.failures_per_second =
          PerSecond(Growth("tollgate_router_engine_requests_total", failed));
      engine.tokens_per_second =
          PerSecond(Growth("tollgate_router_engine_output_tokens_total", of));
      if (const auto queue = now_.queues.find(id); queue != now_.queues.end()) {
        engine.queue = queue->second;
      }
      figures_.engines.push_back(engine);
    }
  }

  const Reading& now_;
  std::vector<Pair> pairs_;  // one per process that answers
  Figures figures_;
};

std::string Decimal(double value) {
  char text[48];
  std::snprintf(text, sizeof text, "%.3f", value);
  return text;
}

std::string Whole(double value) { return std::to_string(std::llround(value)); }

std::string OrNull(double value) { return value < 0 ? "null" : Decimal(value); }

std::string EngineAsJson(const EngineFigures& engine) {
  return json::Writer()
      .Text("id", engine.id)
      .Number("routers", engine.routers)
      .Number("up", engine.up)
      .Raw("running", Whole(engine.running))
      .Raw("max", engine.most > 0 ? Whole(engine.most) : "null")
      .Raw("queue", engine.queue < 0 ? "null" : Whole(engine.queue))
      .Raw("requests_per_second", Decimal(engine.requests_per_second))
      .Raw("failures_per_second", Decimal(engine.failures_per_second))
      .Raw("tokens_per_second", Decimal(engine.tokens_per_second))
      .Done();
}

std::string ProcessAsJson(const ProcessFigures& process) {
  return json::Writer()
      .Text("name", process.name)
      .Text("address", process.address)
      .Text("version", process.version)
      .Flag("answers", process.answers)
      .Raw("cpu", Decimal(process.cpu))
      .Raw("memory_bytes", Whole(process.memory_bytes))
      .Raw("open_files", Whole(process.open_files))
      .Raw("max_files", Whole(process.most_files))
      .Done();
}

}  // namespace

const char* OutcomeName(Outcome outcome) {
  constexpr std::array<const char*, kOutcomes> kNames = {"ok", "client_error", "rate_limited",
                                                         "no_credit", "server_error"};
  return kNames.at(static_cast<size_t>(outcome));
}

double Figures::requests() const {
  double sum = 0;
  for (const double rate : requests_per_second) sum += rate;
  return sum;
}

Figures Compare(const Reading& before, const Reading& now) {
  return Comparison(before, now).Done();
}

double Quantile(double share, const std::map<double, double>& counts) {
  if (counts.empty() || counts.rbegin()->second <= 0) return -1;
  const double wanted = share * counts.rbegin()->second;
  double below = 0, below_bound = 0;
  for (const auto& [bound, count] : counts) {
    if (count >= wanted && count > below) {
      // The value is in the last bucket, which has no upper bound: return its lower bound.
      if (std::isinf(bound)) return below_bound;
      return below_bound + (bound - below_bound) * (wanted - below) / (count - below);
    }
    below = count;
    if (!std::isinf(bound)) below_bound = bound;
  }
  return below_bound;
}

const char* OrderName(EngineOrder order) {
  constexpr std::array<const char*, kEngineOrders> kNames = {"name", "load", "tokens", "failures"};
  return kNames.at(static_cast<size_t>(order));
}

void Sort(std::vector<EngineFigures>& engines, EngineOrder order) {
  const auto key = [order](const EngineFigures& engine) {
    switch (order) {
      case EngineOrder::kLoad:
        return engine.running;
      case EngineOrder::kTokens:
        return engine.tokens_per_second;
      case EngineOrder::kFailures:
        return engine.failures_per_second;
      case EngineOrder::kName:
        break;
    }
    return 0.0;
  };
  std::ranges::sort(engines, [&](const EngineFigures& a, const EngineFigures& b) {
    return key(a) != key(b) ? key(a) > key(b) : a.id < b.id;
  });
}

std::string FiguresAsJson(const Figures& figures) {
  json::Writer rates, totals;
  for (size_t i = 0; i < kOutcomes; ++i) {
    const char* name = OutcomeName(static_cast<Outcome>(i));
    rates.Raw(name, Decimal(figures.requests_per_second[i]));
    totals.Raw(name, Whole(figures.requests_total[i]));
  }
  return json::Writer()
             .Raw("seconds", Decimal(figures.seconds))
             .Raw("requests_per_second", rates.Done())
             .Raw("requests_total", totals.Done())
             .Raw("input_tokens_per_second", Decimal(figures.input_tokens_per_second))
             .Raw("output_tokens_per_second", Decimal(figures.output_tokens_per_second))
             .Raw("input_tokens_total", Whole(figures.input_tokens_total))
             .Raw("output_tokens_total", Whole(figures.output_tokens_total))
             .Raw("running_requests", Whole(figures.running))
             .Raw("connections", Whole(figures.connections))
             .Raw("first_token_p50_seconds", OrNull(figures.first_token_p50))
             .Raw("first_token_p99_seconds", OrNull(figures.first_token_p99))
             .Text("charged_usd_per_second", NanoToDecimalUsd(figures.charged_nano_usd_per_second))
             .Text("charged_usd_total", NanoToDecimalUsd(figures.charged_nano_usd_total))
             .Raw("open_holds", Whole(figures.open_holds))
             .Raw("settlements_waiting", Whole(figures.settlements_waiting))
             .Raw("settlements_wait_seconds", Decimal(figures.settlements_wait_seconds))
             .Raw("dead_letters_open", Whole(figures.dead_letters))
             .Raw("ledger_queue", Whole(figures.database_queue))
             .Raw("engines", json::WriteArray(figures.engines, EngineAsJson))
             .Raw("processes", json::WriteArray(figures.processes, ProcessAsJson))
             .Done() +
         "\n";
}

}  // namespace tollgate::cli
