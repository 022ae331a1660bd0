#include "common/http/server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <netinet/tcp.h>
#include <boost/asio/ip/tcp.hpp>

#include "common/base/clock.h"
#include "common/base/time_units.h"
#include "common/base/try.h"
#include "common/http/connection.h"
#include "common/http/keep_alive.h"
#include "common/http/server_core.h"
#include "common/http/server_metrics.h"
#include "common/observability/log.h"
#include "common/observability/metrics.h"

namespace tollgate::http {
namespace {

using asio::ip::tcp;

// Unsent bytes in the kernel above which writes wait for the client (back-pressure).
constexpr int kUnsentBytes = 128 * 1024;
constexpr int64_t kStopWaitUs = 10'000'000;
// Time for the ends of responses that a drain did not wait for.
constexpr int64_t kLastWordsUs = 2'000'000;
constexpr int64_t kShedIdleEveryUs = 1'000'000;

Result<tcp::endpoint> ParseAddress(const std::string& address) {
  size_t colon = address.rfind(':');
  if (colon == std::string::npos) return Internal("the listen address has no port: " + address);
  std::string host = address.substr(0, colon);
  std::string port = address.substr(colon + 1);
  if (host.size() >= 2 && host.front() == '[' && host.back() == ']') {
    host = host.substr(1, host.size() - 2);
  }
  if (host.empty() || host == "*") host = "0.0.0.0";
  if (port.empty() || port.size() > 5 ||
      port.find_first_not_of("0123456789") != std::string::npos || std::stoi(port) > 65535) {
    return Internal("the listen address has an invalid port: " + address);
  }
  uint16_t number = static_cast<uint16_t>(std::stoi(port));
  boost::system::error_code error;
  auto ip = asio::ip::make_address(host, error);
  if (!error) return tcp::endpoint(ip, number);
  asio::io_context context;
  tcp::resolver resolver(context);
  auto found = resolver.resolve(host, port, error);
  if (error || found.empty()) return Internal("cannot resolve " + host + ": " + error.message());
  return found.begin()->endpoint();
}

RequestLimits LimitsOf(const ServerOptions& options) {
  return {.head = {options.max_head_bytes, options.max_target_bytes, options.max_fields},
          .max_body_bytes = options.max_body_bytes,
          .chunks = {.max_body_bytes = options.max_body_bytes,
                     .max_extension_bytes = options.max_chunk_extension_bytes,
                     .max_trailer_bytes = options.max_trailer_bytes}};
}

// Accepted sockets inherit these options.
void SetListenOptions(int fd) {
  int on = 1;
  ::setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  NoticeLostPeers(fd);
  ::setsockopt(fd, IPPROTO_TCP, TCP_NOTSENT_LOWAT, &kUnsentBytes, sizeof kUnsentBytes);
}

}  // namespace

ServerCore::ServerCore(LoopPool& loops, ServerOptions options, Server::Handler handler)
    : loops_(loops),
      options_(std::move(options)),
      request_limits_(LimitsOf(options_)),
      handler_(std::move(handler)),
      slots_(options_.max_connections, options_.max_connections_per_address > 0
                                           ? options_.max_connections_per_address
                                           : std::max(1, options_.max_connections / 4)),
      untrusted_forwards_(
          metrics::Counter("tollgate_http_untrusted_forwards_total",
                           "Requests with X-Forwarded-For from an address that is not in "
                           "trusted_proxies. The header "
                           "is ignored: all clients behind such a proxy count as one address.")) {
  for (int i = 0; i < loops_.size(); ++i) {
    shards_.push_back(std::make_unique<Shard>());
    shards_.back()->loop = &loops_.loop(i);
  }
  if (options_.metrics == nullptr) return;
  gauges_ = metrics::BeforeRender([this] { UpdateGauges(); });
}

ServerCore::~ServerCore() {
  if (spare_descriptor_ >= 0) ::close(spare_descriptor_);
}

void ServerCore::NoteForwarded(const std::string& peer_address) {
  if (options_.trusted_proxies.Contains(peer_address)) return;
  untrusted_forwards_.Increment();
  const int64_t now_us = MonotonicNowUs();
  int64_t logged_us = untrusted_logged_us_.load();
  if (now_us - logged_us < kHourUs ||
      !untrusted_logged_us_.compare_exchange_strong(logged_us, now_us)) {
    return;
  }
  log::Warn(
      "X-Forwarded-For is ignored: the peer is not in trusted_proxies; if it is your proxy, "
      "all clients behind it count as one address",
      {{"peer", peer_address}});
}

void ServerCore::UpdateGauges() const {
  const ServerMetrics& metrics = *options_.metrics;
  int idle = 0;
  for (const auto& shard : shards_) idle += shard->idle_count.load(std::memory_order_relaxed);
  metrics.connections.Set(connections());
  metrics.idle_connections.Set(idle);
  metrics.connection_limit.Set(options_.max_connections);
  if (options_.memory == nullptr) return;
  metrics.memory_used.Set(static_cast<double>(options_.memory->used()));
  metrics.memory_limit.Set(static_cast<double>(options_.memory->limit()));
}

Result<void> ServerCore::Listen(const std::string& address) {
  TRY(auto endpoint, ParseAddress(address));
  auto acceptor = std::make_unique<Acceptor>(shards_[0]->loop->context());
  boost::system::error_code error;
  acceptor->open(endpoint.protocol(), error);
  if (!error) acceptor->set_option(tcp::acceptor::reuse_address(true), error);
  if (!error) SetListenOptions(acceptor->native_handle());
  if (!error) acceptor->bind(endpoint, error);
  if (!error) acceptor->listen(4096, error);
  if (error) return Internal("cannot listen on " + address + ": " + error.message());
  host_ = acceptor->local_endpoint().address().to_string();
  if (acceptor->local_endpoint().address().is_v6()) host_ = "[" + host_ + "]";
  port_ = acceptor->local_endpoint().port();
  acceptor_ = std::move(acceptor);
  listening_ = true;
  shards_[0]->loop->Post([self = shared_from_this()] { self->Accept(); });
  return {};
}

std::string ServerCore::address() const { return host_ + ":" + std::to_string(port_); }

void ServerCore::ShedIdle() {
  const int64_t now = MonotonicNowUs();
  int64_t last = idle_shed_us_.load();
  if (now - last < kShedIdleEveryUs || !idle_shed_us_.compare_exchange_strong(last, now)) return;
  ForEachShard([this](Shard& shard) {
    const auto connections = shard.connections;
    for (const auto& connection : connections) {
      if (connection->CloseIfIdle() && options_.metrics)
        options_.metrics->shed(ShedStep::kIdle).Increment();
    }
  });
}

void ServerCore::RequestEnded() {
  running_.fetch_sub(1);
  if (draining()) Wake();
}

void ServerCore::Wake() {
  {
    std::lock_guard lock(mutex_);
  }
  changed_.notify_all();
}

HttpResponse ServerCore::RenderError(const Error& error, HttpRequest& request) const {
  if (options_.render_error) return options_.render_error(error, request);
  return HttpResponse{error.row().http_status,
                      {{"content-type", "text/plain; charset=utf-8"}},
                      std::string(error.public_message()) + "\n"};
}

void ServerCore::ForEachShard(std::function<void(Shard&)> callback) {
  for (auto& shard : shards_) {
    shard->loop->Post([self = shared_from_this(), callback, &shard = *shard] { callback(shard); });
  }
}

bool ServerCore::WaitUntil(int64_t deadline_us, const std::function<bool()>& done) {
  std::unique_lock lock(mutex_);
  int64_t left_us = std::max<int64_t>(0, deadline_us - MonotonicNowUs());
  return changed_.wait_for(lock, std::chrono::microseconds(left_us), done);
}

void ServerCore::CloseAcceptor() {
  shards_[0]->loop->Post([self = shared_from_this()] {
    if (self->accept_pause_ != 0) self->shards_[0]->loop->CancelTimer(self->accept_pause_);
    boost::system::error_code error;
    if (self->acceptor_ && self->acceptor_->is_open()) {
      // Connections in the accept queue are established for their clients, so they are still
      // served.
      self->acceptor_->non_blocking(true, error);
      while (!error && !self->stopped_) {
        Shard& shard = self->LeastLoaded();
        TcpSocket socket(shard.loop->context());
        self->acceptor_->accept(socket, error);
        if (!error) self->Accepted(shard, std::move(socket));
      }
      self->acceptor_->close(error);
    }
    self->listening_ = false;
    self->Wake();
  });
}

void ServerCore::Drain(int64_t deadline_us) {
  if (AllEnded()) return;
  draining_ = true;
  CloseAcceptor();
  ForEachShard([](Shard& shard) {
    auto connections = shard.connections;
    for (const auto& connection : connections) connection->CloseIfIdle();
  });
  if (WaitUntil(deadline_us, [this] { return AllEnded(); })) return;
  drain_over_ = true;
  ForEachShard([](Shard& shard) {
    auto connections = shard.connections;
    for (const auto& connection : connections) connection->EndRequest();
  });
  WaitUntil(MonotonicNowUs() + kLastWordsUs, [this] { return AllEnded(); });
}

void ServerCore::Stop() {
  if (stopped_.exchange(true)) return;
  draining_ = true;
  if (AllEnded()) return;
  CloseAcceptor();
  ForEachShard([](Shard& shard) {
    auto connections = shard.connections;
    for (const auto& connection : connections) connection->CloseNow();
  });
  bool ended = WaitUntil(MonotonicNowUs() + kStopWaitUs, [this] { return AllEnded(); });
  if (!ended)
    log::Error("stopped while HTTP handlers are still running", {{"running", running_.load()}});
}

Headers SecurityHeaders(bool https) {
  Headers headers = {{"x-content-type-options", "nosniff"}};
  if (https) headers.emplace_back("strict-transport-security", "max-age=31536000");
  return headers;
}

Server::Server(LoopPool& loops, ServerOptions options, Handler handler)
    : core_(std::make_shared<ServerCore>(loops, std::move(options), std::move(handler))) {}
Server::~Server() { Stop(); }
Result<void> Server::Listen(const std::string& address) { return core_->Listen(address); }
std::string Server::address() const { return core_->address(); }
uint16_t Server::port() const { return core_->port(); }
int Server::connections() const { return core_->connections(); }
int Server::running_requests() const { return core_->running(); }
void Server::Drain(int64_t deadline_us) { core_->Drain(deadline_us); }
void Server::Stop() { core_->Stop(); }

}  // namespace tollgate::http
