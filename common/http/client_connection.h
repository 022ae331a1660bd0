// A connection of the client, and the pool of idle connections. Internal to common/http. Used only
// on the thread of one loop.
#pragma once

#include <boost/beast/core/flat_buffer.hpp>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/http/client.h"
#include "common/http/tls.h"
#include "common/runtime/host_resolver.h"
#include "common/runtime/loop.h"

namespace tollgate::http {

using boost::system::error_code;

class ClientConnection : public std::enable_shared_from_this<ClientConnection> {
 public:
  ClientConnection(Loop& loop, Origin origin);
  ~ClientConnection();

  // Each of these returns operation_aborted after Reset, and timed_out on a timeout.
  Task<error_code> Connect(const ClientOptions& options);
  Task<error_code> SendAll(std::string_view head, std::string_view body, int64_t idle_timeout_ms);
  // Reads once from the socket into input, which may hold at most limit bytes.
  Task<error_code> ReadSome(size_t limit, int64_t timeout_ms);

  // Closes with a TCP reset: a peer that is sending a response notices it at its next write.
  void Reset();
  bool open() const { return open_; }
  // Whether the idle connection can be reused: the peer has neither closed it nor sent data.
  bool LooksAlive();

  const Origin& origin() const { return origin_; }
  // Why Connect failed, if TLS was the cause.
  const std::string& tls_failure() const { return tls_failure_; }
  // Bytes that were read but not consumed.
  boost::beast::flat_buffer input;
  std::string_view view() const {
    return {static_cast<const char*>(input.data().data()), input.size()};
  }
  bool used = false;  // has completed a request
  int64_t idle_since_us = 0;

 private:
  void SetDeadline(int64_t timeout_ms);
  void ClearDeadline() { deadline_us_ = 0; }
  void ArmTimer();
  Task<HostResolver::Answer> Resolve(const ClientOptions& options);
  Task<error_code> ConnectSocket(const ClientOptions& options);
  Task<error_code> StartTls(const ClientOptions& options);
  Task<error_code> ReadTls(asio::mutable_buffer room);
  // Waits until TLS can proceed.
  Task<error_code> WaitFor(TlsSession::Status wanted);
  // Sends what the socket accepts without blocking. Negative: the connection is lost.
  ssize_t SendNow(std::string_view head, std::string_view body);
  // Replaces the error of an operation by its cause: a timeout or a reset.
  error_code Outcome(error_code error);

  Loop& loop_;
  const Origin origin_;
  TcpSocket socket_;
  HostLookUp* look_up_ = nullptr;    // while a look-up runs
  std::unique_ptr<TlsSession> tls_;  // null: plain text
  std::string tls_failure_;
  bool open_ = false;
  bool timed_out_ = false;
  bool aborted_ = false;
  // One deadline for the current operation, on the loop's timer wheel: 0.1 us per read.
  // beast::basic_stream, which sets an Asio timer each time, took 1.2 us, a fifth of the total cost
  // of a streamed event.
  int64_t deadline_us_ = 0;
  int64_t timer_us_ = 0;
  Loop::TimerId timer_ = 0;
};

class ClientPool : public std::enable_shared_from_this<ClientPool> {
 public:
  ClientPool(Loop& loop, const ClientOptions& options) : loop_(loop), options_(options) {}

  // Returns an idle connection that can be reused, or null.
  std::shared_ptr<ClientConnection> Take(const Origin& origin);
  void Give(std::shared_ptr<ClientConnection> connection);
  size_t size() const;

  Loop& loop() { return loop_; }
  const ClientOptions& options() const { return options_; }

 private:
  struct OriginHash {
    size_t operator()(const Origin& origin) const {
      return std::hash<std::string>()(origin.address.empty() ? origin.host : origin.address) * 31 +
             origin.port + (origin.tls ? 1 : 0);
    }
  };
  void PruneLater();

  Loop& loop_;
  const ClientOptions options_;
  bool pruning_ = false;
  std::unordered_map<Origin, std::vector<std::shared_ptr<ClientConnection>>, OriginHash> idle_;
};

}  // namespace tollgate::http
