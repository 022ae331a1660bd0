// The whole of Tollgate, for tests: tollgate-allinone, or one process per service over TCP, with
// configuration, catalog and data in a temporary folder and ports of its own (port.h).
#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/http.h"
#include "tests/support/port.h"
#include "tests/support/process.h"

namespace tollgate::test {

struct ClusterOptions {
  bool all_in_one = true;
  // Text of catalog.yaml; see DefaultCatalog.
  std::string catalog;
  int threads = 2;
  // Inference routers of a cluster over TCP: "inference-router", "inference-router-2", …
  int routers = 1;
  // Replicas of billing on one PostgreSQL database (billing_sql): "billing", "billing-2", …
  int billings = 1;
  // Replicas of auth on one PostgreSQL database (auth_sql): "auth", "auth-2", …; and of catalog on
  // one file.
  int auths = 1;
  int catalogs = 1;
  // Gateways, each with a port of its own: "gateway", "gateway-2", …; and replicas of ratelimit on
  // one Redis (redis_url in ratelimit_settings): "ratelimit", "ratelimit-2", …
  int gateways = 1;
  int ratelimits = 1;
  int lease_seconds = 5;
  int hold_ttl_seconds = 6;
  int heartbeat_seconds = 1;
  int health_check_seconds = 1;
  int health_check_timeout_seconds = 60;  // engines of a busy machine answer late
  int idle_timeout_seconds = 20;
  int connect_timeout_seconds = 1;
  int64_t slice_tokens = 0;  // 0: the product's default
  // Credit that one person may make in a day. Most tests need much of it.
  int64_t second_person_above_usd = 1'000'000'000;
  int keep_alive_seconds = 0;  // 0: the product's default
  int drain_seconds = 5;
  std::string log_level = "info";
  // Additional YAML lines for the sections host (of every process) and of the services, for example
  // "edge_tls: {certificate_file: a, private_key_file: b}".
  std::vector<std::string> host_settings;
  std::vector<std::string> auth_settings;
  std::vector<std::string> billing_settings;
  std::vector<std::string> ratelimit_settings;
  std::vector<std::string> dashboard_settings;
  std::vector<std::string> gateway_settings;
  std::vector<std::string> router_settings;
  // Mutual TLS between the processes: a folder with authority.pem, and in a folder for each service
  // (auth, inference-router, …), and in "operators/admin" for admin calls, certificate.pem and
  // private_key.pem, as `./dev secrets` makes it. Empty: plain text.
  std::string certificates;
  // postgresql:// URLs instead of SQLite files.
  std::string auth_sql;
  std::string billing_sql;
  // All-in-one only: its modules call each other over in-process gRPC (targets "inproc:").
  bool grpc_in_process = false;
  // Processes with admin services also listen at "<dir>/<name>.sock", where the caller is known.
  bool admin_sockets = false;
  // The SQLite ledger grants holds before they are flushed (ADR 0005), like the all-in-one.
  bool holds_before_disk = false;
  // Cluster over TCP only: the address that gateways use instead of a router's own, for example a
  // TcpProxy.
  std::function<std::string(const std::string& router_address)> way_to_router;
  // Prefix of each command, for example {"/usr/bin/taskset", "-c", "0"}.
  std::vector<std::string> wrapper;
};

// Whether engines are asked to stream every answer in this run of the tests (TOLLGATE_ENGINE_MODE,
// set by tollgate_tests_in_mode).
bool EnginesAlwaysStream();
// Whether engines are asked to stream only when callers stream, whatever the size.
bool WholeAnswers();

// A catalog with these engines: "sim/model" (chat, tools, reasoning; 1 and 3 USD per million
// tokens), "sim/text" (completion), "sim/vision" (chat, vision), "sim/embed" (embedding),
// "sim/dual" (chat, embedding), "sim/suspended", "sim/empty" (a pool whose engine is unreachable)
// and "sim/private" (workspace "owner"). Prices are arguments so that a test can change them.
std::string DefaultCatalog(const std::vector<std::string>& engine_urls,
                           const std::string& input_price = "1",
                           const std::string& output_price = "3", int64_t engine_concurrency = 0);

struct Limits {
  int64_t requests_per_minute = 0;
  int64_t tokens_per_minute = 0;
  int64_t concurrent_requests = 0;
};

struct KeyOptions {
  Limits limits;
  std::vector<std::string> allowed_models;
  int64_t expires_at_us = 0;
  std::optional<int64_t> monthly_quota_nano_usd;
};

// A receipt, as reported by billing.
struct ReceiptView {
  std::string request_id, client_request_id, surface, engine, state, outcome, model;
  std::string exact_cost_usd;
  int64_t prompt_tokens = 0, completion_tokens = 0, reasoning_tokens = 0, charged = 0, entries = 0,
          first_token_us = 0;
  bool streamed = false;
};

// A credit grant, with the id of its call.
struct CreditView {
  std::string request_id;
  int64_t nano_usd = 0;
};

struct ApiKey {
  std::string workspace_id;
  std::string key_id;
  std::string secret;
  HeaderList headers() const {
    return {{"Authorization", "Bearer " + secret}, {"Content-Type", "application/json"}};
  }
};

// Nano-USD, as reported by billing.
struct BalanceView {
  int64_t available = 0, posted = 0, held = 0, month_spent = 0, month_held = 0, open_holds = 0;
};

struct LedgerCheck {
  bool ok = false;
  int64_t entries = 0, holds = 0, usage_records = 0;
  std::string violations;
};

class Cluster {
 public:
  explicit Cluster(ClusterOptions options);
  ~Cluster();  // kills all processes
  Cluster(const Cluster&) = delete;
  Cluster& operator=(const Cluster&) = delete;

