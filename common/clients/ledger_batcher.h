// Batches of calls about workspaces to the replicas of billing: the calls of one ledger shard share
// the batches of one replica, whichever process makes them (docs/adr/0039).
#pragma once

#include <memory>
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
  // So many calls that no batch has taken yet are too many for one replica: further ones go to the
  // shard's next one.
  static constexpr size_t kMaxWaiting = Batches::kMaxItems;

  LedgerBatcher(Loop& loop, std::shared_ptr<rpc::Replicas> replicas, SendTo send)
      : loop_(loop), replicas_(std::move(replicas)), send_(std::move(send)) {}
  // Of the process itself.
  explicit LedgerBatcher(Loop& loop, std::shared_ptr<Batches> own)
      : loop_(loop), own_(std::move(own)) {}

  // The batches that take this item.
  std::shared_ptr<Batches> For(const Item& item) const {
    if (own_) return own_;
    if (replicas_->size() == 1) return Of(replicas_->PickFor(0));
    const auto shard = static_cast<uint64_t>(LedgerShard(item.workspace_id()));
    const std::shared_ptr<rpc::Replica> first = replicas_->PickFor(shard);
    std::shared_ptr<Batches> batches = Of(first);
    if (batches->waiting() < kMaxWaiting) return batches;
    return Of(replicas_->PickFor(shard, first.get()));
  }

 private:
  // Kept by the replica, which the clients of the loop share; so they hold it weakly.
  std::shared_ptr<Batches> Of(const std::shared_ptr<rpc::Replica>& replica) const {
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
};

}  // namespace tollgate
