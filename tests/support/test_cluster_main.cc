// tollgate-test-cluster: starts the product for scripts (tests/clients, tests/bench), prints one
// line of JSON with addresses, keys and process ids, and stops everything when its standard input
// ends. A line "kill NAME" there kills a process, "start NAME" starts it again on the same ports;
// each is answered with a line of JSON.
//
//   {"port":…,"dashboard_port":…,"engine_port":…,"pids":[…],"dir":…,…}    the rest: facts.h
//
// With --postgres auth and billing keep their data in a private PostgreSQL server; where PostgreSQL
// is not installed it exits with 77; with --citus in one with Citus and two workers, whose ledger
// can be distributed. --gateway and --router add a line of YAML to those sections of
// the configuration, --dashboard, --auth, --billing, --ratelimit and --host likewise;
// --admin-sockets adds sockets for the command line, DIR/NAME.sock. --models adds models;
// --engine-concurrency sets the max_concurrency of the engines;
// --workspaces adds workspaces with credit, and --keys that many keys each, of other systems:
// "scale-<workspace>-<number>-0123456789", counted from 0. --redis-url: limiters share that Redis.
// --billings: with --postgres.
// --certificates: a folder for mutual TLS (cluster.h). --prometheus writes targets for Prometheus's
// file_sd into that file.
#include <algorithm>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "tests/support/cluster.h"
#include "tests/support/engine_sim.h"
#include "tests/support/facts.h"
#include "tests/support/postgres.h"

namespace {

using namespace tollgate::test;

constexpr char kUsage[] =
    "tollgate-test-cluster [--tcp] [--postgres|--citus] [--engine URL]... [--engine-concurrency N] "
    "[--keep-requests] [--threads N] "
    "[--credit-usd N] [--log-level L] [--gateway YAML]... [--router YAML]... "
    "[--auth YAML]... [--billing YAML]... [--ratelimit YAML]... [--host YAML]... [--gateways N] "
    "[--routers N] [--ratelimits N] [--billings N] [--redis-url URL] [--certificates FOLDER] "
    "[--prometheus FILE] "
    "[--dashboard YAML]... [--admin-sockets] "
    "[--billing-sql URL] [--models N] [--workspaces N] [--keys N] [-- WRAPPER...]\n";

struct Flags {
  ClusterOptions options;
  std::vector<std::string> engines;
  int64_t engine_concurrency = 0;  // of each engine; 0: no limit
  int64_t credit_usd = 1000;
  int models = 0;
  int workspaces = 0;
  int keys = 1;            // of each of these workspaces
  std::string prometheus;  // file to write; empty: none
  bool postgres = false;
  bool citus = false;
  bool keep_requests = false;  // served at /sim/requests and /sim/bodies
};

Flags Read(int argc, char** argv) {
  Flags flags;
  flags.options.hold_ttl_seconds = 60;
  flags.options.lease_seconds = 30;
  flags.options.heartbeat_seconds = 5;
  flags.options.health_check_seconds = 5;
  flags.options.holds_before_disk = true;  // all processes are on this machine
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    const char* value = i + 1 < argc ? argv[i + 1] : "";
    if (flag == "--tcp") {
      flags.options.all_in_one = false;
      continue;
    }
    if (flag == "--postgres") {
      flags.postgres = true;
      continue;
    }
    if (flag == "--citus") {
      flags.citus = true;
      continue;
    }
    if (flag == "--admin-sockets") {
      flags.options.admin_sockets = true;
      continue;
    }
    if (flag == "--keep-requests") {
      flags.keep_requests = true;
      continue;
    }
    if (flag == "--") {
      flags.options.wrapper.assign(argv + i + 1, argv + argc);
      break;
    }
    if (flag == "--engine")
      flags.engines.emplace_back(value);
    else if (flag == "--engine-concurrency")
      flags.engine_concurrency = std::atoll(value);
    else if (flag == "--threads")
      flags.options.threads = std::atoi(value);
    else if (flag == "--credit-usd")
      flags.credit_usd = std::atoll(value);
    else if (flag == "--log-level")
      flags.options.log_level = value;
    else if (flag == "--billing-sql")
      flags.options.billing_sql = value;
    else if (flag == "--models")
      flags.models = std::atoi(value);
    else if (flag == "--workspaces")
      flags.workspaces = std::atoi(value);
    else if (flag == "--keys")
      flags.keys = std::atoi(value);
    else if (flag == "--gateway")
      flags.options.gateway_settings.emplace_back(value);
    else if (flag == "--router")
      flags.options.router_settings.emplace_back(value);
    else if (flag == "--auth")
      flags.options.auth_settings.emplace_back(value);
    else if (flag == "--billing")
      flags.options.billing_settings.emplace_back(value);
    else if (flag == "--ratelimit")
      flags.options.ratelimit_settings.emplace_back(value);
    else if (flag == "--host")
      flags.options.host_settings.emplace_back(value);
    else if (flag == "--gateways")
      flags.options.gateways = std::atoi(value);
    else if (flag == "--ratelimits")
      flags.options.ratelimits = std::atoi(value);
    else if (flag == "--routers")
      flags.options.routers = std::atoi(value);
    else if (flag == "--billings")
      flags.options.billings = std::atoi(value);
    else if (flag == "--redis-url")
      flags.options.ratelimit_settings.push_back("redis_url: " + std::string(value));
    else if (flag == "--certificates")
      flags.options.certificates = value;
    else if (flag == "--prometheus")
      flags.prometheus = value;
    else if (flag == "--dashboard")
      flags.options.dashboard_settings.emplace_back(value);
    else {
      std::fputs(kUsage, stderr);
      std::exit(2);
    }
    ++i;
  }
  return flags;
}

