#include "common/rpc/replica.h"

#include <grpcpp/channel.h>

#include <cstring>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/base/crypto.h"
#include "common/observability/held_metrics.h"
#include "common/observability/log.h"
#include "common/rpc/health_probe.h"

namespace tollgate::rpc {
namespace {

// Timeout of a probe, and so the interval at which a replica that hangs is probed. Longer than
// ReplicaHealth::kSilentUs.
constexpr int64_t kProbeTimeoutMs = 1'000;

const char* NameOf(ReplicaHealth::Reason reason) {
  switch (reason) {
    case ReplicaHealth::Reason::kSilent:
      return "silent";
    case ReplicaHealth::Reason::kUnreachable:
      return "unreachable";
    case ReplicaHealth::Reason::kNotServing:
      return "not_serving";
    case ReplicaHealth::Reason::kFailing:
      return "failing";
  }
  return "";
}

uint64_t HashOf(const std::string& address) {
  const std::string digest = Sha256(address);
  uint64_t hash = 0;
  std::memcpy(&hash, digest.data(), sizeof hash);
  return hash;
}

}  // namespace

Replica::Use::Use(std::shared_ptr<Replica> replica, std::function<void()> abandon, bool counts)
    : replica_(std::move(replica)), abandon_(std::move(abandon)), counts_(counts) {
  place_ = replica_->uses_.insert(replica_->uses_.end(), this);
  if (counts_) ++replica_->calls_;
}

Replica::Use::~Use() {
  replica_->uses_.erase(place_);
  if (counts_) --replica_->calls_;
}

Replica::Replica(Loop& loop, std::string service, std::string address,
                 std::shared_ptr<grpc::Channel> channel)
    : loop_(loop),
      service_(std::move(service)),
      address_(std::move(address)),
      address_hash_(HashOf(address_)),
      channel_(std::move(channel)),
      health_(MonotonicNowUs()),
      ejected_(metrics::HeldGauge("tollgate_rpc_replica_ejected",
                                  "Event loops of this process that do not use this replica at "
                                  "the moment because it hangs, is unreachable or fails",
                                  {{"service", service_}, {"address", address_}})) {
  using Reason = ReplicaHealth::Reason;
  // All series exist from the start, so that alerts see them rise from zero.
  for (const Reason reason :
       {Reason::kSilent, Reason::kUnreachable, Reason::kNotServing, Reason::kFailing}) {
    ejections_[reason] = metrics::HeldCounter(
        "tollgate_rpc_replica_ejections_total",
        "Ejections of a replica by one event loop, by reason: silent (hangs), unreachable, "
        "not_serving, failing",
        {{"service", service_}, {"address", address_}, {"reason", NameOf(reason)}});
  }
}

Replica::~Replica() {
  if (ejected()) ejected_->Decrement();
}

void Replica::Watch(std::function<void()> on_change) {
  on_change_ = std::move(on_change);
  watched_ = true;
  health_ = ReplicaHealth(MonotonicNowUs());
  if (!ticking_) Tick();
}

void Replica::Unwatch() {
  if (!watched_) return;
  watched_ = false;
  on_change_ = nullptr;
  if (ejected()) ejected_->Decrement();
  health_ = ReplicaHealth(MonotonicNowUs());
}

void Replica::CallEnded(bool answered) {
  if (!watched_) return;
  Apply([answered](ReplicaHealth& health, int64_t now_us) {
    answered ? health.CallAnswered(now_us) : health.CallFailed(now_us);
  });
  if (watched_ && !answered && health_.ProbeIsDue(MonotonicNowUs())) SendProbe();
}

void Replica::AbandonUses() {
  // They end later, never within this call, so the list does not change.
  for (Use* use : uses_) {
    if (std::exchange(use->abandoned_, true)) continue;
    if (use->abandon_) use->abandon_();
  }
}

void Replica::Tick() {
  ticking_ = watched_;
  if (!watched_) return;
  Apply([](ReplicaHealth& health, int64_t now_us) { health.Tick(now_us); });
  if (health_.ProbeIsDue(MonotonicNowUs())) SendProbe();
  loop_.RunAfter(ReplicaHealth::kTickUs / 1000, [weak = weak_from_this()] {
    if (auto self = weak.lock()) self->Tick();
  });
}

void Replica::SendProbe() {
  health_.ProbeSent(MonotonicNowUs());
  loop_.Spawn(Probe(weak_from_this(), loop_, channel_));
}

Task<void> Replica::Probe(std::weak_ptr<Replica> weak, Loop& loop,
                          std::shared_ptr<grpc::Channel> channel) {
  const Liveness found = co_await ProbeHealth(loop, std::move(channel), kProbeTimeoutMs);
  const auto self = weak.lock();
  if (!self || !self->watched_) co_return;
  self->Apply([found](ReplicaHealth& health, int64_t now_us) { health.ProbeEnded(found, now_us); });
}

template <typename Change>
void Replica::Apply(Change change) {
  const ReplicaHealth::State before = state();
  const bool was_recovering = recovering();
  change(health_, MonotonicNowUs());
  if (state() != before) Report(before);
  if (state() == before && recovering() == was_recovering) return;
  const auto on_change = on_change_;  // it may call Unwatch
  if (on_change) on_change();
}

void Replica::Report(ReplicaHealth::State before) {
  if (ejected()) {
    ejected_->Increment();
    const std::string reason = NameOf(health_.reason());
    ejections_[health_.reason()]->Increment();
    log::Warn("replica ejected until it answers again",
              {{"service", service_}, {"address", address_}, {"reason", reason}});
  } else if (before == ReplicaHealth::State::kEjected) {
    ejected_->Decrement();
    log::Info("a replica answers again", {{"service", service_}, {"address", address_}});
  }
}

}  // namespace tollgate::rpc
