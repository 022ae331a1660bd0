#include "services/billing/commit/operation_queue.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "common/base/ledger_shard.h"

namespace tollgate::billing {
namespace {

// Maximum number of operations of one workspace in one turn.
constexpr size_t kTurn = 32;
// Maximum number of waiting operations of an isolated workspace.
constexpr size_t kMaxIsolated = 256;
// Maximum number of isolated workspaces without operations that are remembered.
constexpr size_t kMaxRemembered = 1024;
constexpr int64_t kFailingForUs = 300'000'000;

}  // namespace

OperationQueue::Lane& OperationQueue::LaneOf(const std::string& workspace) {
  const auto [at, is_new] = lanes_.try_emplace(workspace);
  if (is_new) {
    at->second.workspace = &at->first;
    at->second.shard = ShardOf(workspace);
  }
  return at->second;
}

int32_t OperationQueue::ShardOf(const std::string& workspace) const {
  return one_shard_ ? LedgerShard(workspace) : 0;
}

void OperationQueue::SetOneShard(bool one_shard) {
  if (std::exchange(one_shard_, one_shard) == one_shard) return;
  rows_ = std::vector<Row>(one_shard ? kLedgerShards : 1);
  turns_.clear();
  for (auto& [workspace, lane] : lanes_) {
    lane.shard = ShardOf(workspace);
    lane.listed_urgent = lane.listed_normal = false;
    if (lane.batch == 0) List(lane);
  }
}

void OperationQueue::SetNodes(LedgerNodes nodes, size_t batches_of_a_node) {
  nodes_ = std::move(nodes);
  batches_of_a_node_ = batches_of_a_node;
}

int32_t OperationQueue::NodeOf(int32_t shard) const {
  const auto at = static_cast<size_t>(shard);
  return one_shard_ && at < nodes_.of_shard.size() ? nodes_.of_shard[at] : LedgerNodes::kNone;
}

bool OperationQueue::MayTake(int32_t node) const {
  if (node == LedgerNodes::kNone) return true;
  const auto running = running_.find(node);
  return !aside_.contains(node) &&
         (running == running_.end() || running->second < batches_of_a_node_);
}

std::vector<QueuedOperation> OperationQueue::SetAside(int32_t node) {
  aside_.insert(node);
  std::vector<QueuedOperation> all;
  for (auto& [workspace, lane] : lanes_) {
    if (NodeOf(lane.shard) != node) continue;
    for (auto* queue : {&lane.urgent, &lane.normal}) {
      (queue == &lane.normal ? normal_ : urgent_) -= queue->size();
      std::ranges::move(*queue, std::back_inserter(all));
      queue->clear();
    }
  }
  return all;
}

bool OperationQueue::Push(QueuedOperation queued) {
  const bool is_authorize = IsAuthorize(queued.operation());
  if (!aside_.empty() && aside_.contains(NodeOf(ShardOf(WorkspaceOf(queued.operation()))))) {
    return false;
  }
  Lane& lane = LaneOf(WorkspaceOf(queued.operation()));
  if (lane.isolated && lane.urgent.size() + lane.normal.size() >= kMaxIsolated) return false;
  (is_authorize ? normal_ : urgent_) += 1;
  (is_authorize ? lane.normal : lane.urgent).push_back(std::move(queued));
  if (lane.batch == 0) List(lane);
  return true;
}

void OperationQueue::List(Lane& lane) {
  if (lane.isolated) {
    if (!lane.empty() && !std::exchange(lane.listed_isolated, true)) {
      isolated_lanes_.push_back(&lane);
    }
    return;
  }
  if (lane.empty()) return;
  Row& row = rows_[static_cast<size_t>(lane.shard)];
  if (!lane.urgent.empty() && !std::exchange(lane.listed_urgent, true)) {
    row.urgent.push_back(&lane);
  }
  if (!lane.normal.empty() && !std::exchange(lane.listed_normal, true)) {
    row.normal.push_back(&lane);
  }
  if (!row.empty() && !std::exchange(row.in_turn, true)) turns_.push_back(lane.shard);
}

void OperationQueue::EraseIfIdle(Lane& lane) {
  if (lane.batch != 0 || !lane.empty() || lane.listed_urgent || lane.listed_normal ||
      lane.listed_isolated) {
    return;
  }
  if (lane.isolated) {
    if (isolated_.size() <= kMaxRemembered) return;
    isolated_.erase(&lane);
  }
  lanes_.erase(lanes_.find(*lane.workspace));
}

void OperationQueue::Enter(Lane& lane, Batch& batch) {
  if (lane.batch == batches_) return;
  lane.batch = batches_;
  batch.workspaces.push_back(*lane.workspace);
}

void OperationQueue::TakeFrom(Lane& lane, std::deque<QueuedOperation>& queue, size_t limit,
                              Batch& batch) {
  for (size_t turn = 0; turn < kTurn && !queue.empty() && batch.sources.size() < limit; ++turn) {
    ++steps_;
    QueuedOperation queued = std::move(queue.front());
    queue.pop_front();
    const bool is_authorize = IsAuthorize(queued.operation());
    (is_authorize ? normal_ : urgent_) -= 1;
    // The hold of a call that has timed out would not be used.
    if (EndsWithItsCall(queued.operation()) && !queued.call->IsPending()) continue;
    Enter(lane, batch);
    batch.operations.push_back(std::move(queued.operation()));
    batch.sources.push_back(std::move(queued));
  }
}

void OperationQueue::TakeList(std::deque<Lane*>& list, bool urgent, size_t limit, Batch& batch) {
  while (!list.empty() && batch.sources.size() < limit) {
    ++steps_;
    Lane& lane = *list.front();
    list.pop_front();
    (urgent ? lane.listed_urgent : lane.listed_normal) = false;
    // If the lane has entered another batch or was isolated, the end of the batch or isolation
    // lists it again.
    if ((lane.batch == 0 || lane.batch == batches_) && !lane.isolated) {
      TakeFrom(lane, urgent ? lane.urgent : lane.normal, limit, batch);
      List(lane);
    } else if (lane.batch == 0) {
      List(lane);
    }
    EraseIfIdle(lane);
  }
}

void OperationQueue::TakeIsolated(size_t limit, int64_t now_us, Batch& batch) {
  int32_t shard = 0;
  // Visits each lane once; there are few.
  for (size_t left = isolated_lanes_.size(); left > 0 && batch.sources.size() < limit; --left) {
    ++steps_;
    Lane& lane = *isolated_lanes_.front();
    isolated_lanes_.pop_front();
    lane.listed_isolated = false;
    if (lane.batch != 0) continue;
    const bool same_shard = batch.sources.empty() || lane.shard == shard;
    const int32_t node = NodeOf(lane.shard);
    if (lane.isolated && lane.retry_us <= now_us && same_shard && MayTake(node)) {
      shard = lane.shard;
      batch.node = node;
      TakeFrom(lane, lane.urgent, limit, batch);
      TakeFrom(lane, lane.normal, limit, batch);
    }
    if (lane.batch == 0) List(lane);
    EraseIfIdle(lane);
  }
}

bool OperationQueue::Take(size_t limit, int64_t now_us, Batch& batch) {
  ++batches_;
  if (!isolated_batch_ && !isolated_lanes_.empty()) {
    TakeIsolated(limit, now_us, batch);
    if (!batch.sources.empty()) {
      batch.isolated = true;
      isolated_batch_ = true;
      ++running_[batch.node];
      return true;
    }
  }
  // Visits each row at most once: all its lanes may be in other batches.
  for (size_t left = turns_.size(); left > 0 && batch.sources.empty(); --left) {
    const int32_t shard = turns_.front();
    turns_.pop_front();
    Row& row = rows_[static_cast<size_t>(shard)];
    batch.node = NodeOf(shard);
    if (!MayTake(batch.node)) {
      turns_.push_back(shard);
      continue;
    }
    TakeList(row.urgent, true, limit, batch);
    TakeList(row.normal, false, limit, batch);
    row.in_turn = !row.empty();
    if (row.in_turn) turns_.push_back(shard);
  }
  if (batch.sources.empty()) return false;
  ++running_[batch.node];
  return true;
}

void OperationQueue::Release(const Batch& batch) {
  --running_[batch.node];
  if (batch.isolated) isolated_batch_ = false;
  for (const std::string& workspace : batch.workspaces) {
    const auto found = lanes_.find(workspace);
    if (found == lanes_.end()) continue;
    found->second.batch = 0;
    List(found->second);
    EraseIfIdle(found->second);
  }
}

void OperationQueue::PutBack(std::vector<QueuedOperation>& sources,
                             std::vector<Operation>& operations) {
  for (size_t i = sources.size(); i-- > 0;) {
    QueuedOperation& queued = sources[i];
    queued.operation() = std::move(operations[i]);
    const bool is_authorize = IsAuthorize(queued.operation());
    Lane& lane = LaneOf(WorkspaceOf(queued.operation()));
    (is_authorize ? normal_ : urgent_) += 1;
    (is_authorize ? lane.normal : lane.urgent).push_front(std::move(queued));
  }
  sources.clear();
  operations.clear();
}

bool OperationQueue::Isolate(const std::string& workspace, int64_t now_us, int64_t retry_us,
                             int64_t at_least_us) {
  Lane& lane = LaneOf(workspace);
  lane.failed_us = now_us;
  lane.heal_us = now_us + at_least_us;
  lane.retry_us = retry_us;
  if (std::exchange(lane.isolated, true)) return false;
  isolated_.insert(&lane);
  return true;
}

bool OperationQueue::Heal(const std::string& workspace, int64_t now_us) {
  const auto found = lanes_.find(workspace);
  if (found == lanes_.end() || !found->second.isolated || now_us < found->second.heal_us) {
    return false;
  }
  found->second.isolated = false;
  isolated_.erase(&found->second);
  return true;
}

size_t OperationQueue::Failing(int64_t now_us) const {
  return static_cast<size_t>(std::ranges::count_if(
      isolated_, [&](const Lane* lane) { return now_us - lane->failed_us <= kFailingForUs; }));
}

std::vector<QueuedOperation> OperationQueue::Clear() {
  std::vector<QueuedOperation> all;
  for (auto& [workspace, lane] : lanes_) {
    for (auto* queue : {&lane.urgent, &lane.normal}) {
      all.insert(all.end(), std::make_move_iterator(queue->begin()),
                 std::make_move_iterator(queue->end()));
      queue->clear();
    }
  }
  urgent_ = normal_ = 0;
  return all;
}

}  // namespace tollgate::billing