// Like the last model of the default catalog.
std::string MoreModels(int count) {
  std::string text;
  for (int i = 1; i <= count; ++i) {
    text += "  - id: sim/more-" + std::to_string(i) +
            "\n    name: Simulated\n    context_window: 131072\n    max_output_tokens: 65536\n"
            "    input_usd_per_million: \"1\"\n    output_usd_per_million: \"3\"\n"
            "    capabilities: [chat]\n    documentation_url: https://example.test/sim\n"
            "    created: \"2026-01-02\"\n    engine_model: sim/model\n    pool: main\n";
  }
  return text;
}

bool AddWorkspaces(Cluster& cluster, const Flags& flags) {
  constexpr int kThreads = 16;  // admin calls wait for the disk
  constexpr int64_t kCredit = 1'000'000'000'000;
  std::atomic<int> next{0};
  std::atomic<bool> ok{true};
  const auto work = [&] {
    for (int w = next++; w < flags.workspaces && ok; w = next++) {
      const std::string id = cluster.NewWorkspace("scale-" + std::to_string(w));
      std::vector<std::string> keys;
      for (int k = 0; k < flags.keys; ++k) {
        keys.push_back(id + "-" + std::to_string(k) + "-0123456789");
        if (keys.size() < 500 && k + 1 < flags.keys) continue;
        if (!cluster.ImportKeys(id, std::exchange(keys, {}))) ok = false;
      }
      if (!cluster.AddCredit(id, kCredit)) ok = false;
    }
  };
  std::vector<std::thread> threads;
  for (int i = 0; i < kThreads; ++i) threads.emplace_back(work);
  for (std::thread& thread : threads) thread.join();
  return ok;
}

std::string Describe(Cluster& cluster, const EngineSim& engine, int64_t credit_usd) {
  Json facts = MakeFacts(cluster, credit_usd);
  Json pids = Json::Array();
  for (const pid_t pid : cluster.pids()) pids.Add(static_cast<int64_t>(pid));
  facts.Set("auth_admin", cluster.admin_grpc_address("auth"))
      .Set("billing_admin", cluster.admin_grpc_address("billing"));
  return facts.Set("engine_port", engine.port()).Set("pids", pids).Set("dir", cluster.dir()).Dump();
}

