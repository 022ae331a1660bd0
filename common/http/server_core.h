// The state that the connections of a server share. Internal to common/http.
#pragma once

#include <atomic>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "common/http/request_reader.h"
#include "common/http/server.h"
#include "common/runtime/loop.h"

namespace tollgate::http {

class Connection;

class ServerCore : public std::enable_shared_from_this<ServerCore> {
 public:
  ServerCore(LoopPool& loops, ServerOptions options, Server::Handler handler);

  Result<void> Listen(const std::string& address);
  std::string address() const;
  uint16_t port() const { return port_; }
  int connections() const { return open_.load(); }
  int running() const { return running_.load(); }
  bool draining() const { return draining_.load(std::memory_order_relaxed); }
  void Drain(int64_t deadline_us);
  void Stop();

  const ServerOptions& options() const { return options_; }
  const RequestLimits& request_limits() const { return request_limits_; }
  const Server::Handler& handler() const { return handler_; }
  HttpResponse RenderError(const Error& error, const HttpRequest& request) const;

  // Called by connections, on their loops.
  void RequestStarted() { running_.fetch_add(1, std::memory_order_relaxed); }
  void RequestEnded();
  // The last call of a connection; may destroy it.
  void Closed(Connection& connection);

 private:
  using Acceptor = asio::basic_socket_acceptor<asio::ip::tcp, Executor>;
  struct Shard {
    Loop* loop = nullptr;
    std::unordered_set<std::shared_ptr<Connection>> connections;  // only on the thread of its loop
    std::atomic<int> open{0};
  };

  void Accept();
  void Accepted(Shard& shard, TcpSocket socket);
  bool Admit(const std::string& address);
  void CloseAcceptor();
  Shard& LeastLoaded();
  // Runs the callback on every loop, with its shard.
  void ForEachShard(std::function<void(Shard&)> callback);
  bool WaitUntil(int64_t deadline_us, const std::function<bool()>& done);
  void Wake();

  LoopPool& loops_;
  const ServerOptions options_;
  const RequestLimits request_limits_;
  const Server::Handler handler_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::unique_ptr<Acceptor> acceptor_;  // loop 0 only, once listening
  Loop::TimerId accept_pause_ = 0;
  std::string host_;
  uint16_t port_ = 0;
  std::atomic<bool> listening_{false};
  std::atomic<bool> draining_{false};
  std::atomic<bool> stopped_{false};
  std::atomic<int> open_{0};
  std::atomic<int> running_{0};

  std::mutex mutex_;
  std::condition_variable changed_;
  std::unordered_map<std::string, int> per_address_;
};

}  // namespace tollgate::http
