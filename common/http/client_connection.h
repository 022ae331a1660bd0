// One connection of the client, and the pool that keeps those that may be used again. Internal to
// common/http. One loop's thread only.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "common/http/client.h"
#include "common/http/input_buffer.h"
#include "common/http/tls.h"
#include "common/runtime/loop.h"

namespace tollgate::http {

using boost::system::error_code;

class ClientConnection : public std::enable_shared_from_this<ClientConnection> {
 public:
  ClientConnection(Loop& loop, Origin origin);
  ~ClientConnection();

  // Each of these ends with operation_aborted after Close, and with timed_out when its time is
  // over.
  Task<error_code> Connect(const ClientOptions& options);
  Task<error_code> SendAll(std::string_view head, std::string_view body, int64_t idle_timeout_ms);
  // One read of the socket into input, at most limit bytes there in all.
  Task<error_code> ReadSome(size_t limit, int64_t timeout_ms);

  // Closes; with a reset, so that a peer in the middle of an answer notices at its next write.
  void Reset();
  bool open() const { return open_; }
  // Whether the peer has neither closed nor sent anything unasked for.
  bool LooksAlive();

  const Origin& origin() const { return origin_; }
  // Why Connect failed, when TLS was the reason.
  const std::string& tls_failure() const { return tls_failure_; }
  InputBuffer input;
  bool used = false;  // has carried a whole request and answer
  int64_t idle_since_us = 0;

 private:
  void SetDeadline(int64_t timeout_ms);
  void ClearDeadline() { deadline_us_ = 0; }
  void ArmTimer();
  Task<error_code> ConnectSocket();
  Task<error_code> StartTls(const ClientOptions& options);
  Task<error_code> ReadTls(size_t room);
  // Waits until TLS can go on, or fails.
  Task<error_code> WaitFor(TlsSession::Status wanted);
  // Takes what the socket takes at once. Negative: the connection is broken.
  ssize_t SendNow(std::string_view head, std::string_view body);
  // What an operation that ended with this really ended with.
  error_code Outcome(error_code error);

  Loop& loop_;
  const Origin origin_;
  TcpSocket socket_;
  std::unique_ptr<TlsSession> tls_;  // null: plain text
  std::string tls_failure_;
  bool open_ = false;
  bool timed_out_ = false;
  bool aborted_ = false;
  int64_t deadline_us_ = 0;
  int64_t timer_us_ = 0;
  Loop::TimerId timer_ = 0;
};

class ClientPool : public std::enable_shared_from_this<ClientPool> {
 public:
  ClientPool(Loop& loop, const ClientOptions& options) : loop_(loop), options_(options) {}

  // A kept connection that looks alive; null when there is none.
  std::shared_ptr<ClientConnection> Take(const Origin& origin);
  void Give(std::shared_ptr<ClientConnection> connection);
  size_t size() const;

  Loop& loop() { return loop_; }
  const ClientOptions& options() const { return options_; }

 private:
  struct OriginHash {
    size_t operator()(const Origin& origin) const {
      return std::hash<std::string>()(origin.host) * 31 + origin.port + (origin.tls ? 1 : 0);
    }
  };
  void PruneLater();

  Loop& loop_;
  const ClientOptions options_;
  bool pruning_ = false;
  std::unordered_map<Origin, std::vector<std::shared_ptr<ClientConnection>>, OriginHash> idle_;
};

}  // namespace tollgate::http