// Writes one group of targets per process, in the format of Prometheus's file_sd.
bool WriteTargets(Cluster& cluster, const std::string& file) {
  Json groups = Json::Array();
  for (const std::string& name : cluster.process_names()) {
    Json target = Json::Array();
    target.Add("127.0.0.1:" + std::to_string(cluster.admin_port(name)));
    Json labels = Json::Object();
    labels.Set("instance", name);
    Json group = Json::Object();
    groups.Add(group.Set("targets", target).Set("labels", labels));
  }
  std::FILE* out = std::fopen(file.c_str(), "we");
  if (out == nullptr) return false;
  const std::string text = groups.Dump();
  const bool written = std::fwrite(text.data(), 1, text.size(), out) == text.size();
  return std::fclose(out) == 0 && written;
}

// Runs "kill NAME" or "start NAME"; returns {} or the error.
std::string Obey(Cluster& cluster, const std::string& line) {
  const size_t space = line.find(' ');
  const std::string verb = line.substr(0, space);
  const std::string name = space == std::string::npos ? "" : line.substr(space + 1);
  std::string wrong;
  const std::vector<std::string> names = cluster.process_names();
  if (std::find(names.begin(), names.end(), name) == names.end()) {
    wrong = "no such process: " + name;
  } else if (verb == "kill") {
    cluster.process(name).Kill();
  } else if (verb == "start") {
    wrong = cluster.Restart(name, 30'000);
  } else {
    wrong = "unknown: " + verb;
  }
  Json answer = Json::Object();
  if (!wrong.empty()) answer.Set("error", wrong);
  return answer.Dump();
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGPIPE, SIG_IGN);
  Flags flags = Read(argc, argv);
  EngineSimOptions engine_options;
  engine_options.keep_requests = flags.keep_requests;
  EngineSim engine(engine_options);
  if (flags.engines.empty()) {
    if (!engine.Start()) return 1;
    flags.engines.push_back(engine.base_url());
  }
  flags.options.catalog = DefaultCatalog(flags.engines, "1", "3", flags.engine_concurrency);
  flags.options.catalog.insert(flags.options.catalog.find("pools:"), MoreModels(flags.models));
  if (flags.workspaces > 0) {
    flags.options.gateway_settings.emplace_back("legacy_key_prefixes: [scale-]");
  }
  std::unique_ptr<tollgate::testing::TestPostgres> postgres;
  if (flags.postgres || flags.citus) {
    using tollgate::testing::TestPostgres;
    postgres = flags.citus ? TestPostgres::StartCitus(2) : TestPostgres::Start();
    if (!postgres) {
      std::fputs(flags.citus ? "Citus is not installed\n" : "PostgreSQL is not installed\n",
                 stderr);
      return tollgate::testing::TestPostgres::Required() ? 1 : 77;
    }
    flags.options.auth_sql = postgres->MakeDatabase("auth");
    flags.options.billing_sql = postgres->MakeDatabase("billing");
  }
  Cluster cluster(flags.options);
  if (const std::string error = cluster.Start(90'000); !error.empty()) {
    std::fprintf(stderr, "%s\n", error.c_str());
    return 1;
  }
  if (!AddWorkspaces(cluster, flags)) {
    std::fputs("the workspaces could not be made\n", stderr);
    return 1;
  }
  if (!flags.prometheus.empty() && !WriteTargets(cluster, flags.prometheus)) {
    std::fprintf(stderr, "%s cannot be written\n", flags.prometheus.c_str());
    return 1;
  }
  std::printf("%s\n", Describe(cluster, engine, flags.credit_usd).c_str());
  std::fflush(stdout);
  for (std::string line; std::getline(std::cin, line);) {
    std::printf("%s\n", Obey(cluster, line).c_str());
    std::fflush(stdout);
  }
  const std::string wrong = cluster.StopOrderly();
  if (!wrong.empty()) std::fprintf(stderr, "%s\n", wrong.c_str());
  return wrong.empty() ? 0 : 1;
}
