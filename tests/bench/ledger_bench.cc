// Throughput of the ledger, without RPC: pairs of authorize and settle through group commit, on
// SQLite and on a PostgreSQL server of its own, of many workspaces and of one. Behind
// `./dev bench ledger`.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <iterator>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "services/billing/commit/ledger_service.h"
#include "tests/bench/histogram.h"
#include "tests/bench/load.h"
#include "tests/support/postgres.h"

namespace {

using namespace tollgate;           // NOLINT
using namespace tollgate::billing;  // NOLINT
using bench::Histogram;

constexpr int kSpread = 1000;  // workspaces
constexpr int kKeys = 5;       // of each

struct Flags {
  std::string store;    // empty: all
  double seconds = 5;   // of each measurement
  int callers = 256;    // each authorizes and settles one request after the other
  int64_t rate = -1;    // pairs per second in the paced load; 0: none; -1: the store's goal
  int connections = 0;  // PostgreSQL; 0: the product's default
  std::string url;      // a server that runs already, instead of one of its own
};

struct Store {
  std::string name;
  sql::Database::Options sql;
  int64_t goal = 0;  // pairs per second
};

struct Measured {
  double pairs_per_second = 0;
  double cpu_us = 0;  // of a pair, in all processes that this one has started, and in it
  int64_t refused = 0;
  Histogram authorize, settle;
};

// This process and those that it has started, directly or not: the database server.
std::vector<int> Processes() {
  std::vector<std::pair<int, int>> parents;  // and children
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

// Calls that run at the same time; each is over when its settle has been answered.
class Load {
 public:
  Load(LedgerService& ledger, int workspaces) : ledger_(ledger), workspaces_(workspaces) {}

  // At full speed: each caller begins anew when its request is settled.
  Measured Closed(int callers, double seconds) {
    closed_ = true;
    const int64_t begin_us = NowUs();
    end_us_ = begin_us + static_cast<int64_t>(seconds * 1e6);
    for (int i = 0; i < callers; ++i) Begin(NowUs());
    return Finish(begin_us);
  }

  // At a steady rate, whatever the answers take. Times count from when a request was due.
  Measured Paced(int64_t rate, double seconds) {
    const int64_t begin_us = NowUs();
    const int64_t count = static_cast<int64_t>(seconds * static_cast<double>(rate));
    for (int64_t i = 0; i < count; ++i) {
      const int64_t due_us = begin_us + i * 1'000'000 / rate;
      if (const int64_t now_us = NowUs(); now_us < due_us) {
        std::this_thread::sleep_for(std::chrono::microseconds(due_us - now_us));
      }
      Begin(due_us);
    }
    return Finish(begin_us);
  }

 private:
  static int64_t NowUs() { return SystemClock::Get().MonotonicUs(); }

  void Begin(int64_t due_us) {
    static std::atomic<uint64_t> ids = 0;
    const uint64_t n = ++ids;
    ++running_;
    Authorize op;
    op.request_id = Id::Make(SystemClock::Get().WallUs() / 1000, 0, n);
    op.workspace = "bench-" + std::to_string(n % workspaces_);
    op.key_id = "key_0123456789abcdef_" + std::to_string(n / workspaces_ % kKeys);
    op.model = "demo/model-large";
    op.rates = {1'000'000, 3'000'000};
    op.price_version = 3;
    op.prompt_bound = 900;
    op.output_bound = 500;
    op.surface = Surface::kChatCompletions;
    op.streamed = true;
    op.client_request_id = "req_0123456789abcdef0123456789abcdef";
    Settle settle;
    settle.request_id = op.request_id;
    settle.workspace = op.workspace;
    settle.sequence = 1;
    settle.usage = {800, 200, 0, 300, 0};
    settle.outcome = Outcome::kCompleted;
    settle.engine = "engine-1";
    settle.first_token_us = 120'000;
    ledger_.Submit({std::move(op)}, [this, due_us, settle = std::move(settle)](auto held) mutable {
      const int64_t held_us = NowUs();
      if (!held.ok() || !held->front().ok) return Refused();
      authorize_.Add(mutex_, held_us - due_us);
      ledger_.Submit({std::move(settle)}, [this, held_us](auto settled) {
        if (!settled.ok() || !settled->front().ok) return Refused();
        const int64_t now_us = NowUs();
        settle_.Add(mutex_, now_us - held_us);
        if (closed_ && now_us < end_us_) Begin(now_us);
        End();
      });
    });
  }

  void Refused() {
    ++refused_;
    End();
  }
  void End() {
    if (--running_ > 0) return;
    const std::lock_guard lock(mutex_);
    idle_.notify_all();
  }

  Measured Finish(int64_t begin_us) {
    {
      std::unique_lock lock(mutex_);
      idle_.wait(lock, [this] { return running_ == 0; });
    }
    const double took = static_cast<double>(NowUs() - begin_us) / 1e6;
    const double pairs = static_cast<double>(std::max<int64_t>(settle_.values.count(), 1));
    return {pairs / took, static_cast<double>(bench::CpuUsOf(processes_) - cpu_us_) / pairs,
            refused_, std::move(authorize_.values), std::move(settle_.values)};
  }

  struct Times {
    void Add(std::mutex& mutex, int64_t us) {
      const std::lock_guard lock(mutex);
      values.Add(us);
    }
    Histogram values;
  };

  LedgerService& ledger_;
  const uint64_t workspaces_;
  const std::vector<int> processes_ = Processes();
  const int64_t cpu_us_ = bench::CpuUsOf(processes_);
  bool closed_ = false;
  int64_t end_us_ = 0;
  std::atomic<int64_t> running_ = 0;
  std::atomic<int64_t> refused_ = 0;
  std::mutex mutex_;
  std::condition_variable idle_;
  Times authorize_, settle_;
};

bool AddCredit(LedgerService& ledger, int workspaces) {
  std::vector<Operation> operations;
  for (int w = 0; w < workspaces; ++w) {
    billing::AddCredit op;
    op.workspace = "bench-" + std::to_string(w);
    op.command_id = "credit";
    op.amount_nano_usd = 1'000'000 * kNanoPerUsd;
    op.actor = "bench";
    operations.push_back(std::move(op));
  }
  std::promise<bool> done;
  ledger.Submit(std::move(operations), [&](Result<std::vector<Reply>> replies) {
    const bool ok = replies.ok() && std::all_of(replies->begin(), replies->end(),
                                                [](const Reply& reply) { return reply.ok; });
    if (!ok) std::fprintf(stderr, "the credit was refused\n");
    done.set_value(ok);
  });
  return done.get_future().get();
}

std::string Load1() {
  double load = 0;
  return getloadavg(&load, 1) == 1 ? std::to_string(load).substr(0, 4) : "?";
}

void Print(const Store& store, bool hot, const char* load, const Measured& m) {
  const auto ms = [](const Histogram& times, double share) {
    return static_cast<double>(times.Percentile(share)) / 1000;
  };
  std::printf("| %s | %s | %s | %.0f | %.1f / %.1f | %.1f / %.1f | %lld | %.0f | %s |\n",
              store.name.c_str(), hot ? "hot" : "spread", load, m.pairs_per_second,
              ms(m.authorize, 0.5), ms(m.authorize, 0.99), ms(m.settle, 0.5), ms(m.settle, 0.99),
              static_cast<long long>(m.refused), m.cpu_us, Load1().c_str());
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
  if (!AddCredit(ledger, kSpread)) return false;
  for (const bool hot : {false, true}) {
    const int workspaces = hot ? 1 : kSpread;
    Load(ledger, workspaces).Closed(flags.callers, flags.seconds / 5);  // warm up
    Print(store, hot, "full", Load(ledger, workspaces).Closed(flags.callers, flags.seconds));
    const int64_t rate = flags.rate < 0 ? store.goal : flags.rate;
    if (rate == 0) continue;
    Print(store, hot, (std::to_string(rate) + "/s").c_str(),
          Load(ledger, workspaces).Paced(rate, flags.seconds));
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
