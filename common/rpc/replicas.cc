#include "common/rpc/replicas.h"

#include <grpcpp/channel.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "common/observability/metrics.h"
#include "common/rpc/resolver.h"

namespace tollgate::rpc {
namespace {

constexpr double kRetriesPerCall = 0.1;
constexpr double kMaxRetries = 100;
// How often addresses of names are taken from the resolver.
constexpr int64_t kLookUpMs = 1'000;

// A replica on trial gets one call at a time.
bool TakesCalls(const Replica& replica) {
  using State = ReplicaHealth::State;
  return replica.state() == State::kUp ||
         (replica.state() == State::kTrial && replica.calls() == 0);
}

prometheus::Counter& Retries(const std::string& service, const std::string& outcome) {
  return metrics::Counter("tollgate_rpc_retries_total",
                          "Calls whose replica failed or was abandoned: sent to another replica, "
                          "or not because the retry budget was used up (no_budget)",
                          {{"service", service}, {"outcome", outcome}});
}

}  // namespace

std::shared_ptr<Replicas> Replicas::Make(Loop& loop, std::string service, const std::string& target,
                                         MakeChannel make_channel,
                                         std::shared_ptr<Resolver> resolver) {
  std::shared_ptr<Replicas> made(
      new Replicas(loop, std::move(service), std::move(make_channel), std::move(resolver)));
  made->parts_ = SplitTargets(target);
  if (made->parts_.empty()) made->parts_ = {target};
  for (const std::string& part : made->parts_) {
    made->replicas_.push_back(
        std::make_shared<Replica>(loop, made->service_, part, made->make_channel_(part)));
  }
  loop.Post([weak = std::weak_ptr<Replicas>(made)] {
    const auto self = weak.lock();
    if (!self) return;
    self->Set(self->parts_);
    self->LookUp();
  });
  return made;
}

Replicas::Replicas(Loop& loop, std::string service, MakeChannel make_channel,
                   std::shared_ptr<Resolver> resolver)
    : loop_(loop),
      service_(std::move(service)),
      make_channel_(std::move(make_channel)),
      resolver_(std::move(resolver)),
      retries_(kMaxRetries),
      moved_(Retries(service_, "sent")),
      kept_(Retries(service_, "no_budget")) {}

std::shared_ptr<Replica> Replicas::Pick(const Replica* not_this) {
  const auto best = [&](auto fits) {
    Replica* found = nullptr;
    size_t at = 0;
    for (size_t i = 0; i < replicas_.size(); ++i) {
      const size_t place = (next_ + i) % replicas_.size();
      Replica& replica = *replicas_[place];
      if (!fits(replica) || (found != nullptr && found->calls() <= replica.calls())) continue;
      found = &replica;
      at = place;
    }
    if (found != nullptr) next_ = at + 1;
    return found;
  };
  Replica* found =
      best([&](const Replica& replica) { return &replica != not_this && TakesCalls(replica); });
  if (found == nullptr) {
    found =
        best([&](const Replica& replica) { return &replica != not_this && !replica.ejected(); });
  }
  if (found == nullptr) found = best([&](const Replica& replica) { return !replica.ejected(); });
  if (found == nullptr) found = best([&](const Replica& replica) { return replica.recovering(); });
  if (found == nullptr) found = best([&](const Replica& replica) { return &replica != not_this; });
  if (found == nullptr) found = replicas_.front().get();
  return found->shared_from_this();
}

std::shared_ptr<Replica> Replicas::PickInOrder(size_t place) {
  if (replicas_.size() == 1) return replicas_.front();
  std::vector<Replica*> in_use;
  for (const auto& replica : replicas_) {
    if (TakesCalls(*replica)) in_use.push_back(replica.get());
  }
  if (in_use.empty()) return Pick();
  const auto at = in_use.begin() + static_cast<ptrdiff_t>(place % in_use.size());
  std::nth_element(in_use.begin(), at, in_use.end(), [](const Replica* one, const Replica* other) {
    return one->address_hash() < other->address_hash();
  });
  return (*at)->shared_from_this();
}

bool Replicas::InUse(const Replica& replica) const {
  return TakesCalls(replica) && std::any_of(replicas_.begin(), replicas_.end(),
                                            [&](const auto& one) { return one.get() == &replica; });
}

void Replicas::CountCall() { retries_ = std::min(retries_ + kRetriesPerCall, kMaxRetries); }

bool Replicas::TakeRetry() {
  if (retries_ < 1) {
    kept_.Increment();
    return false;
  }
  retries_ -= 1;
  moved_.Increment();
  return true;
}

void Replicas::Stop() {
  stopped_ = true;
  for (const auto& replica : replicas_) replica->Unwatch();
}

void Replicas::LookUp() {
  if (resolver_ == nullptr || stopped_) return;
  if (std::none_of(parts_.begin(), parts_.end(), IsName)) return;
  const std::vector<std::string> addresses = resolver_->AddressesOfAll(parts_);
  // gRPC itself tracks a name with a single address.
  const bool only_name = parts_.size() == 1 && replicas_.size() == 1 &&
                         replicas_[0]->address() == parts_[0] && addresses.size() == 1;
  if (!only_name) Set(addresses);
  loop_.RunAfter(kLookUpMs, [weak = weak_from_this()] {
    if (const auto self = weak.lock()) self->LookUp();
  });
}

void Replicas::Set(const std::vector<std::string>& addresses) {
  if (stopped_) return;
  std::vector<std::shared_ptr<Replica>> now;
  for (const std::string& address : addresses) {
    const auto known = std::find_if(replicas_.begin(), replicas_.end(), [&](const auto& replica) {
      return replica->address() == address;
    });
    now.push_back(known != replicas_.end() ? *known
                                           : std::make_shared<Replica>(loop_, service_, address,
                                                                       make_channel_(address)));
  }
  std::vector<std::shared_ptr<Replica>> gone;
  for (const auto& replica : replicas_) {
    if (std::find(now.begin(), now.end(), replica) == now.end()) gone.push_back(replica);
  }
  replicas_ = std::move(now);
  // Removed replicas are no longer probed. Streams, and calls that may move, continue on others.
  for (const auto& replica : gone) {
    replica->Unwatch();
    replica->AbandonUses();
  }
  // A single replica is used whatever its health.
  for (const auto& replica : replicas_) {
    if (replicas_.size() == 1) {
      replica->Unwatch();
    } else if (!replica->watched()) {
      replica->Watch([weak = weak_from_this()] {
        if (const auto self = weak.lock()) self->OnChange();
      });
    }
  }
}

// Calls and streams on a lost replica move as soon as another one is available.
void Replicas::OnChange() {
  const bool any = std::any_of(replicas_.begin(), replicas_.end(),
                               [](const auto& replica) { return !replica->lost(); });
  if (!any) return;
  for (const auto& replica : replicas_) {
    if (replica->lost()) replica->AbandonUses();
  }
}

}  // namespace tollgate::rpc
