// What a pair of authorize and settle costs the servers of a ledger, on one PostgreSQL and on
// Citus: CPU time of billing's part, of the coordinator and of each worker, statements and commits,
// and how the database grows. Prints one JSON object per load. Behind `./dev bench citus`.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <numeric>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "services/billing/commit/ledger_service.h"
#include "services/billing/storage/distribute.h"
#include "tests/bench/ledger_load.h"
#include "tests/bench/load.h"
#include "tests/support/postgres.h"

namespace {

using namespace tollgate;           // NOLINT
using namespace tollgate::billing;  // NOLINT
using bench::LedgerLoad;
using bench::LedgerMeasured;
using testing::TestPostgres;

constexpr const char* kDatabase = "bench";

struct Flags {
  int workers = 0;  // 0: one PostgreSQL without Citus
  int workspaces = 1000;
  int64_t rate = 50;   // pairs per second of the steady loads
  int callers = 500;   // of the loads at full speed
  double seconds = 8;  // of each load
  int shards = 32;
  int warmup = 800;     // pairs before the measurement
  int connections = 0;  // 0: the product's default
};

// CPU time of a server and its children, including children that have exited.
int64_t ServerCpuUs(const TestPostgres& server) {
  std::vector<int> pids;
  for (const pid_t pid : server.Pids(TestPostgres::Part::kAll)) pids.push_back(pid);
  int64_t cpu_us = bench::CpuUsOf(pids);
  for (const pid_t parent : server.Pids(TestPostgres::Part::kParent)) {
    std::ifstream file("/proc/" + std::to_string(parent) + "/stat");
    std::string stat;
    std::getline(file, stat);
    const size_t name_end = stat.rfind(')');
    if (name_end == std::string::npos) continue;
    int64_t user = 0;
    int64_t system = 0;
    // Fields: state, ten more, user and system time, then those of reaped children.
    if (std::sscanf(stat.c_str() + name_end + 1,
                    " %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u %*u %ld %ld", &user,
                    &system) == 2) {
      cpu_us += (user + system) * (1'000'000 / sysconf(_SC_CLK_TCK));
    }
  }
  return cpu_us;
}

// The coordinator, or the only server, comes first, then the workers.
class Servers {
 public:
  explicit Servers(TestPostgres& first) {
    nodes_.push_back(&first);
    for (int i = 0; i < first.workers(); ++i) nodes_.push_back(&first.worker(i));
  }

  size_t size() const { return nodes_.size(); }

  std::vector<int64_t> CpuUs() const {
    std::vector<int64_t> found;
    for (const TestPostgres* node : nodes_) found.push_back(ServerCpuUs(*node));
    return found;
  }

  // One number per server; -1 where it cannot be read.
  std::vector<int64_t> Read(const std::string& sql) const {
    std::vector<int64_t> found;
    for (const TestPostgres* node : nodes_) {
      int64_t number = -1;
      if (auto database = sql::Database::Open({.url = node->Url(kDatabase)}); database.ok()) {
        if (auto connection = (*database)->Connect(); connection.ok()) {
          (void)(*connection)->Query(sql, {}, [&](const sql::Row& row) { number = row.Int(0); });
        }
      }
      found.push_back(number);
    }
    return found;
  }

  bool Set(const std::string& settings) const {
    bool done = true;
    for (const TestPostgres* node : nodes_) {
      for (size_t begin = 0; begin < settings.size();) {
        const size_t end = std::min(settings.find(';', begin), settings.size());
        done = node->Execute("ALTER SYSTEM " + settings.substr(begin, end - begin)) && done;
        begin = end + 1;
      }
      done = node->Execute("SELECT pg_reload_conf()") && done;
    }
    return done;
  }

  // What the servers have logged since the last call.
  struct Logged {
    int64_t statements = 0, commits = 0, prepared = 0, lock_waits = 0;
  };
  std::vector<Logged> ReadLogs() {
    offsets_.resize(nodes_.size());
    std::vector<Logged> found;
    for (size_t i = 0; i < nodes_.size(); ++i) found.push_back(ReadLog(nodes_[i], offsets_[i]));
    return found;
  }

 private:
  static Logged ReadLog(const TestPostgres* node, std::streamoff& offset) {
    Logged found;
    std::ifstream file(node->log_file());
    file.seekg(offset);
    std::string line;
    while (std::getline(file, line)) {
      offset += static_cast<std::streamoff>(line.size()) + 1;
      if (line.find("LOG:  process") != std::string::npos &&
          line.find("still waiting") != std::string::npos) {
        ++found.lock_waits;
      }
      size_t text = line.find("LOG:  statement: ");
      if (text == std::string::npos) text = line.find("LOG:  execute ");
      if (text == std::string::npos) continue;
      ++found.statements;
      const std::string_view statement =
          std::string_view(line).substr(line.find(": ", text + 6) + 2);
      found.commits += statement.starts_with("COMMIT") ? 1 : 0;
      found.prepared += statement.starts_with("PREPARE TRANSACTION") ? 1 : 0;
    }
    return found;
  }