  // Starts all processes and waits until each is ready. Returns "" or the failure, with the ends of
  // the logs.
  std::string Start(int64_t timeout_ms = 60'000);
  // Sends SIGTERM in reverse order. Returns the names of processes that did not exit with 0, and
  // the sanitizer reports of all.
  std::string StopOrderly();

  // Sanitizer reports and processes that crashed; "" when there are none.
  std::string Crashes();

  // Port of a gateway, from 1.
  int port(int gateway = 1) const { return http_ports_[static_cast<size_t>(gateway - 1)]; }
  int dashboard_port() const { return dashboard_port_; }
  std::vector<std::string> process_names() const;
  Process& process(const std::string& name);
  int admin_port(const std::string& name) const;
  // Address for other processes, and of the admin services of auth and billing.
  std::string grpc_address(const std::string& service) const { return GrpcOf(service); }
  std::string admin_grpc_address(const std::string& service) const { return AdminGrpcOf(service); }
  std::vector<pid_t> pids();
  // Starts a process that has exited again, on the same ports. Waits until it is ready.
  std::string Restart(const std::string& name, int64_t timeout_ms = 60'000) {
    return Restart(std::vector{name}, timeout_ms);
  }
  // Restarts several; waits until all of them run.
  std::string Restart(const std::vector<std::string>& names, int64_t timeout_ms = 60'000);
  // Waits until /readyz of every process returns 200. Returns "" or the processes that were not
  // ready in time.
  std::string WaitReady(int64_t timeout_ms) {
    return ReadyWithin(std::max(timeout_ms, kLeastPatienceMs));
  }
  void WriteCatalog(const std::string& text);
  const std::string& dir() const { return dir_.path(); }
  std::string Logs();

  // Calls the admin services. An empty workspace id creates a workspace.
  std::string NewWorkspace(const std::string& id = "", const Limits& limits = {});
  ApiKey NewKey(const std::string& workspace_id, const KeyOptions& options = {});
  // Imports keys of another system, at most 500.
  bool ImportKeys(const std::string& workspace_id, const std::vector<std::string>& secrets);
  // Creates a workspace with credit and one key.
  ApiKey NewCustomer(int64_t nano_usd, const KeyOptions& options = {});
  bool AddCredit(const std::string& workspace_id, int64_t nano_usd);
  // Makes one call with this id, without retries; false when it was not acknowledged.
  bool TryAddCredit(const std::string& workspace_id, int64_t nano_usd, const std::string& id);
  bool SetCap(const std::string& workspace_id, std::optional<int64_t> nano_usd);
  bool Freeze(const std::string& workspace_id);
  enum class KeyState { kActive = 1, kDisabled = 2, kRevoked = 3 };
  bool SetKeyState(const ApiKey& key, KeyState state);
  // Finds the receipt by a request's id, an answer's id, or the x-request-id of a response.
  std::optional<ReceiptView> Receipt(const std::string& workspace_id, const std::string& id);
  // All of the workspace's closed requests, and all of its credit.
  std::optional<std::vector<ReceiptView>> Receipts(const std::string& workspace_id);
  std::optional<std::vector<CreditView>> Credits(const std::string& workspace_id);
  // Refused settlements of all workspaces that are not resolved; -1: the call failed.
  int64_t OpenDeadLetters();
  std::optional<BalanceView> Balance(const std::string& workspace_id);
  LedgerCheck VerifyLedger();
  // Waits until the workspace has no open hold.
  bool WaitIdle(const std::string& workspace_id, int64_t timeout_ms = 15'000);

  // Makes an OpenAI-style call on a new connection.
  HttpResponse Post(const ApiKey& key, const std::string& path, const std::string& body);
  SseStream Stream(const ApiKey& key, const std::string& body);

 private:
  struct Member;
  struct Admin;
  struct AdminDeleter {
    void operator()(Admin* admin) const;  // defined where Admin is complete
  };
  void Add(const std::string& name, const std::string& binary, bool has_grpc);
  std::string StartMember(Member& member, int64_t deadline_us);
  std::string ReadyWithin(int64_t limit_ms);
  std::string ConfigOf(const Member& member) const;
  std::string Host(const Member& member) const;
  std::string Tls(const Member& member) const;
  std::string Targets(const std::string& for_whom) const;
  std::string Section(const std::string& name) const;
  std::string GrpcOf(const std::string& name) const;
  // The addresses of all replicas.
  std::string Replicas(const std::string& service, int count) const;
  std::string AdminGrpcOf(const std::string& name) const;
  std::string AdminBillings() const;
  bool ReadAddresses(Member& member);
  Admin& admin();

  ClusterOptions options_;
  TempDir dir_;
  std::vector<std::unique_ptr<Member>> members_;
  std::once_flag admin_made_;  // tests call from several threads
  std::unique_ptr<Admin, AdminDeleter> admin_;
  std::vector<TestPort> http_listen_;
  TestPort dashboard_listen_;
  // ports of started gateways
  std::vector<int> http_ports_;
  int dashboard_port_ = 0;
};

}  // namespace tollgate::test
