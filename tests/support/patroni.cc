#include "tests/support/patroni.h"

#include <libpq-fe.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <vector>

#include "tests/support/http.h"
#include "tests/support/postgres.h"

namespace tollgate::test {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPatroni = "/usr/bin/patroni";
constexpr const char* kEtcd = "/usr/bin/etcd";

std::string NameOf(int node) { return "node" + std::to_string(node + 1); }

}  // namespace

std::string TestPatroni::WhyNot() {
  if (testing::PostgresBin().empty() || !fs::exists(kPatroni) || !fs::exists(kEtcd)) {
    return "PostgreSQL, Patroni or etcd is not installed";
  }
  return geteuid() == 0 ? "" : "only root can give a node a process namespace of its own";
}

std::unique_ptr<TestPatroni> TestPatroni::Start(std::string& why) {
  std::unique_ptr<TestPatroni> patroni(new TestPatroni);
  patroni->bin_ = testing::PostgresBin();
  fs::permissions(patroni->dir_.path(), fs::perms::all);
  if (!patroni->StartEtcd()) {
    why = "etcd does not start:\n" + patroni->Logs();
    return nullptr;
  }
  for (int i = 0; i < kNodes; ++i) {
    patroni->Configure(i);
    if (!patroni->Restart(i)) {
      why = "Patroni does not start:\n" + patroni->Logs();
      return nullptr;
    }
  }
  if (!patroni->WaitHealthy()) {
    why = "no synchronous standby:\n" + patroni->Logs();
    return nullptr;
  }
  return patroni;
}

TestPatroni::~TestPatroni() {
  for (Node& node : nodes_) {
    if (node.process) node.process->Kill();
  }
}

bool TestPatroni::StartEtcd() {
  std::string cluster;
  for (size_t i = 0; i < etcd_.size(); ++i) {
    cluster += (i == 0 ? "" : ",") + std::string("etcd") + std::to_string(i) + "=http://" +
               etcd_peers_[i].address();
    etcd_hosts_ += (i == 0 ? "" : ", ") + etcd_clients_[i].address();
  }
  for (size_t i = 0; i < etcd_.size(); ++i) {
    const std::string name = "etcd" + std::to_string(i);
    const std::string client = "http://" + etcd_clients_[i].address();
    const std::string peer = "http://" + etcd_peers_[i].address();
    etcd_[i] = std::make_unique<Process>(
        name,
        std::vector<std::string>{kEtcd, "--name", name, "--data-dir", dir_.path() + "/" + name,
                                 "--listen-client-urls", client, "--advertise-client-urls", client,
                                 "--listen-peer-urls", peer, "--initial-advertise-peer-urls", peer,
                                 "--initial-cluster", cluster, "--unsafe-no-fsync", "--logger",
                                 "zap"},
        dir_.path() + "/" + name + ".log");
    if (!etcd_[i]->Start()) return false;
  }
  for (const TestPort& client : etcd_clients_) {
    if (!WaitUntil(
            [&] { return Http(client.number(), "GET", "/health", {}, "", 1'000).status == 200; },
            30'000, 50)) {
      return false;
    }
  }
  return true;
}

void TestPatroni::Configure(int number) {
  Node& node = nodes_[static_cast<size_t>(number)];
  node.folder = dir_.path() + "/" + NameOf(number);
  fs::create_directory(node.folder);
  fs::permissions(node.folder, fs::perms::all);
  const std::string rest = node.rest.address(), postgres = node.postgres.address();
  WriteFile(node.folder + ".yaml",
            "scope: tollgate\nname: " + NameOf(number) + "\nrestapi: {listen: \"" + rest +
                "\", connect_address: \"" + rest + "\"}\netcd3: {hosts: [" + etcd_hosts_ +
                "]}\n"
                "bootstrap:\n  dcs:\n    ttl: " +
                std::to_string(kTtlSeconds) +
                "\n    loop_wait: 5\n    retry_timeout: 7\n    synchronous_mode: true\n"
                "    postgresql:\n      use_pg_rewind: true\n"
                "      parameters: {max_connections: 100, shared_buffers: 64MB, wal_log_hints: "
                "\"on\"}\n"
                "  initdb: [{encoding: UTF8}, {locale: C.UTF-8}, {auth: trust}]\n"
                "postgresql:\n  listen: \"" +
                postgres + "\"\n  connect_address: \"" + postgres + "\"\n  data_dir: " +
                node.folder + "/data\n  bin_dir: " + bin_ + "\n  pgpass: " + node.folder +
                "/pgpass\n"
                "  authentication: {superuser: {username: tollgate}, replication: {username: "
                "replicator}}\n"
                "  parameters: {unix_socket_directories: " +
                node.folder +
                "}\n"
                "  pg_hba: [local all all trust, host all all 127.0.0.1/32 trust, host replication "
                "all 127.0.0.1/32 trust]\n");
  node.process = std::make_unique<Process>(
      NameOf(number),
      // Process 1 of its namespace ends with unshare: no process of the node survives it.
      std::vector<std::string>{"/usr/bin/unshare", "--pid", "--fork", "--mount-proc",
                               "/usr/bin/setpriv", "--pdeathsig", "KILL", "--reuid", "nobody",
                               "--regid", "nogroup", "--clear-groups", "--", kPatroni,
                               node.folder + ".yaml"},
      node.folder + ".log");
}

bool TestPatroni::Restart(int number) {
  Node& node = nodes_[static_cast<size_t>(number)];
  // The old process id is meaningless in a new namespace.
  fs::remove(node.folder + "/data/postmaster.pid");
  return node.process->Start();
}

void TestPatroni::Kill(int node) { nodes_[static_cast<size_t>(node)].process->Kill(); }

int TestPatroni::Status(int node, const std::string& path) {
  return Http(nodes_[static_cast<size_t>(node)].rest.number(), "GET", path, {}, "", 2'000).status;
}

int TestPatroni::Primary() {
  for (int i = 0; i < kNodes; ++i) {
    if (Status(i, "/primary") == 200) return i;
  }
  return -1;
}

bool TestPatroni::WaitHealthy(int64_t timeout_ms) {
  return WaitUntil(
      [&] {
        const int primary = Primary();
        return primary >= 0 && Status(1 - primary, "/synchronous") == 200;
      },
      timeout_ms, 100);
}

bool TestPatroni::SwitchOver() {
  const int primary = Primary();
  if (primary < 0) return false;
  return Http(nodes_[static_cast<size_t>(primary)].rest.number(), "POST", "/switchover",
              {{"Content-Type", "application/json"}},
              R"({"leader":")" + NameOf(primary) + R"(","candidate":")" + NameOf(1 - primary) +
                  "\"}",
              60'000)
             .status == 200;
}

std::string TestPatroni::MakeDatabase(const std::string& name) {
  const std::string hosts = nodes_[0].postgres.address() + "," + nodes_[1].postgres.address();
  const std::string any = "postgresql://tollgate@" + hosts + "/";
  PGconn* connection = PQconnectdb((any + "postgres?target_session_attrs=read-write").c_str());
  PQclear(PQexec(connection, ("CREATE DATABASE " + name).c_str()));
  PQfinish(connection);
  return any + name;
}

std::string TestPatroni::Logs() const {
  std::string logs;
  for (const Node& node : nodes_) {
    if (node.process) logs += "== " + node.folder + "\n" + node.process->LogTail();
  }
  return logs;
}

}  // namespace tollgate::test
