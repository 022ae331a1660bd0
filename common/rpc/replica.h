// One replica of a service as used by one loop: its channel, its health, and its running calls.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>

#include "common/rpc/replica_health.h"
#include "common/runtime/loop.h"

namespace grpc {
class Channel;
}
namespace prometheus {
class Counter;
class Gauge;
}  // namespace prometheus

namespace tollgate::rpc {

// Lives on one loop; may be created and destroyed elsewhere while that loop does not use it.
class Replica : public std::enable_shared_from_this<Replica> {
 public:
  // A running call or stream on a replica. The replica lives at least as long.
  class Use {
   public:
    // abandon: gives the call up, at most once; its caller then tries another replica. counts:
    // whether the call counts in calls().
    Use(std::shared_ptr<Replica> replica, std::function<void()> abandon, bool counts);
    ~Use();
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;
    const std::shared_ptr<Replica>& replica() const { return replica_; }
    bool abandoned() const { return abandoned_; }

   private:
    friend class Replica;
    const std::shared_ptr<Replica> replica_;
    const std::function<void()> abandon_;
    const bool counts_;
    bool abandoned_ = false;
    std::list<Use*>::iterator place_;
  };

  // service: name in metrics and logs.
  Replica(Loop& loop, std::string service, std::string address,
          std::shared_ptr<grpc::Channel> channel);
  ~Replica();

  const std::string& address() const { return address_; }
  // The same value in every process.
  uint64_t address_hash() const { return address_hash_; }
  const std::shared_ptr<grpc::Channel>& channel() const { return channel_; }
  // Returns the client stub of a service on this channel.
  template <typename Service>
  std::shared_ptr<typename Service::Stub> Stub();

  // Returns an object that a client keeps with the replica, identified by its type; make() creates
  // it at the first call. Destroyed with the replica.
  template <typename T, typename Make>
  std::shared_ptr<T> Companion(Make make);

  // Starts probes, and calls on_change after each change of the state or of recovering(). Before
  // this call the replica counts as up.
  void Watch(std::function<void()> on_change);
  // Stops probes. The replica counts as up.
  void Unwatch();
  bool watched() const { return watched_; }
  ReplicaHealth::State state() const { return health_.state(); }
  bool ejected() const { return state() == ReplicaHealth::State::kEjected; }
  bool recovering() const { return health_.recovering(); }
  // Whether it hangs or is unreachable; false if only its calls fail.
  bool lost() const { return ejected() && !recovering(); }
  // Whether it answers nothing although it may still be connected.
  bool hung() const { return lost() && health_.reason() == ReplicaHealth::Reason::kSilent; }

  // The number of running calls.
  int calls() const { return calls_; }
  // Reports the outcome of a call. answered: also true for a refusal.
  void CallEnded(bool answered);
  // Abandons the running calls and streams.
  void AbandonUses();

 private:
  void Tick();
  void SendProbe();
  static Task<void> Probe(std::weak_ptr<Replica> weak, Loop& loop,
                          std::shared_ptr<grpc::Channel> channel);
  // Applies a change of the health.
  template <typename Change>
  void Apply(Change change);
  void Report(ReplicaHealth::State before);

  Loop& loop_;
  const std::string service_;
  const std::string address_;
  const uint64_t address_hash_;
  const std::shared_ptr<grpc::Channel> channel_;
  std::unordered_map<const void*, std::shared_ptr<void>> stubs_;  // and companions
  ReplicaHealth health_;
  std::function<void()> on_change_;
  bool watched_ = false;
  bool ticking_ = false;
  int calls_ = 0;
  std::list<Use*> uses_;
  // Held, so that the series of an address disappear with its last user.
  const std::shared_ptr<prometheus::Gauge> ejected_;
  std::map<ReplicaHealth::Reason, std::shared_ptr<prometheus::Counter>> ejections_;
};

template <typename Service>
std::shared_ptr<typename Service::Stub> Replica::Stub() {
  static const char tag = 0;  // its address names the service
  std::shared_ptr<void>& stub = stubs_[&tag];
  if (!stub) stub = std::shared_ptr<typename Service::Stub>(Service::NewStub(channel_));
  return std::static_pointer_cast<typename Service::Stub>(stub);
}

template <typename T, typename Make>
std::shared_ptr<T> Replica::Companion(Make make) {
  static const char tag = 0;
  std::shared_ptr<void>& companion = stubs_[&tag];
  if (!companion) companion = make();
  return std::static_pointer_cast<T>(companion);
}

}  // namespace tollgate::rpc
