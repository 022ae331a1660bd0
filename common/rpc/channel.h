// gRPC channels from target strings, with the settings that every channel of ours needs: quick
// reconnects, keepalive, message limits, optional mutual TLS.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "common/base/result.h"

namespace grpc {
class Channel;
class ChannelCredentials;
class Server;
class ServerBuilder;
class ServerCredentials;
}  // namespace grpc

namespace tollgate::config::v1 {
class TlsConfig;
}

namespace tollgate::rpc {

// Bytes of one message: a request body of the largest size that the edge takes, and room around it.
inline constexpr int kMaxMessageBytes = 64 << 20;

class ChannelSource {
 public:
  // With TLS configured, "host:port" targets use it; in-process and unix targets never do.
  static BasicResult<std::unique_ptr<ChannelSource>, std::string> Make(
      const config::v1::TlsConfig& tls);
  // Plain text.
  ChannelSource();
  ~ChannelSource();

  // Where "inproc:" leads. Null when the server is about to go: later channels lead nowhere.
  void SetServer(grpc::Server* server);

  // A new channel with connections of its own. Target: "inproc:" or "" (this process's server),
  // "unix:/path", "host:port", or several host:port with commas (calls go round). Thread-safe.
  std::shared_ptr<grpc::Channel> Channel(const std::string& target);

 private:
  std::shared_ptr<grpc::ChannelCredentials> credentials_;
  struct State;
  std::unique_ptr<State> state_;
};

// Credentials of a server: plain text without TLS configured. The callers' names are checked
// against tls.allowed_callers.
BasicResult<std::shared_ptr<grpc::ServerCredentials>, std::string> MakeServerCredentials(
    const config::v1::TlsConfig& tls);
// Limits and keepalive of a server.
void ConfigureServer(grpc::ServerBuilder& builder);

}  // namespace tollgate::rpc
