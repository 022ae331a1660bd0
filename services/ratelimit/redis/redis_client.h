// Client for one Redis server, Sentinels or a Cluster: finds the masters, keeps one pipelined
// connection to each and follows failovers. All I/O runs on the client's own thread, so a Redis
// that hangs blocks no other thread.
#pragma once

#include <atomic>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/steady_timer.hpp>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "services/ratelimit/redis/redis_connection.h"

namespace tollgate::ratelimit {

struct RedisOptions {
  RedisUrl url;
  std::string user;  // empty: Redis's default user
  std::string password;
  std::string authority_file;  // PEM; empty: the system's certificate authorities
  int64_t timeout_us = 50'000;
};

// A Lua script that Redis caches by its digest.
struct RedisScript {
  explicit RedisScript(std::string source);
  std::string source;
  std::string sha1;  // hexadecimal
};

class RedisClient {
 public:
  static BasicResult<std::unique_ptr<RedisClient>, std::string> Make(RedisOptions options);
  ~RedisClient();  // stops

  void Start();
  // Fails pending calls and ends the thread. No callback runs afterwards.
  void Stop();

  // Runs the script with one key, "tollgate:{tag}", on its master. Prepends one argument: the id of
  // the server's current run. `done` runs once, on the client's thread or, after Stop, immediately.
  // It fails if Redis answers with an error, is late or is unreachable; in the last two cases the
  // script may have run. Thread-safe.
  void Eval(const RedisScript& script, const std::string& tag, std::vector<std::string> arguments,
            ReplyDone done);

  // Whether the last call was answered. Thread-safe.
  bool healthy() const { return healthy_; }

 private:
  struct Call;
  using CallPtr = std::shared_ptr<Call>;
  using ConnectionPtr = std::shared_ptr<RedisConnection>;

  explicit RedisClient(RedisOptions options);
  void Tick();
  void Begin(const CallPtr& call);
  void Run(const CallPtr& call, const Endpoint& endpoint, bool asking);
  void OnReply(const CallPtr& call, BasicResult<Reply, std::string> reply);
  void Finish(const CallPtr& call, BasicResult<Reply, std::string> reply);
  // Master of the slot; nullopt while it is unknown.
  std::optional<Endpoint> MasterOf(int slot) const;
  ConnectionPtr Node(const Endpoint& endpoint);
  std::vector<Command> Handshake() const;

  // Asks a sentinel or a node of the cluster where the masters are.
  void Discover();
  void OnSentinel(const redisReply& reply);
  void OnSlots(const redisReply& reply);
  void SetMasters(std::vector<Endpoint> masters);

  const RedisOptions options_;
  boost::asio::io_context context_{1};
  std::optional<boost::asio::ssl::context> tls_;
  boost::asio::steady_timer timer_;
  std::thread thread_;
  std::atomic<bool> healthy_{false};
  // Guards stopped_ and posting: every accepted call is posted before Stop ends the thread.
  std::mutex mutex_;
  std::atomic<bool> stopped_{false};

  // Used on the client's thread only.
  std::map<std::string, ConnectionPtr> nodes_;
  std::map<std::string, int64_t> opened_us_;  // time of the last attempt to connect
  std::vector<Endpoint> masters_;
  std::vector<int16_t>
      slots_;            // index into masters_, -1: unknown; empty: all slots are on the first
  ConnectionPtr guide_;  // the sentinel or node to ask
  size_t next_guide_ = 0;
  bool asked_ = false;  // the guide has not answered yet
  bool lost_ = true;    // ask as soon as possible
  int64_t asked_us_ = 0;
  int fruitless_ = 0;  // look-ups in a row without a live master
};

}  // namespace tollgate::ratelimit
