// Sends batched calls about workspaces to billing. All clients use the same order of replicas and
// as few replicas as keep up. The calls of a ledger shard share the batches of one replica
// (docs/adr/0039).
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "common/base/ledger_shard.h"
#include "common/clients/batcher.h"
#include "common/rpc/replicas.h"
#include "tollgate/billing/v1/billing.pb.h"

namespace tollgate {

// DENY_REASON_UNAVAILABLE means "ask again". Callers treat it like an unreachable ledger.
template <typename Reply>
Result<Reply> UnlessUnavailable(Result<Reply> result) {
  if (result.ok() && result->denied_by() == billing::v1::DENY_REASON_UNAVAILABLE) {
    return Unavailable("billing: the ledger of this workspace cannot be written at the moment");
  }
  return result;
}

// Method: a batched method whose items have a workspace_id. Lives on one loop, held by shared_ptr.
template <typename Method>
class LedgerBatcher : public std::enable_shared_from_this<LedgerBatcher<Method>> {
 public:
  using Item = typename Method::Item;
  using Reply = typename Method::Reply;
  // Unanswered calls of this client per replica in use. Above this, part of the shards move to
  // another replica.
  static constexpr size_t kOfOneReplica = 64;

  // direct: for billing in the same process, which needs no replicas; otherwise empty.
  LedgerBatcher(Loop& loop, std::shared_ptr<rpc::Replicas> replicas,
                typename rpc::ReplicaCaller<Method>::Direct direct)
      : loop_(loop), replicas_(std::move(replicas)) {
    if (direct) own_ = std::make_shared<Batches>(loop, Route{loop, std::move(direct)});
  }

  Task<Result<Reply>> Call(Item item, int64_t timeout_ms) {
    const auto self = this->shared_from_this();
    const auto batches = own_ ? own_ : BatchesOf(*ReplicaOf(item.workspace_id()));
    const Unanswered unanswered(unanswered_);
    co_return UnlessUnavailable(co_await batches->Call(std::move(item), timeout_ms));
  }
  // The replica that currently serves the workspace. Null: billing is in the same process.
  std::shared_ptr<rpc::Replica> ReplicaOf(const std::string& workspace) const {
    if (own_) return nullptr;
    const size_t in_use = 1 + unanswered_ / kOfOneReplica;
    const size_t place = in_use == 1 ? 0 : static_cast<size_t>(LedgerShard(workspace)) % in_use;
    return replicas_->PickInOrder(place);
  }

 private:
  // To billing in the same process, or to any replica, the given one first.
  struct Route {
    Loop& loop;
    typename rpc::ReplicaCaller<Method>::Direct own = {};
    // The replica owns the batcher, and the clients of the loop share it.
    std::weak_ptr<rpc::Replicas> replicas = {};
    std::weak_ptr<rpc::Replica> first = {};

    const auto* direct() const { return own ? &own : nullptr; }
    auto Call(typename Method::Request request, int64_t timeout_ms) const {
      return rpc::ReplicaCaller<Method>(loop, replicas.lock())
          .Call(std::move(request), timeout_ms, first.lock());
    }
  };
  using Batches = Batcher<Method, Route>;
  struct Unanswered {
    explicit Unanswered(size_t& count) : count(count) { ++count; }
    ~Unanswered() { --count; }
    size_t& count;
  };

  std::shared_ptr<Batches> BatchesOf(rpc::Replica& replica) const {
    return replica.template Companion<Batches>([&] {
      return std::make_shared<Batches>(loop_,
                                       Route{loop_, {}, replicas_, replica.weak_from_this()});
    });
  }

  Loop& loop_;
  const std::shared_ptr<rpc::Replicas> replicas_;
  std::shared_ptr<Batches> own_;
  size_t unanswered_ = 0;
};

}  // namespace tollgate
