// State shared by the connections of a server. Internal to common/http.
#pragma once

#include <atomic>
#include <boost/asio/basic_socket_acceptor.hpp>
#include <boost/intrusive/list.hpp>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_set>
#include <vector>

#include "common/http/connection_slots.h"
#include "common/http/request_reader.h"
#include "common/http/server.h"
#include "common/observability/metrics.h"
#include "common/runtime/loop.h"

namespace tollgate::http {

class Connection;
enum class ConnectionRefusal : uint8_t;

// Links an idle connection into the list of its shard.
struct IdleHook
    : boost::intrusive::list_base_hook<boost::intrusive::link_mode<boost::intrusive::auto_unlink>> {
  int64_t idle_since_us = 0;  // monotonic
};

class ServerCore : public std::enable_shared_from_this<ServerCore> {
 public:
  ServerCore(LoopPool& loops, ServerOptions options, Server::Handler handler);
  ~ServerCore();

  Result<void> Listen(const std::string& address);
  std::string address() const;
  uint16_t port() const { return port_; }
  int connections() const { return slots_.taken(); }
  int running() const { return running_.load(); }
  bool draining() const { return draining_.load(std::memory_order_relaxed); }
  // Whether the deadline of the drain has passed.
  bool drain_over() const { return drain_over_.load(std::memory_order_relaxed); }
  void Drain(int64_t deadline_us);
  void Stop();

  const ServerOptions& options() const { return options_; }
  const RequestLimits& request_limits() const { return request_limits_; }
  const Server::Handler& handler() const { return handler_; }
  HttpResponse RenderError(const Error& error, HttpRequest& request) const;

  // Called by connections, on their loops.
  void RequestStarted() { running_.fetch_add(1, std::memory_order_relaxed); }
  void RequestEnded();
  // A request from this peer has X-Forwarded-For that named no other client. Counts and logs it if
  // the peer is not trusted.
  void NoteForwarded(const std::string& peer_address);
  // Idle connections may be evicted. They wait for a request, or discard the rest of a refused one.
  void SetIdle(Connection& connection, bool idle);
  // Closes the idle connections, at most once a second. Called when memory is almost used up.
  void ShedIdle();
  // The last call of a connection; may destroy it.
  void Closed(Connection& connection);

 private:
  using Acceptor = asio::basic_socket_acceptor<asio::ip::tcp, Executor>;
  struct Shard {
    Loop* loop = nullptr;
    std::unordered_set<std::shared_ptr<Connection>> connections;  // only on the thread of its loop
    // The longest idle connection is first.
    boost::intrusive::list<IdleHook, boost::intrusive::constant_time_size<false>>
        idle;  // only on the thread of its loop
    // Since when the first connection of `idle` is idle; monotonic. INT64_MAX: none.
    std::atomic<int64_t> idle_since_us{INT64_MAX};
    std::atomic<int> idle_count{0};
    std::atomic<int> open{0};
  };
  struct Arrival {
    TcpSocket socket;
    std::string address;
    AddressSubject subject;
    ConnectionRefusal refusal;  // used if no place can be made for it
  };

  void UpdateGauges() const;
  // Also waits for requests: a head may be checked after its connection has closed.
  bool AllEnded() const { return !listening_ && connections() == 0 && running_.load() == 0; }
  void CloseAcceptor();

  // server_accept.cc, on loop 0.
  void Accept();
  void AcceptFailed(boost::system::error_code error);
  void TurnAway();
  void Accepted(Shard& shard, TcpSocket socket);
  ConnectionSlots::Outcome Admit(Shard& shard, Arrival& arrival, bool queue);
  void MakeRoom(Shard& shard, std::shared_ptr<Arrival> arrival, int tries);
  enum class Eviction { kNoneIdle, kBusy, kClosed };  // kBusy: it has a new request
  void EvictIdle(std::function<void(Eviction)> done);
  bool EvictFrom(Shard& shard);  // on the loop of the shard
  void Refused(ConnectionRefusal reason);
  void LogRefusals(std::string_view what, const std::string& why);
  Shard& LeastLoaded();

  // Runs the callback on every loop, with its shard.
  void ForEachShard(std::function<void(Shard&)> callback);
  bool WaitUntil(int64_t deadline_us, const std::function<bool()>& done);
  void Wake();

  LoopPool& loops_;
  const ServerOptions options_;
  const RequestLimits request_limits_;
  const Server::Handler handler_;
  ConnectionSlots slots_;
  std::vector<std::unique_ptr<Shard>> shards_;
  std::unique_ptr<Acceptor> acceptor_;  // loop 0 only, once listening
  Loop::TimerId accept_pause_ = 0;
  // Spare for accepting, and closing, a connection when the process has no descriptors left.
  int spare_descriptor_ = -1;
  bool accepting_ = false;
  int waiting_ = 0;    // new connections that wait for a place; loop 0 only
  int evictions_ = 0;  // evictions in progress; loop 0 only
  int64_t refusals_logged_us_ = INT64_MIN / 2;
  std::string host_;
  uint16_t port_ = 0;
  prometheus::Counter& untrusted_forwards_;
  std::atomic<int64_t> untrusted_logged_us_{INT64_MIN / 2};
  std::atomic<bool> listening_{false};
  std::atomic<bool> draining_{false};
  std::atomic<bool> drain_over_{false};
  std::atomic<bool> stopped_{false};
  std::atomic<int> running_{0};
  std::atomic<int64_t> idle_shed_us_{0};  // when ShedIdle last closed connections; monotonic
  // Sets the gauges when the metrics are read.
  std::shared_ptr<void> gauges_;

  std::mutex mutex_;
  std::condition_variable changed_;
};

}  // namespace tollgate::http
