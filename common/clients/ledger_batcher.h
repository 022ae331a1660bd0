// Sends batched calls about workspaces to billing. All clients use the same order of replicas and
// as few replicas as keep up. The calls of a ledger shard share the batches of one replica
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
  // Sends one batch, preferably to the replica `first`.
  using SendTo = std::function<Task<Result<std::vector<Reply>>>(
      std::shared_ptr<rpc::Replicas> replicas, std::shared_ptr<rpc::Replica> first,
      std::vector<Item> items, int64_t timeout_ms)>;
  // Unanswered calls of this client per replica in use. Above this, part of the shards move to
  // another replica.
  static constexpr size_t kOfOneReplica = 64;

  LedgerBatcher(Loop& loop, std::shared_ptr<rpc::Replicas> replicas, SendTo send)
      : loop_(loop), replicas_(std::move(replicas)), send_(std::move(send)) {}
  // For billing in the same process.
  LedgerBatcher(Loop& loop, std::shared_ptr<Batches> own) : loop_(loop), own_(std::move(own)) {}

  // The batcher for an item. Keep it until the item is answered: it counts as unanswered.
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
  // The replica that currently serves the workspace. Not for billing in the same process.
  std::shared_ptr<rpc::Replica> ReplicaOf(const std::string& workspace) const {
    const size_t in_use = 1 + *unanswered_ / kOfOneReplica;
    const size_t place = in_use == 1 ? 0 : static_cast<size_t>(LedgerShard(workspace)) % in_use;
    return replicas_->PickInOrder(place);
  }

 private:
  std::shared_ptr<Batches> OfShard(const std::string& workspace) const {
    const auto replica = ReplicaOf(workspace);
    // The replica owns the batcher, and the clients of the loop share it. So the batcher holds the
    // replica weakly.
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
    if (!replicas) co_return Unavailable("billing: the process is stopping");
    co_return co_await send(std::move(replicas), std::move(first), std::move(items), timeout_ms);
  }

  Loop& loop_;
  const std::shared_ptr<Batches> own_;
  const std::shared_ptr<rpc::Replicas> replicas_;
  const SendTo send_;
  // Shared with the places, which may outlive the client.
  const std::shared_ptr<size_t> unanswered_ = std::make_shared<size_t>(0);
};

}  // namespace tollgate
