// The replicas of a service, and the choice of one for the next call, by health and outlier
// detection (docs/design/failures.md 3). A replica that hangs or disappears is abandoned within a
// second; its calls then go to another one if they may (replica_caller.h).
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "common/rpc/replica.h"
#include "common/runtime/loop.h"

namespace prometheus {
class Counter;
}

namespace tollgate::rpc {

class Resolver;

// Lives on one loop; created on any thread, destroyed on the loop or after it has stopped.
class Replicas : public std::enable_shared_from_this<Replicas> {
 public:
  using MakeChannel = std::function<std::shared_ptr<grpc::Channel>(const std::string& target)>;

  // target: as for ChannelSource::Channel. Each element of a list is a replica, and so is each
  // address of a name with several addresses, which is resolved again every few seconds. service:
  // name in metrics and logs. resolver: shared by the process; null: gRPC resolves names.
  static std::shared_ptr<Replicas> Make(Loop& loop, std::string service, const std::string& target,
                                        MakeChannel make_channel,
                                        std::shared_ptr<Resolver> resolver);

  // Returns the replica in use with the fewest calls. If none is in use, considers all: even then a
  // call may succeed. Returns `not_this` only if there is no other.
  std::shared_ptr<Replica> Pick(const Replica* not_this = nullptr);
  // Returns the replica in use at this place (modulo their number), in an order that is the same
  // for every client: by the hashes of the addresses. If none is in use, as Pick.
  std::shared_ptr<Replica> PickInOrder(size_t place);
  // Whether PickInOrder and Pick may return it although another one is available.
  bool InUse(const Replica& replica) const;

  // All replicas, for calls to each: in the order of the targets, and of the addresses of a name.
  std::vector<std::shared_ptr<Replica>> All() const { return replicas_; }

  // Counts a call that is not a retry.
  void CountCall();
  // Whether a call may be retried. Retries are limited to a tenth of all calls plus a hundred, so
  // that an outage causes no retry storm.
  bool TakeRetry();

  Loop& loop() const { return loop_; }
  // Stops probes and look-ups; calls still work.
  void Stop();
  size_t size() const { return replicas_.size(); }

 private:
  Replicas(Loop& loop, std::string service, MakeChannel make_channel,
           std::shared_ptr<Resolver> resolver);
  void LookUp();
  void Set(const std::vector<std::string>& addresses);
  void OnChange();

  Loop& loop_;
  const std::string service_;
  const MakeChannel make_channel_;
  const std::shared_ptr<Resolver> resolver_;
  std::vector<std::string> parts_;
  std::vector<std::shared_ptr<Replica>> replicas_;
  size_t next_ = 0;
  bool stopped_ = false;
  double retries_;
  prometheus::Counter& moved_;
  prometheus::Counter& kept_;
};

}  // namespace tollgate::rpc
