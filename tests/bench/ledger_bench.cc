// Throughput of the ledger, without RPC: pairs of authorize and settle through group commit, on
// SQLite and on a PostgreSQL server of its own, with many workspaces and with one. Behind
// `./dev bench ledger`.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "services/billing/commit/ledger_service.h"
#include "tests/bench/histogram.h"
#include "tests/bench/ledger_load.h"
#include "tests/bench/load.h"
#include "tests/support/postgres.h"

namespace {

using namespace tollgate;           // NOLINT
using namespace tollgate::billing;  // NOLINT
using bench::Histogram;
using bench::LedgerLoad;
using bench::LedgerMeasured;

constexpr int kSpread = 1000;  // workspaces

struct Flags {
  std::string store;    // empty: all
  double seconds = 5;   // of each measurement
  int callers = 256;    // each authorizes and settles one request after the other
  int64_t rate = -1;    // pairs per second in the paced load; 0: none; -1: the store's goal
  int connections = 0;  // PostgreSQL; 0: the product's default
  std::string url;      // a running server to use instead of starting one
};

struct Store {
  std::string name;
  sql::Database::Options sql;
  int64_t goal = 0;  // pairs per second
};

// This process and its descendants: the database server is among them.
std::vector<int> Processes() {
  std::vector<std::pair<int, int>> parents;  // pid and parent pid
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/proc", error)) {
    const int pid = std::atoi(entry.path().filename().c_str());
    if (pid <= 0) continue;
    std::ifstream file(entry.path() / "stat");
    std::string stat(std::istreambuf_iterator<char>(file), {});
    const size_t name_end = stat.rfind(')');  // the name may contain any character
    if (name_end != std::string::npos && stat.size() > name_end + 4) {
      parents.emplace_back(std::atoi(stat.c_str() + name_end + 4), pid);
    }
  }
  std::vector<int> found = {getpid()};
  for (size_t i = 0; i < found.size(); ++i) {
    for (const auto& [parent, child] : parents) {
      if (parent == found[i]) found.push_back(child);
    }
  }
  return found;
}

std::string Load1() {
  double load = 0;
  return getloadavg(&load, 1) == 1 ? std::to_string(load).substr(0, 4) : "?";
}

void Print(const Store& store, bool hot, const char* load, const LedgerMeasured& m,
           int64_t cpu_us) {
  const auto ms = [](const Histogram& times, double share) {
    return static_cast<double>(times.Percentile(share)) / 1000;
  };
  std::printf("| %s | %s | %s | %.0f | %.1f / %.1f | %.1f / %.1f | %lld | %.0f | %s |\n",
              store.name.c_str(), hot ? "hot" : "spread", load, m.pairs_per_second(),
              ms(m.authorize, 0.5), ms(m.authorize, 0.99), ms(m.settle, 0.5), ms(m.settle, 0.99),
              static_cast<long long>(m.refused),
              static_cast<double>(cpu_us) / static_cast<double>(std::max<int64_t>(m.pairs, 1)),
              Load1().c_str());
  std::fflush(stdout);
}

bool Measure(const Store& store, const Flags& flags) {
  LedgerService::Options options;
  options.sql = store.sql;
  LedgerService ledger(options, SystemClock::Get());
  if (auto started = ledger.Start(); !started.ok()) {
    std::fprintf(stderr, "%s\n", started.error().ToString().c_str());
    return false;
  }
  while (!ledger.Ready()) std::this_thread::sleep_for(std::chrono::milliseconds(5));
  if (!bench::AddCredit(ledger, kSpread)) return false;
  for (const bool hot : {false, true}) {
    const int workspaces = hot ? 1 : kSpread;
    LedgerLoad(ledger, workspaces).Closed(flags.callers, flags.seconds / 5);  // warm up
    const std::vector<int> processes = Processes();
    int64_t before_us = bench::CpuUsOf(processes);
    const auto print = [&](const std::string& load, const LedgerMeasured& measured) {
      const int64_t after_us = bench::CpuUsOf(processes);
      Print(store, hot, load.c_str(), measured, after_us - std::exchange(before_us, after_us));
    };
    print("full", LedgerLoad(ledger, workspaces).Closed(flags.callers, flags.seconds));
    const int64_t rate = flags.rate < 0 ? store.goal : flags.rate;
    if (rate == 0) continue;
    print(std::to_string(rate) + "/s", LedgerLoad(ledger, workspaces).Paced(rate, flags.seconds));
  }
  return true;
}

int Run(const Flags& flags) {
  std::string folder = (std::filesystem::temp_directory_path() / "tollgate-bench-XXXXXX").string();
  if (mkdtemp(folder.data()) == nullptr) return 1;
  std::vector<Store> stores;
  Store sqlite{"sqlite", {}, 10'000};
  sqlite.sql.url = "sqlite:" + folder + "/flushed.db";
  stores.push_back(sqlite);
  sqlite.name = "sqlite-deferred";
  sqlite.sql.url = "sqlite:" + folder + "/deferred.db";
  sqlite.sql.deferred_sync = true;
  stores.push_back(sqlite);
  Store postgres{"postgres", {}, 5'000};
  std::unique_ptr<testing::TestPostgres> server;
  if (flags.store.empty() || flags.store == postgres.name) {
    if (flags.url.empty()) server = testing::TestPostgres::Start();
    postgres.sql.url = server ? server->MakeDatabase("bench") : flags.url;
    if (postgres.sql.url.empty()) std::fprintf(stderr, "PostgreSQL is not installed\n");
  }
  if (flags.connections > 0) postgres.sql.connections = flags.connections;
  if (!postgres.sql.url.empty()) stores.push_back(postgres);
  std::printf(
      "| store | workspaces | load | pairs/s | authorize p50 / p99, ms | settle p50 / p99, ms |"
      " refused | CPU us per pair | machine load |\n|---|---|---|---|---|---|---|---|---|\n");
  bool ok = true;
  for (const Store& store : stores) {
    if (!flags.store.empty() && store.name != flags.store) continue;
    ok = Measure(store, flags) && ok;
  }
  std::error_code error;
  std::filesystem::remove_all(folder, error);
  return ok ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    const char* value = argv[i + 1];
    if (name == "--store") {
      flags.store = value;
    } else if (name == "--seconds") {
      flags.seconds = std::atof(value);
    } else if (name == "--callers") {
      flags.callers = std::atoi(value);
    } else if (name == "--rate") {
      flags.rate = std::atoll(value);
    } else if (name == "--connections") {
      flags.connections = std::atoi(value);
    } else if (name == "--url") {
      flags.url = value;
    } else {
      argc = 0;
    }
  }
  if (argc % 2 == 0) {
    std::fprintf(stderr,
                 "usage: tollgate-ledger-bench [--store sqlite|sqlite-deferred|postgres]"
                 " [--seconds 5] [--callers 256] [--rate N] [--connections N] [--url URL]\n");
    return 2;
  }
  return Run(flags);
}
