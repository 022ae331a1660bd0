// Queue in which operations wait for a batch: one lane per workspace, so that the work for a batch
// grows with its size and not with the size of the queue. No two batches share a workspace. A
// workspace whose batches fail is isolated: it gets separate batches, a few per second, and does
// not delay others. On a distributed database a batch is limited to one ledger shard
// (docs/adr/0040): lanes wait in a row per shard, otherwise all in one row. One node never occupies
// all threads that run batches, and nothing is taken for a node that is set aside because it does
// not answer. Not thread-safe.
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
    std::vector<QueuedOperation> sources;  // sources of the operations, in the same order
    std::vector<Operation> operations;
    std::vector<std::string> workspaces;  // workspaces that this batch keeps busy
    int32_t node = LedgerNodes::kNone;    // node of these workspaces, if known
    bool isolated = false;                // a batch of isolated workspaces
    bool part = false;                    // from a workspace whose batch has failed
    bool failed = false;                  // answered with kUnavailable
  };

  // Returns false if the workspace is isolated and enough operations wait, or if its node is set
  // aside.
  bool Push(QueuedOperation queued);
  // Takes up to limit operations of workspaces that are in no other batch: first those that release
  // credit or follow a running request, then authorizes whose call still waits. Lanes take turns,
  // so that a workspace with thousands of operations gets no more than its share. Returns false if
  // there are none.
  bool Take(size_t limit, int64_t now_us, Batch& batch);
  // Limits batches to the workspaces of one ledger shard. Off by default.
  void SetOneShard(bool one_shard);
  // Sets which node has which shards, and how many batches of one node may run at the same time.
  void SetNodes(LedgerNodes nodes, size_t batches_of_a_node);
  const LedgerNodes& nodes() const { return nodes_; }
  // Takes nothing for the node until Restore. Returns the operations that waited for it.
  std::vector<QueuedOperation> SetAside(int32_t node);
  void Restore(int32_t node) { aside_.erase(node); }
  const std::set<int32_t>& aside() const { return aside_; }
  // Ends the batch: its workspaces may be taken again.
  void Release(const Batch& batch);
  // Puts operations back to the front, in order. Their workspaces must be in a batch.
  void PutBack(std::vector<QueuedOperation>& sources, std::vector<Operation>& operations);

  // Isolates the workspace until a success; the next attempt is at retry_us. Returns true if it was
  // not isolated before.
  bool Isolate(const std::string& workspace, int64_t now_us, int64_t retry_us,
               int64_t at_least_us = kIsolatedAtLeastUs);
  // Called after a success. Returns true if this ends the isolation, which lasts for at least
  // at_least_us.
  bool Heal(const std::string& workspace, int64_t now_us);

  size_t size() const { return urgent_ + normal_; }
  size_t urgent() const { return urgent_; }
  size_t isolated() const { return isolated_.size(); }
  // Number of isolated workspaces that failed within the last five minutes. Only a success ends an
  // isolation, and a workspace may get no further operations.
  size_t Failing(int64_t now_us) const;
  // Number of lanes and operations visited, for tests.
  int64_t steps() const { return steps_; }
  // Removes and returns all operations.
  std::vector<QueuedOperation> Clear();

 private:
  struct Lane {
    const std::string* workspace = nullptr;
    std::deque<QueuedOperation> urgent;  // all except authorizes
    std::deque<QueuedOperation> normal;
    int64_t batch = 0;  // number of the batch that it is in; 0: none
    bool listed_urgent = false;
    bool listed_normal = false;
    bool listed_isolated = false;
    bool isolated = false;
    int64_t failed_us = 0;
    int64_t retry_us = 0;
    int64_t heal_us = 0;  // earliest time for a success to end its isolation
    int32_t shard = 0;    // ledger shard of its row
    bool empty() const { return urgent.empty() && normal.empty(); }
  };

  // The waiting lanes of one ledger shard.
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
  // Gives the lane its turn.
  void TakeFrom(Lane& lane, std::deque<QueuedOperation>& queue, size_t limit, Batch& batch);
  void TakeList(std::deque<Lane*>& list, bool urgent, size_t limit, Batch& batch);
  void TakeIsolated(size_t limit, int64_t now_us, Batch& batch);

  std::unordered_map<std::string, Lane> lanes_;  // with operations, in a batch, or isolated
  bool one_shard_ = false;
  std::vector<Row> rows_ = std::vector<Row>(1);  // by ledger shard; otherwise one row
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
