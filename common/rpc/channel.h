// gRPC channels for target strings, with the common settings: fast reconnects, keepalive, message
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

// The largest message in bytes that a server or a client of ours receives. What may be larger
// travels in pieces (link_protocol.h). A sender needs no limit: the receiver's fails the call.
inline constexpr int kMaxMessageBytes = 4 << 20;

// The server of this process for admin services.
inline constexpr char kInprocAdmin[] = "inproc-admin:";

class ChannelSource {
 public:
  // With tls, "host:port" targets use it; null: plain text. In-process and unix targets never use
  // TLS. tls must outlive this.
  explicit ChannelSource(const TlsFiles* tls = nullptr);
  ~ChannelSource();

  // The servers of "inproc:" and kInprocAdmin. Null before they are destroyed: calls on channels
  // made later fail as unavailable.
  void SetServers(grpc::Server* server, grpc::Server* admin_server = nullptr);

  // A new channel with connections of its own. Targets: "inproc:" or "" (the server of this
  // process), kInprocAdmin, "unix:/path", "host:port", or a comma-separated list of host:port
  // (round-robin). Over TLS only a server whose certificate names the service, for example
  // "billing", is accepted. Thread-safe.
  std::shared_ptr<grpc::Channel> Channel(const std::string& target, std::string_view service);

 private:
  const TlsFiles* const tls_;
  struct State;
  std::unique_ptr<State> state_;
};

// How old a connection gets, in milliseconds, give or take a tenth. The client opens another one;
// calls and streams that run on the old one go on to their end.
inline constexpr int kMaxConnectionAgeMs = 3'600'000;

// Sets the limits and keepalive of a server.
void ConfigureServer(grpc::ServerBuilder& builder, int max_connection_age_ms = kMaxConnectionAgeMs);

}  // namespace tollgate::rpc