  std::vector<const TestPostgres*> nodes_;
  std::vector<std::streamoff> offsets_;
};

template <typename T>
std::string List(const std::vector<T>& values) {
  std::string text;
  for (const T value : values) text += (text.empty() ? "[" : ", ") + std::to_string(value);
  return text.empty() ? "[]" : text + "]";
}

template <typename T>
std::vector<T> Less(std::vector<T> after, const std::vector<T>& before) {
  for (size_t i = 0; i < after.size(); ++i) after[i] -= before[i];
  return after;
}

class Bench {
 public:
  Bench(const Flags& flags, TestPostgres& server) : flags_(flags), servers_(server) {
    url_ = server.MakeDatabase(kDatabase);
  }

  bool Run() {
    LedgerService::Options options;
    options.sql.url = url_;
    if (flags_.connections > 0) options.sql.connections = flags_.connections;
    options.group_commit.call_timeout_ms = 60'000;  // all credit is added in one call
    LedgerService ledger(options, SystemClock::Get());
    ledger.OnCommitted([this](std::span<const Operation> operations) {
      ++batches_;
      operations_ += static_cast<int64_t>(operations.size());
    });
    if (auto started = ledger.Start(); !started.ok()) {
      std::fprintf(stderr, "%s\n", started.error().ToString().c_str());
      return false;
    }
    while (!ledger.Ready()) Sleep(0.005);
    if (flags_.workers > 0 && !Distribute()) return false;
    // Billing asks once a second whether the ledger is distributed.
    Sleep(2.5);
    if (!bench::AddCredit(ledger, flags_.workspaces)) return false;
    // Until each session has used most shards: the first use costs a worker many times as much.
    const double seen = static_cast<double>(flags_.warmup) / static_cast<double>(Rate());
    LedgerLoad(ledger, flags_.workspaces).Paced(Rate(), seen);
    Measure("idle", [] { return LedgerMeasured(); }, flags_.seconds);
    Measure("spread", [&] { return LedgerLoad(ledger, flags_.workspaces).Paced(Rate(), Time()); });
    Measure("hot", [&] { return LedgerLoad(ledger, 1).Paced(Rate(), Time()); });
    if (flags_.callers > 0) {
      Measure("full",
              [&] { return LedgerLoad(ledger, flags_.workspaces).Closed(flags_.callers, Time()); });
      Measure("hot full", [&] { return LedgerLoad(ledger, 1).Closed(flags_.callers, Time()); });
    }
    return Count(ledger);
  }

 private:
  static void Sleep(double seconds) {
    std::this_thread::sleep_for(std::chrono::duration<double>(seconds));
  }
  int64_t Rate() const { return flags_.rate; }
  double Time() const { return flags_.seconds; }

  bool Distribute() {
    auto database = sql::Database::Open({.url = url_});
    if (!database.ok()) return false;
    auto connection = (*database)->Connect();
    if (!connection.ok()) return false;
    auto plan = PlanDistribution(**connection);
    auto done = plan.ok() ? DistributeLedger(**connection, *plan, flags_.shards)
                          : sql::SqlResult<void>(Fail{plan.error()});
    if (!done.ok()) std::fprintf(stderr, "%s\n", done.error().message.c_str());
    return done.ok();
  }

  template <typename Load>
  void Measure(const char* name, Load load, double rest = 0) {
    const std::string size = "SELECT pg_database_size(current_database())";
    const std::string wal =
        "SELECT CAST(pg_wal_lsn_diff(pg_current_wal_insert_lsn(), '0/0') AS BIGINT)";
    const auto bytes_before = servers_.Read(size);
    const auto wal_before = servers_.Read(wal);
    const int64_t batches = batches_;
    const int64_t operations = operations_;
    const auto begun = std::chrono::steady_clock::now();
    const int64_t own_us = bench::CpuUsOf({getpid()});
    const auto cpu_us = servers_.CpuUs();
    const LedgerMeasured m = load();
    Sleep(rest);
    const auto cpu = Less(servers_.CpuUs(), cpu_us);
    const int64_t own = bench::CpuUsOf({getpid()}) - own_us;
    const double seconds =
        std::chrono::duration<double>(std::chrono::steady_clock::now() - begun).count();
    double machine = 0;
    (void)getloadavg(&machine, 1);
    const auto ms = [](const bench::Histogram& times, double share) {
      return static_cast<double>(times.Percentile(share)) / 1000;
    };
    std::printf(
        "{\"load\": \"%s\", \"workers\": %d, \"seconds\": %.3f, \"pairs\": %lld, \"refused\": %lld,"
        " \"batches\": %lld, \"operations\": %lld, \"billing_us\": %lld, \"servers_us\": %s,"
        " \"authorize_ms\": [%.1f, %.1f], \"settle_ms\": [%.1f, %.1f], \"bytes\": %s,"
        " \"wal_bytes\": %s, \"machine_load\": %.1f}\n",
        name, flags_.workers, seconds, static_cast<long long>(m.pairs),
        static_cast<long long>(m.refused), static_cast<long long>(batches_ - batches),
        static_cast<long long>(operations_ - operations), static_cast<long long>(own),
        List(cpu).c_str(), ms(m.authorize, 0.5), ms(m.authorize, 0.99), ms(m.settle, 0.5),
        ms(m.settle, 0.99), List(Less(servers_.Read(size), bytes_before)).c_str(),
        List(Less(servers_.Read(wal), wal_before)).c_str(), machine);
    std::fflush(stdout);
  }

