// The replicas of one service, and which of them gets the next call: health and outlier detection
// of docs/design/failures.md 3. A replica that hangs or is gone is left within a second; what runs
// on it then goes to another one, where it may (replica_call.h).
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

// Lives on one loop; made on any thread, destroyed on the loop or after it has stopped.
class Replicas : public std::enable_shared_from_this<Replicas> {
 public:
  using MakeChannel = std::function<std::shared_ptr<grpc::Channel>(const std::string& target)>;

  // target: as ChannelSource::Channel takes it. Each element of a list is a replica, and each
  // address of a name with several, which is looked up again every few seconds. service: for
  // metrics and logs. resolver: shared by the process; null: names are left to gRPC.
  static std::shared_ptr<Replicas> Make(Loop& loop, std::string service, const std::string& target,
                                        MakeChannel make_channel,
                                        std::shared_ptr<Resolver> resolver);

  // The replica for the next call: of those in use the one with the fewest calls. When none is in
  // use, all are: an outage of all is no reason to ask none. `not_this` only when there is no
  // other.
  std::shared_ptr<Replica> Pick(const Replica* not_this = nullptr);
  // The replica at this place among those in use, by an order that is the same for every client
  // (of the hashes of their addresses), counted in turn. When none is in use, as Pick.
  std::shared_ptr<Replica> PickInOrder(size_t place);
  // Whether PickInOrder and Pick may return it although another one is there.
  bool InUse(const Replica& replica) const;

  // All of them, for calls to each: in the order of the targets, of a name in that of its
  // addresses.
  std::vector<std::shared_ptr<Replica>> All() const { return replicas_; }

  // Counts a call that is no retry.
  void CountCall();
  // Whether a call may be sent again: calls that are sent again are at most a tenth of all, and a
  // hundred more, so that an outage makes no storm.
  bool TakeRetry();

  Loop& loop() const { return loop_; }
  // No probes and look-ups from now on; calls still work.
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
