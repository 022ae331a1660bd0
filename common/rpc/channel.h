// gRPC channels for target strings, with common settings: fast reconnects, keepalive, message
// limits, optional mutual TLS.
#pragma once

#include <memory>
#include <string>
#include <string_view>

namespace grpc {
class Channel;
class Server;
class ServerBuilder;
}  // namespace grpc

namespace tollgate::rpc {

class TlsFiles;

// The largest message that our servers and clients receive, in bytes. Larger content travels in
// pieces (link_protocol.h). Senders need no limit: the receiver's limit fails the call.
inline constexpr int kMaxMessageBytes = 4 << 20;

// Target of this process's server for admin services.
inline constexpr char kInprocAdmin[] = "inproc-admin:";

class ChannelSource {
 public:
  // tls applies to "host:port" targets and must outlive this object; null: plain text. In-process
  // and unix targets never use TLS.
  explicit ChannelSource(const TlsFiles* tls = nullptr);
  ~ChannelSource();

  // Sets the servers of "inproc:" and kInprocAdmin. Set null before they are destroyed: calls on
  // channels created later fail as unavailable.
  void SetServers(grpc::Server* server, grpc::Server* admin_server = nullptr);

  // Creates a channel with its own connections. Targets: "inproc:" or "" (the server of this
  // process), kInprocAdmin, "unix:/path", "host:port", or a comma-separated list of host:port
  // (round-robin). Over TLS the server's certificate must name the service, for example "billing".
  // Thread-safe.
  std::shared_ptr<grpc::Channel> Channel(const std::string& target, std::string_view service);

 private:
  const TlsFiles* const tls_;
  struct State;
  std::unique_ptr<State> state_;
};

// Maximum age of a connection in milliseconds, give or take a tenth. The client then opens another
// one; running calls and streams continue on the old one.
inline constexpr int kMaxConnectionAgeMs = 3'600'000;

// Sets the limits and keepalive of a server.
void ConfigureServer(grpc::ServerBuilder& builder, int max_connection_age_ms = kMaxConnectionAgeMs);

}  // namespace tollgate::rpc
