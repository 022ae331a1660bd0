// Where operations wait for a batch: one lane per workspace, so that the work of a batch grows with
// what it takes and not with what waits. No two batches share a workspace. A workspace whose
// batches fail is isolated: it gets batches of its own, a few in a second, and disturbs nobody. On
// a distributed database a batch is of one ledger shard (docs/adr/0040): lanes wait in a row per
// shard, else all in one. One node of it never keeps all that run batches busy, and one that does
// not answer is set aside: nothing is taken for it. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <set>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "services/billing/commit/call.h"
#include "services/billing/storage/distribute.h"

namespace tollgate::billing {

class OperationQueue {
 public:
  static constexpr int64_t kIsolatedAtLeastUs = 5'000'000;

  struct Batch {
    std::vector<QueuedOperation> sources;  // of the operations, in the same order
    std::vector<Operation> operations;
    std::vector<std::string> workspaces;  // those that this batch keeps busy
    int32_t node = LedgerNodes::kNone;    // that has them, when it is known
    bool isolated = false;                // a batch of isolated workspaces
    bool part = false;                    // of a workspace whose batch has failed
    bool failed = false;                  // answered with kUnavailable
  };

  // False when the workspace is isolated and has enough waiting, or its node is set aside.
  bool Push(QueuedOperation queued);
  // Takes up to limit operations of workspaces in no other batch: those that release credit or
  // follow a running request first, then authorizes whose call still waits. In turns, so that a
  // workspace with thousands of them takes no more than its part. False when there are none.
  bool Take(size_t limit, int64_t now_us, Batch& batch);
  // Whether a batch takes workspaces of one ledger shard only. Not by default.
  void SetOneShard(bool one_shard);
  // Which node has which shards, and how many batches of one node there may be at the same time.
  void SetNodes(LedgerNodes nodes, size_t batches_of_a_node);
  const LedgerNodes& nodes() const { return nodes_; }
  // Until Restore nothing is taken for the node. Returns what waited for it.
  std::vector<QueuedOperation> SetAside(int32_t node);
  void Restore(int32_t node) { aside_.erase(node); }
  const std::set<int32_t>& aside() const { return aside_; }
  // Ends the batch: its workspaces may be taken again.
  void Release(const Batch& batch);
  // Puts operations back to the front, in their order. Their workspaces are in a batch.
  void PutBack(std::vector<QueuedOperation>& sources, std::vector<Operation>& operations);

  // The workspace's next try is at retry_us. True when it was not isolated before.
  bool Isolate(const std::string& workspace, int64_t now_us, int64_t retry_us,
               int64_t at_least_us = kIsolatedAtLeastUs);
  // After a success. True when this ends the isolation, which has lasted for at_least_us by then.
  bool Heal(const std::string& workspace, int64_t now_us);

  size_t size() const { return urgent_ + normal_; }
  size_t urgent() const { return urgent_; }
  size_t isolated() const { return isolated_.size(); }
  // Isolated workspaces that failed within the last five minutes: an isolation ends with a success
  // only, and nobody may ask anything of a workspace any more.
  size_t Failing(int64_t now_us) const;
  // How many lanes and operations were looked at, for tests.
  int64_t steps() const { return steps_; }
  // Removes and returns everything.
  std::vector<QueuedOperation> Clear();

 private:
  struct Lane {
    const std::string* workspace = nullptr;
    std::deque<QueuedOperation> urgent;  // all that is not an authorize
    std::deque<QueuedOperation> normal;
    int64_t batch = 0;  // the number of the batch that it is in; 0: none
    bool listed_urgent = false;
    bool listed_normal = false;
    bool listed_isolated = false;
    bool isolated = false;
    int64_t failed_us = 0;
    int64_t retry_us = 0;
    int64_t heal_us = 0;  // when a success may end its isolation
    int32_t shard = 0;    // of its row
    bool empty() const { return urgent.empty() && normal.empty(); }
  };

  // The lanes that wait of one ledger shard.
  struct Row {
    std::deque<Lane*> urgent;
    std::deque<Lane*> normal;
    bool in_turn = false;
    bool empty() const { return urgent.empty() && normal.empty(); }
  };

  int32_t ShardOf(const std::string& workspace) const;
  int32_t NodeOf(int32_t shard) const;
  bool MayTake(int32_t node) const;
  Lane& LaneOf(const std::string& workspace);
  // Puts the lane into the lists that it belongs to.
  void List(Lane& lane);
  void EraseIfIdle(Lane& lane);
  void Enter(Lane& lane, Batch& batch);
  // One lane's turn.
  void TakeFrom(Lane& lane, std::deque<QueuedOperation>& queue, size_t limit, Batch& batch);
  void TakeList(std::deque<Lane*>& list, bool urgent, size_t limit, Batch& batch);
  void TakeIsolated(size_t limit, int64_t now_us, Batch& batch);

  std::unordered_map<std::string, Lane> lanes_;  // those with operations, in a batch, or isolated
  bool one_shard_ = false;
  std::vector<Row> rows_ = std::vector<Row>(1);  // by ledger shard; one row when batches take all
  std::deque<int32_t> turns_;                    // rows with lanes, each once
  LedgerNodes nodes_;
  size_t batches_of_a_node_ = 0;
  std::map<int32_t, size_t> running_;  // batches by node
  std::set<int32_t> aside_;
  std::deque<Lane*> isolated_lanes_;
  size_t urgent_ = 0;
  size_t normal_ = 0;
  std::unordered_set<const Lane*> isolated_;
  bool isolated_batch_ = false;  // one at a time
  int64_t batches_ = 0;
  int64_t steps_ = 0;
};

}  // namespace tollgate::billing
