#include "tests/support/redis.h"

#include <hiredis/hiredis.h>

#include <cstdio>
#include <cstdlib>

namespace tollgate::testing {
namespace {

constexpr int64_t kReadyMs = 10'000;
constexpr int kSlots = 16384;

std::string TextOf(const redisReply& reply) {
  switch (reply.type) {
    case REDIS_REPLY_ERROR:
      return "ERROR " + std::string(reply.str, reply.len);
    case REDIS_REPLY_INTEGER:
      return std::to_string(reply.integer);
    case REDIS_REPLY_ARRAY: {
      std::string text;
      for (size_t i = 0; i < reply.elements; ++i) {
        text += (i > 0 ? " " : "") + TextOf(*reply.element[i]);
      }
      return text;
    }
    case REDIS_REPLY_NIL:
      return "";
    default:
      return {reply.str, reply.len};
  }
}

}  // namespace

std::unique_ptr<TestRedis> TestRedis::Start(const Options& options) {
  std::unique_ptr<TestRedis> server(new TestRedis());
  server->sentinel_ = options.sentinel;
  const std::string folder = server->folder_.path();
  std::string config =
      "bind 127.0.0.1\nport " + std::to_string(server->port()) + "\ndir " + folder + "\n";
  if (!options.sentinel) config += "save \"\"\nappendonly no\ndaemonize no\n";
  if (options.cluster) {
    config +=
        "cluster-enabled yes\ncluster-config-file nodes.conf\ncluster-node-timeout 1000\n"
        "cluster-port " +
        std::to_string(server->cluster_port_.number()) + "\n";
  }
  for (const std::string& line : options.lines) config += line + "\n";
  const std::string file = folder + "/redis.conf";
  test::WriteFile(file, config);
  const char* program = options.sentinel ? "/usr/bin/redis-sentinel" : "/usr/bin/redis-server";
  server->process_ = std::make_unique<test::Process>(
      "redis", std::vector<std::string>{program, file}, folder + "/log");
  if (server->Run()) return server;
  std::fprintf(stderr, "redis does not start: %s\n", server->process_->LogTail().c_str());
  return nullptr;
}

bool TestRedis::Run() {
  if (!process_->Start()) return false;
  const auto answers = [this] {
    const std::string answer = Command({"PING"});
    return answer == "PONG" ||
           answer.starts_with("ERROR NOAUTH");  // a server that requires a password
  };
  return test::WaitUntil([&] { return !process_->Running() || answers(); }, kReadyMs) &&
         process_->Running();
}

std::string TestRedis::Command(const std::vector<std::string>& words, int timeout_ms) const {
  const timeval timeout{timeout_ms / 1000, (timeout_ms % 1000) * 1000};
  redisContext* context = redisConnectWithTimeout("127.0.0.1", port(), timeout);
  if (context == nullptr || context->err != 0) {
    if (context != nullptr) redisFree(context);
    return "ERROR no connection";
  }
  redisSetTimeout(context, timeout);
  std::vector<const char*> parts;
  std::vector<size_t> sizes;
  for (const std::string& word : words) {
    parts.push_back(word.data());
    sizes.push_back(word.size());
  }
  auto* reply = static_cast<redisReply*>(
      redisCommandArgv(context, static_cast<int>(words.size()), parts.data(), sizes.data()));
  std::string text = "ERROR no answer";
  if (reply != nullptr) {
    text = TextOf(*reply);
    freeReplyObject(reply);
  }
  redisFree(context);
  return text;
}

std::unique_ptr<TestSentinels> TestSentinels::Start() {
  auto group = std::make_unique<TestSentinels>();
  group->master = TestRedis::Start();
  if (!group->master) return nullptr;
  const std::string port = std::to_string(group->master->port());
  group->replica = TestRedis::Start({.lines = {"replicaof 127.0.0.1 " + port}});
  if (!group->replica) return nullptr;
  const auto linked = [&] {
    return group->replica->Command({"INFO", "replication"}).find("master_link_status:up") !=
           std::string::npos;
  };
  if (!test::WaitUntil(linked, kReadyMs)) return nullptr;
  for (int i = 0; i < 3; ++i) {
    group->sentinels.push_back(
        TestRedis::Start({.lines = {"sentinel monitor limits 127.0.0.1 " + port + " 2",
                                    "sentinel down-after-milliseconds limits 1000",
                                    "sentinel failover-timeout limits 5000"},
                          .sentinel = true}));
    if (!group->sentinels.back()) return nullptr;
  }
  // Sentinels find each other and the replica through the master.
  const auto complete = [&] {
    for (const auto& sentinel : group->sentinels) {
      const std::string state = sentinel->Command({"SENTINEL", "MASTER", "limits"});
      if (state.find("num-slaves 1") == std::string::npos ||
          state.find("num-other-sentinels 2") == std::string::npos) {
        return false;
      }
    }
    return true;
  };
  return test::WaitUntil(complete, 30'000) ? std::move(group) : nullptr;
}

std::string TestSentinels::url() const {
  std::string text = "redis-sentinel://";
  for (const auto& sentinel : sentinels) {
    text += (text.ends_with("/") ? "" : ",") + sentinel->address();
  }
  return text + "/limits";
}

int TestSentinels::MasterPort() const {
  const std::string address =
      sentinels.front()->Command({"SENTINEL", "get-master-addr-by-name", "limits"});
  return std::atoi(address.substr(address.find(' ') + 1).c_str());
}

std::unique_ptr<TestRedisCluster> TestRedisCluster::Start() {
  auto cluster = std::make_unique<TestRedisCluster>();
  std::vector<std::string> create = {"/usr/bin/redis-cli", "--cluster", "create"};
  for (int i = 0; i < 6; ++i) {
    cluster->nodes.push_back(TestRedis::Start({.cluster = true}));
    if (!cluster->nodes.back()) return nullptr;
    create.push_back(cluster->nodes.back()->address());
  }
  create.insert(create.end(), {"--cluster-replicas", "1", "--cluster-yes"});
  test::TempDir folder;
  test::Process tool("redis-cli", create, folder.path() + "/log");
  if (!tool.Start() || !test::WaitUntil([&] { return !tool.Running(); }, 60'000) ||
      tool.exit_code() != 0) {
    std::fprintf(stderr, "the cluster is not made: %s\n", tool.LogTail().c_str());
    return nullptr;
  }
  const auto ready = [&] {
    for (const auto& node : cluster->nodes) {
      const std::string state = node->Command({"CLUSTER", "INFO"});
      if (state.find("cluster_state:ok") == std::string::npos ||
          state.find("cluster_known_nodes:6") == std::string::npos) {
        return false;
      }
      const std::string role = node->Command({"ROLE"});
      if (role.starts_with("slave") && role.find(" connected ") == std::string::npos) return false;
    }
    return true;
  };
  return test::WaitUntil(ready, 30'000) ? std::move(cluster) : nullptr;
}

std::string TestRedisCluster::url() const {
  std::string text = "redis-cluster://";
  for (const auto& node : nodes) text += (text.ends_with("/") ? "" : ",") + node->address();
  return text;
}

TestRedis* TestRedisCluster::MasterOf(int slot) const {
  for (const auto& node : nodes) {
    if (!node->process().Running() || !node->Command({"ROLE"}).starts_with("master")) continue;
    // "… myself,master … connected FIRST-LAST": the slots are the last word of its own line.
    const std::string list = node->Command({"CLUSTER", "NODES"});
    const size_t myself = list.find("myself,master");
    if (myself == std::string::npos) continue;
    const std::string line = list.substr(myself, list.find('\n', myself) - myself);
    int first = kSlots, last = -1;
    const std::string range = line.substr(line.rfind(' ') + 1);
    if (std::sscanf(range.c_str(), "%d-%d", &first, &last) == 2 && first <= slot && slot <= last) {
      return node.get();
    }
  }
  return nullptr;
}

}  // namespace tollgate::testing
