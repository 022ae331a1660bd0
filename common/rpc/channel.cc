#include "common/rpc/channel.h"

#include <grpcpp/grpcpp.h>

#include <chrono>
#include <future>
#include <limits>
#include <mutex>
#include <utility>
#include <vector>

#include "common/rpc/connect_errno.h"
#include "common/rpc/resolver.h"
#include "common/rpc/tls.h"

namespace tollgate::rpc {
namespace {

// Timeout of a DNS look-up. Equals the default connect timeout for engines.
constexpr int kLookupMs = 3'000;

// gRPC's "minimum back-off" is in fact the duration of one connection attempt, not the pause
// between attempts. A TLS handshake needs several round trips, and processor time.
constexpr int kConnectMs = 100;
constexpr int kTlsConnectMs = 2'000;

grpc::ChannelArguments Arguments(int connect_ms = kConnectMs) {
  grpc::ChannelArguments arguments;
  // With the default back-off, clients reconnect to a restarted server only after more than a
  // second (docs/design/toolchain.md 2).
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MIN_RECONNECT_BACKOFF_MS, connect_ms);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  arguments.SetInt(GRPC_ARG_DNS_MIN_TIME_BETWEEN_RESOLUTIONS_MS, 1000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5'000);
  arguments.SetInt(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 1);
  arguments.SetInt(GRPC_ARG_HTTP2_MAX_PINGS_WITHOUT_DATA, 0);
  // Each channel has its own connections, so that loops do not share them.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // Internal calls must not use a proxy from the environment.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_RETRIES, 0);  // common/clients retries where it is safe
  // Disables look-ups of SRV and TXT records: a DNS server that does not answer them delays calls
  // by seconds.
  arguments.SetInt(GRPC_ARG_DNS_ENABLE_SRV_QUERIES, 0);
  arguments.SetInt(GRPC_ARG_SERVICE_CONFIG_DISABLE_RESOLUTION, 1);
  // Calls wait for a look-up at most until their own deadline. A stream without a deadline would
  // wait two minutes, gRPC's default.
  arguments.SetInt(GRPC_ARG_DNS_ARES_QUERY_TIMEOUT_MS, kLookupMs);
  // Its statistics are not used, and messages are not compressed.
  arguments.SetInt(GRPC_ARG_ENABLE_CHANNELZ, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_PER_MESSAGE_COMPRESSION, 0);
  arguments.SetInt(GRPC_ARG_ENABLE_PER_MESSAGE_DECOMPRESSION, 0);
  arguments.SetMaxReceiveMessageSize(kMaxMessageBytes);
  return arguments;
}

// Returns the addresses of all targets that are resolved within kLookupMs. A longer look-up
// continues on its thread and is ignored.
std::vector<std::string> ResolveAll(const std::vector<std::string>& targets) {
  const auto until = std::chrono::steady_clock::now() + std::chrono::milliseconds(kLookupMs);
  const LookUp look_up = SystemLookUp();
  std::vector<std::future<std::vector<std::string>>> lookups;
  for (const std::string& target : targets) {
    auto found = std::make_shared<std::promise<std::vector<std::string>>>();
    lookups.push_back(found->get_future());
    look_up(target, [found](auto addresses) { found->set_value(std::move(addresses)); });
  }
  std::vector<std::string> addresses;
  for (auto& lookup : lookups) {
    if (lookup.wait_until(until) != std::future_status::ready) continue;
    for (std::string& address : lookup.get()) addresses.push_back(std::move(address));
  }
  return addresses;
}

// Joins several replicas into one target for gRPC's load balancing. gRPC's own resolver handles a
// single name, since it follows changes of its addresses.
std::string GrpcTarget(const std::vector<std::string>& parts) {
  if (parts.size() == 1) return parts[0];
  std::string target;
  for (const std::string& address : ResolveAll(parts)) {
    target += (target.empty() ? "ipv4:" : ",") + address;
  }
  return target.empty() ? parts[0] : target;
}

}  // namespace

struct ChannelSource::State {
  std::mutex mutex;
  grpc::Server* server = nullptr;
  grpc::Server* admin_server = nullptr;
};

ChannelSource::ChannelSource(const TlsFiles* tls) : tls_(tls), state_(std::make_unique<State>()) {
  KeepErrnoOfConnect();
}
ChannelSource::~ChannelSource() = default;

void ChannelSource::SetServers(grpc::Server* server, grpc::Server* admin_server) {
  std::lock_guard lock(state_->mutex);
  state_->server = server;
  state_->admin_server = admin_server;
}

std::shared_ptr<grpc::Channel> ChannelSource::Channel(const std::string& target,
                                                      std::string_view service) {
  if (target.empty() || target == "inproc:" || target == kInprocAdmin) {
    std::lock_guard lock(state_->mutex);
    grpc::Server* server = target == kInprocAdmin ? state_->admin_server : state_->server;
    if (server != nullptr) return server->InProcessChannel(Arguments());
    // No process can listen on this address: calls fail as unavailable.
    return grpc::CreateCustomChannel("unix:/dev/null/none", grpc::InsecureChannelCredentials(),
                                     Arguments());
  }
  if (target.starts_with("unix:")) {
    return grpc::CreateCustomChannel(target, grpc::InsecureChannelCredentials(), Arguments());
  }
  grpc::ChannelArguments arguments = Arguments(tls_ != nullptr ? kTlsConnectMs : kConnectMs);
  arguments.SetLoadBalancingPolicyName("round_robin");
  return grpc::CreateCustomChannel(
      GrpcTarget(SplitTargets(target)),
      tls_ != nullptr ? tls_->ForClientOf(service) : grpc::InsecureChannelCredentials(), arguments);
}

void ConfigureServer(grpc::ServerBuilder& builder, int max_connection_age_ms) {
  builder.SetMaxReceiveMessageSize(kMaxMessageBytes);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIME_MS, 10'000);
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_TIMEOUT_MS, 5'000);
  // The server pings only connections with running calls. A client without a call reads from its
  // connection only every 5 s, too late for the timeout, so its next call would fail. Such clients
  // ping themselves.
  builder.AddChannelArgument(GRPC_ARG_KEEPALIVE_PERMIT_WITHOUT_CALLS, 0);
  // Clients ping every 10 s; by default the server closes connections that ping this often.
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MIN_RECV_PING_INTERVAL_WITHOUT_DATA_MS, 5'000);
  builder.AddChannelArgument(GRPC_ARG_HTTP2_MAX_PING_STRIKES, 0);
  // Ends old connections, so that a connection does not outlive an expired certificate or a
  // replaced authority for long.
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_MS, max_connection_age_ms);
  builder.AddChannelArgument(GRPC_ARG_MAX_CONNECTION_AGE_GRACE_MS, std::numeric_limits<int>::max());
  // Two processes on one port would be a configuration error.
  builder.AddChannelArgument(GRPC_ARG_ALLOW_REUSEPORT, 0);
}

}  // namespace tollgate::rpc
