// Batches of calls about workspaces to the replicas of billing: every client uses as few of them as
// keep up, in the same order, and the calls of one ledger shard share the batches of one replica
// (docs/adr/0039).
#pragma once

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "common/base/ledger_shard.h"
#include "common/clients/batcher.h"
#include "common/clients/transport.h"
#include "common/rpc/replicas.h"

namespace tollgate {

// Item: a message with a workspace_id. Lives on one loop.
template <typename Item, typename Reply>
class LedgerBatcher {
 public:
  using Batches = Batcher<Item, Reply>;
  // Sends one batch, to the replica `first` while it is in use.
  using SendTo = std::function<Task<Result<std::vector<Reply>>>(
      std::shared_ptr<rpc::Replicas> replicas, std::shared_ptr<rpc::Replica> first,
      std::vector<Item> items, int64_t timeout_ms)>;
  // How many unanswered calls of a client one replica gets, before further shards go to another
  // one.
  static constexpr size_t kOfOneReplica = 64;

  LedgerBatcher(Loop& loop, std::shared_ptr<rpc::Replicas> replicas, SendTo send)
      : loop_(loop), replicas_(std::move(replicas)), send_(std::move(send)) {}
  // Of the process itself.
  LedgerBatcher(Loop& loop, std::shared_ptr<Batches> own) : loop_(loop), own_(std::move(own)) {}

  // Where an item goes. It is kept until the item is answered.
  class Place {
   public:
    Place(std::shared_ptr<Batches> batches, std::shared_ptr<size_t> unanswered)
        : batches_(std::move(batches)), unanswered_(std::move(unanswered)) {
      ++*unanswered_;
    }
    Place(const Place&) = delete;
    Place& operator=(const Place&) = delete;
    ~Place() { --*unanswered_; }
    Batches* operator->() const { return batches_.get(); }

   private:
    const std::shared_ptr<Batches> batches_;
    const std::shared_ptr<size_t> unanswered_;
  };
  Place For(const Item& item) const {
    return Place(own_ ? own_ : OfShard(item.workspace_id()), unanswered_);
  }
  // Where items of the workspace go at the moment. Not of the process itself.
  std::shared_ptr<rpc::Replica> ReplicaOf(const std::string& workspace) const {
    const size_t in_use = 1 + *unanswered_ / kOfOneReplica;
    const size_t place = in_use == 1 ? 0 : static_cast<size_t>(LedgerShard(workspace)) % in_use;
    return replicas_->PickInOrder(place);
  }

 private:
  std::shared_ptr<Batches> OfShard(const std::string& workspace) const {
    const auto replica = ReplicaOf(workspace);
    // Kept by the replica, which the clients of the loop share; so they hold it weakly.
    return replica->template Companion<Batches>([&] {
      return std::make_shared<Batches>(
          loop_, [send = send_, replicas = std::weak_ptr(replicas_),
                  first = std::weak_ptr(replica)](std::vector<Item> items, int64_t timeout_ms) {
            return Send(send, replicas.lock(), first.lock(), std::move(items), timeout_ms);
          });
    });
  }
  static Task<Result<std::vector<Reply>>> Send(SendTo send, std::shared_ptr<rpc::Replicas> replicas,
                                               std::shared_ptr<rpc::Replica> first,
                                               std::vector<Item> items, int64_t timeout_ms) {
    if (!replicas) co_return Unavailable("billing: the process stops");
    co_return co_await send(std::move(replicas), std::move(first), std::move(items), timeout_ms);
  }

  Loop& loop_;
  const std::shared_ptr<Batches> own_;
  const std::shared_ptr<rpc::Replicas> replicas_;
  const SendTo send_;
  // Shared by the places, which may outlive the client.
  const std::shared_ptr<size_t> unanswered_ = std::make_shared<size_t>(0);
};

}  // namespace tollgate