  // The servers log each statement meanwhile, so CPU times are meaningless. The statements of an
  // idle period are subtracted.
  bool Count(LedgerService& ledger) {
    if (!servers_.Set("SET log_statement = 'all';SET log_lock_waits = on;"
                      "SET deadlock_timeout = '10ms'") ||
        (flags_.workers > 0 &&
         !servers_.Set("SET citus.distributed_deadlock_detection_factor = '-1'"))) {
      return false;
    }
    for (const int workspaces : {flags_.workspaces, 1}) {
      Sleep(1);
      servers_.ReadLogs();
      const auto begun = std::chrono::steady_clock::now();
      Sleep(4);
      const auto idle = servers_.ReadLogs();
      const std::chrono::duration<double> idled = std::chrono::steady_clock::now() - begun;
      const int64_t batches = batches_;
      const int64_t operations = operations_;
      const LedgerMeasured m = LedgerLoad(ledger, workspaces).Paced(Rate(), 4);
      const auto logged = servers_.ReadLogs();
      const double share = m.seconds / idled.count();
      std::vector<double> statements, commits, prepared, lock_waits;
      for (size_t i = 0; i < servers_.size(); ++i) {
        const auto without = [&](int64_t seen, int64_t at_rest) {
          return std::max(0.0, static_cast<double>(seen) - share * static_cast<double>(at_rest));
        };
        statements.push_back(without(logged[i].statements, idle[i].statements));
        commits.push_back(without(logged[i].commits, idle[i].commits));
        prepared.push_back(without(logged[i].prepared, idle[i].prepared));
        lock_waits.push_back(without(logged[i].lock_waits, idle[i].lock_waits));
      }
      std::printf(
          "{\"load\": \"count %s\", \"workers\": %d, \"pairs\": %lld, \"refused\": %lld,"
          " \"batches\": %lld, \"operations\": %lld, \"statements\": %s, \"commits\": %s,"
          " \"prepared\": %s, \"lock_waits\": %s}\n",
          workspaces == 1 ? "hot" : "spread", flags_.workers, static_cast<long long>(m.pairs),
          static_cast<long long>(m.refused), static_cast<long long>(batches_ - batches),
          static_cast<long long>(operations_ - operations), List(statements).c_str(),
          List(commits).c_str(), List(prepared).c_str(), List(lock_waits).c_str());
      std::fflush(stdout);
    }
    return true;
  }

  const Flags flags_;
  Servers servers_;
  std::string url_;
  std::atomic<int64_t> batches_ = 0;
  std::atomic<int64_t> operations_ = 0;
};

}  // namespace

int main(int argc, char** argv) {
  Flags flags;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    const char* value = argv[i + 1];
    if (name == "--workers") {
      flags.workers = std::atoi(value);
    } else if (name == "--workspaces") {
      flags.workspaces = std::atoi(value);
    } else if (name == "--rate") {
      flags.rate = std::atoll(value);
    } else if (name == "--callers") {
      flags.callers = std::atoi(value);
    } else if (name == "--seconds") {
      flags.seconds = std::atof(value);
    } else if (name == "--shards") {
      flags.shards = std::atoi(value);
    } else if (name == "--warmup") {
      flags.warmup = std::atoi(value);
    } else if (name == "--connections") {
      flags.connections = std::atoi(value);
    } else {
      argc = 0;
    }
  }
  if (argc % 2 == 0) {
    std::fprintf(stderr,
                 "usage: tollgate-citus-bench [--workers 0] [--workspaces 1000] [--rate 50]"
                 " [--callers 500] [--seconds 8] [--shards 32] [--warmup 800] [--connections N]\n");
    return 2;
  }
  const auto server =
      flags.workers > 0 ? TestPostgres::StartCitus(flags.workers) : TestPostgres::Start();
  if (!server) {
    std::fprintf(stderr, "PostgreSQL or Citus is not installed, or did not start\n");
    return 1;
  }
  return Bench(flags, *server).Run() ? 0 : 1;
}
