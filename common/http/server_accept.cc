// Decides which connections the server accepts: limits per address, eviction of idle connections
// when it is full, and handling of a lack of descriptors.
#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/http/connection.h"
#include "common/http/server_core.h"
#include "common/http/server_metrics.h"
#include "common/observability/log.h"

namespace tollgate::http {
namespace {

constexpr int64_t kAcceptPauseMs = 100;
// Limit of concurrent evictions, and so of new connections that wait for a place.
constexpr int kMaxWaiting = 64;
// The number of longest idle connections that are compared. The one whose address has most
// connections is evicted.
constexpr int kCandidates = 16;
// Evictions tried before a new connection is refused.
constexpr int kMaxTries = 16;
// Connections closed at once when descriptors run out.
constexpr int kMaxTurnedAway = 64;
constexpr int64_t kLogEveryUs = 10'000'000;

int OpenSpare() { return ::open("/dev/null", O_RDONLY | O_CLOEXEC); }

AddressSubject SubjectOf(const asio::ip::address& address) {
  if (address.is_v4()) return AddressSubject::FromIpv4(address.to_v4().to_bytes());
  return AddressSubject::FromIpv6(address.to_v6().to_bytes());
}

}  // namespace

ServerCore::Shard& ServerCore::LeastLoaded() {
  Shard* best = shards_[0].get();
  for (auto& shard : shards_) {
    if (shard->open.load() < best->open.load()) best = shard.get();
  }
  return *best;
}

// Accepts one connection at a time. While many evictions are in progress the rest waits in the
// kernel.
void ServerCore::Accept() {
  if (!acceptor_ || !acceptor_->is_open()) return;
  if (accepting_ || accept_pause_ != 0 || evictions_ >= kMaxWaiting) return;
  accepting_ = true;
  if (spare_descriptor_ < 0) spare_descriptor_ = OpenSpare();
  Shard& shard = LeastLoaded();
  acceptor_->async_accept(
      shard.loop->context(),
      [self = shared_from_this(), &shard](boost::system::error_code error, TcpSocket socket) {
        self->accepting_ = false;
        if (error == asio::error::operation_aborted) return;
        if (error) return self->AcceptFailed(error);
        self->Accepted(shard, std::move(socket));
        self->Accept();
      });
}

// Most likely out of descriptors. A client in the queue would wait forever, and retrying at once
// would be a busy loop.
void ServerCore::AcceptFailed(boost::system::error_code error) {
  LogRefusals("accept failed", error.message());
  if (error == asio::error::no_descriptors) TurnAway();
  accept_pause_ = shards_[0]->loop->RunAfter(kAcceptPauseMs, [self = shared_from_this()] {
    self->accept_pause_ = 0;
    self->Accept();
  });
}

// Accepts with the spare descriptor, and closes the connection.
void ServerCore::TurnAway() {
  const int listener = acceptor_->native_handle();
  for (int i = 0; i < kMaxTurnedAway && spare_descriptor_ >= 0; ++i) {
    ::close(std::exchange(spare_descriptor_, -1));
    // Asio has set the listener to non-blocking.
    const int taken = ::accept4(listener, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (taken >= 0) ::close(taken);
    spare_descriptor_ = OpenSpare();
    if (taken < 0) break;
    Refused(ConnectionRefusal::kDescriptors);
  }
  EvictIdle({});
}

void ServerCore::Refused(ConnectionRefusal reason) {
  if (options_.metrics != nullptr) options_.metrics->refused(reason).Increment();
}

void ServerCore::LogRefusals(std::string_view what, const std::string& why) {
  const int64_t now = MonotonicNowUs();
  if (now - refusals_logged_us_ < kLogEveryUs) return;
  refusals_logged_us_ = now;
  log::Warn(what, {{"reason", why}, {"connections", connections()}});
}

// A connection over a limit is closed without a response, which is cheapest.
void ServerCore::Accepted(Shard& shard, TcpSocket socket) {
  boost::system::error_code error;
  const auto peer = socket.remote_endpoint(error);
  if (error) return;
  const bool reserved =
      options_.max_descriptor > 0 && socket.native_handle() >= options_.max_descriptor;
  Arrival arrival{std::move(socket), peer.address().to_string(), SubjectOf(peer.address()),
                  reserved ? ConnectionRefusal::kDescriptors : ConnectionRefusal::kFull};
  const bool queue = reserved || waiting_ > 0;
  if (Admit(shard, arrival, queue) != ConnectionSlots::Outcome::kFull) return;
  ++waiting_;
  MakeRoom(shard, std::make_shared<Arrival>(std::move(arrival)), kMaxTries);
}

// Retries if the idle connection got a request before it could be closed.
void ServerCore::MakeRoom(Shard& shard, std::shared_ptr<Arrival> arrival, int tries) {
  EvictIdle([self = shared_from_this(), &shard, arrival, tries](Eviction eviction) {
    // A new connection with a reserved descriptor needs one that was closed for it.
    const bool may_enter =
        eviction == Eviction::kClosed ||
        (eviction == Eviction::kBusy && arrival->refusal != ConnectionRefusal::kDescriptors);
    const bool full =
        !may_enter || self->Admit(shard, *arrival, false) == ConnectionSlots::Outcome::kFull;
    if (full && eviction != Eviction::kNoneIdle && tries > 1) {
      return self->MakeRoom(shard, arrival, tries - 1);
    }
    --self->waiting_;
    if (!full) return;
    self->Refused(arrival->refusal);
    self->LogRefusals("connections are refused", arrival->refusal == ConnectionRefusal::kFull
                                                     ? "max_connections are in use"
                                                     : "the other descriptors are reserved");
  });
}

ConnectionSlots::Outcome ServerCore::Admit(Shard& shard, Arrival& arrival, bool queue) {
  ConnectionSlots::Slot slot;
  const bool exempt = options_.trusted_proxies.Contains(arrival.address);
  const auto outcome = slots_.Take(arrival.subject, exempt, queue, &slot);
  if (outcome == ConnectionSlots::Outcome::kSubjectFull) Refused(ConnectionRefusal::kAddress);
  if (!slot.taken()) return outcome;
  ++shard.open;
  auto tls =
      options_.tls != nullptr ? options_.tls->Accept(arrival.socket.native_handle()) : nullptr;
  auto connection = std::make_shared<Connection>(
      shared_from_this(), *shard.loop, shard.loop->index(), std::move(arrival.socket),
      std::move(tls), std::move(arrival.address), std::move(slot));
  shard.loop->Post([self = shared_from_this(), &shard, connection = std::move(connection)] {
    shard.connections.insert(connection);
    if (self->stopped_) return connection->CloseNow();
    connection->Start();
  });
  return outcome;
}

// Closes an idle connection. `done` runs on loop 0 when its place is free.
void ServerCore::EvictIdle(std::function<void(Eviction)> done) {
  Shard* victim = shards_[0].get();
  for (auto& shard : shards_) {
    if (shard->idle_since_us < victim->idle_since_us) victim = shard.get();
  }
  if (victim->idle_since_us == INT64_MAX) {
    if (done) done(Eviction::kNoneIdle);
    return;
  }
  ++evictions_;
  victim->loop->Post([self = shared_from_this(), victim, done = std::move(done)] {
    const bool evicted = self->EvictFrom(*victim);
    if (evicted && self->options_.metrics) self->options_.metrics->evicted.Increment();
    const Eviction outcome = evicted ? Eviction::kClosed : Eviction::kBusy;
    // Runs after the cancelled read has ended, which closes the connection.
    victim->loop->Post([self, outcome, done] {
      self->shards_[0]->loop->Post([self, outcome, done] {
        --self->evictions_;
        if (done) done(outcome);
        self->Accept();
      });
    });
  });
}

bool ServerCore::EvictFrom(Shard& shard) {
  struct Candidate {
    Connection* connection;
    int of_subject;  // read once: other loops change it during the sort
    int64_t idle_since_us;
  };
  std::vector<Candidate> candidates;
  for (IdleHook& hook : shard.idle) {
    if (candidates.size() == kCandidates) break;
    auto* connection = static_cast<Connection*>(&hook);
    candidates.push_back({connection, connection->slot().of_subject(), hook.idle_since_us});
  }
  std::sort(candidates.begin(), candidates.end(), [](const Candidate& a, const Candidate& b) {
    return a.of_subject != b.of_subject ? a.of_subject > b.of_subject
                                        : a.idle_since_us < b.idle_since_us;
  });
  return std::any_of(candidates.begin(), candidates.end(),
                     [](const Candidate& candidate) { return candidate.connection->Evict(); });
}

// An idle connection waits for a request, or discards the rest of a refused one.
void ServerCore::SetIdle(Connection& connection, bool idle) {
  Shard& shard = *shards_[static_cast<size_t>(connection.shard())];
  if (connection.is_linked()) {
    connection.unlink();
    shard.idle_count.fetch_sub(1, std::memory_order_relaxed);
  }
  if (idle) {
    connection.idle_since_us = MonotonicNowUs();
    shard.idle.push_back(connection);
    shard.idle_count.fetch_add(1, std::memory_order_relaxed);
  }
  shard.idle_since_us.store(shard.idle.empty() ? INT64_MAX : shard.idle.front().idle_since_us,
                            std::memory_order_relaxed);
}

void ServerCore::Closed(Connection& connection) {
  Shard& shard = *shards_[static_cast<size_t>(connection.shard())];
  SetIdle(connection, false);
  connection.slot().Release();
  --shard.open;
  Wake();
  shard.connections.erase(connection.shared_from_this());
}

}  // namespace tollgate::http
