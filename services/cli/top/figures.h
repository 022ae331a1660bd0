// Figures of the live view: rates and states, computed from two readings of the processes' metrics.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "services/cli/top/exposition.h"

namespace tollgate::cli {

// A source of metrics: a process, or an engine of the catalog for its queue.
struct Source {
  std::string address;  // host:port of ops_listen
  // Set for an engine: its id, the URL of its metrics, its API key and the metric of its queue.
  std::string engine;
  std::string url;
  std::string bearer;
  std::string queue_metric;
};

// One reading of all sources.
struct Reading {
  int64_t at_us = 0;  // monotonic
  struct Process {
    bool answers = false;
    Exposition metrics;
  };
  std::map<std::string, Process> processes;  // by address
  std::map<std::string, double> queues;      // by engine; only those that reported one
};

enum class Outcome : uint8_t { kOk, kClientError, kRateLimited, kCredit, kServerError };
inline constexpr size_t kOutcomes = 5;
// ok, client_error, rate_limited, no_credit or server_error.
const char* OutcomeName(Outcome outcome);

struct EngineFigures {
  std::string id;
  // Number of routers that send it requests, and of those that know it.
  int up = 0;
  int routers = 0;
  double running = 0;
  double most = 0;    // 0: no limit
  double queue = -1;  // requests that wait in the engine; -1: unknown
  double requests_per_second = 0;
  double failures_per_second = 0;
  double tokens_per_second = 0;  // from finished answers
};

struct ProcessFigures {
  std::string name;
  std::string address;
  std::string version;
  bool answers = false;
  double cpu = 0;  // processors
  double memory_bytes = 0;
  double open_files = 0;
  double most_files = 0;
};

struct Figures {
  // Time between the two readings; 0: there is only one, and all rates are 0.
  double seconds = 0;
  std::array<double, kOutcomes> requests_per_second{};
  std::array<double, kOutcomes> requests_total{};
  double input_tokens_per_second = 0;
  double output_tokens_per_second = 0;
  double input_tokens_total = 0;
  double output_tokens_total = 0;
  double running = 0;           // requests at the routers
  double connections = 0;       // from clients
  double first_token_p50 = -1;  // seconds; -1: none in this interval
  double first_token_p99 = -1;
  int64_t charged_nano_usd_per_second = 0;
  int64_t charged_nano_usd_total = 0;
  double open_holds = 0;
  double settlements_waiting = 0;
  double settlements_wait_seconds = 0;
  double dead_letters = 0;
  double database_queue = 0;  // operations that wait for the ledger
  std::vector<EngineFigures> engines;
  std::vector<ProcessFigures> processes;

  double requests() const;
};

// A counter that decreased has restarted from 0, with its process.
Figures Compare(const Reading& before, const Reading& now);

// Quantile of a histogram, computed as Prometheus's histogram_quantile does; -1 without
// observations. counts: cumulative, by upper bound.
double Quantile(double share, const std::map<double, double>& counts);

enum class EngineOrder : uint8_t { kName, kLoad, kTokens, kFailures };
inline constexpr int kEngineOrders = 4;
const char* OrderName(EngineOrder order);
void Sort(std::vector<EngineFigures>& engines, EngineOrder order);

// One line of JSON.
std::string FiguresAsJson(const Figures& figures);

}  // namespace tollgate::cli
