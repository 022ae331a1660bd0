// gRPC channels for target strings, with the common settings: fast reconnects, keepalive, message
// limits, optional mutual TLS.
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

// The largest message in bytes that a server or a client of ours receives. What may be larger
// travels in pieces (link_protocol.h). A sender needs no limit: the receiver's fails the call.
inline constexpr int kMaxMessageBytes = 4 << 20;

// The server of this process for admin services.
inline constexpr char kInprocAdmin[] = "inproc-admin:";

class ChannelSource {
 public:
  // If TLS is configured, "host:port" targets use it. In-process and unix targets never do.
  static BasicResult<std::unique_ptr<ChannelSource>, std::string> Make(
      const config::v1::TlsConfig& tls);
  // Plain text.
  ChannelSource();
  ~ChannelSource();

  // The servers of "inproc:" and kInprocAdmin. Null before they are destroyed: calls on channels
  // made later fail as unavailable.
  void SetServers(grpc::Server* server, grpc::Server* admin_server = nullptr);

  // A new channel with connections of its own. Targets: "inproc:" or "" (the server of this
  // process), kInprocAdmin, "unix:/path", "host:port", or a comma-separated list of host:port
  // (round-robin). Thread-safe.
  std::shared_ptr<grpc::Channel> Channel(const std::string& target);

 private:
  std::shared_ptr<grpc::ChannelCredentials> credentials_;
  struct State;
  std::unique_ptr<State> state_;
};

// The credentials of a server: plain text unless TLS is configured. The names of callers are
// checked against tls.allowed_callers.
BasicResult<std::shared_ptr<grpc::ServerCredentials>, std::string> MakeServerCredentials(
    const config::v1::TlsConfig& tls);
// Sets the limits and keepalive of a server.
void ConfigureServer(grpc::ServerBuilder& builder);

}  // namespace tollgate::rpc
