// Handling of a batch that cannot be written: it is divided, so that other workspaces do not wait
// for the one that causes the failure (docs/design/ledger.md 10).
#include <algorithm>
#include <set>

#include "services/billing/commit/group_commit.h"

namespace tollgate::billing {
namespace {

// After this many failures in a row in one workspace the rest is not tried.
constexpr int kMaxFailuresInARow = 3;

// Splits a batch into its commands, in order, and the operations of requests.
std::pair<OperationQueue::Batch, OperationQueue::Batch> SplitCommands(
    OperationQueue::Batch& batch) {
  std::pair<OperationQueue::Batch, OperationQueue::Batch> parts;
  for (size_t i = 0; i < batch.sources.size(); ++i) {
    auto& part = IsCommand(batch.operations[i]) ? parts.first : parts.second;
    part.sources.push_back(std::move(batch.sources[i]));
    part.operations.push_back(std::move(batch.operations[i]));
  }
  for (auto* part : {&parts.first, &parts.second}) {
    part->workspaces = batch.workspaces;
    part->node = batch.node;
  }
  return parts;
}

// Splits a batch into the operations of these workspaces, in order, and the others.
std::pair<OperationQueue::Batch, OperationQueue::Batch> Split(
    OperationQueue::Batch& batch, const std::set<std::string>& workspaces) {
  std::pair<OperationQueue::Batch, OperationQueue::Batch> parts;
  for (size_t i = 0; i < batch.sources.size(); ++i) {
    auto& part = workspaces.contains(WorkspaceOf(batch.operations[i])) ? parts.first : parts.second;
    part.sources.push_back(std::move(batch.sources[i]));
    part.operations.push_back(std::move(batch.operations[i]));
  }
  parts.first.node = parts.second.node = batch.node;
  for (const std::string& workspace : batch.workspaces) {
    auto& part = workspaces.contains(workspace) ? parts.first : parts.second;
    part.workspaces.push_back(workspace);
  }
  return parts;
}

}  // namespace

void GroupCommit::Divide(size_t index, PendingBatch& batch, const sql::SqlError& error) {
  if (batch.workspaces.size() <= 1) return FailAlone(index, batch, error);
  const std::set<std::string> half(
      batch.workspaces.begin(),
      batch.workspaces.begin() + static_cast<int64_t>(batch.workspaces.size() / 2));
  auto [first, second] = Split(batch, half);
  Execute(index, first);
  Execute(index, second);
}

std::set<std::string> GroupCommit::LockedOf(size_t index, const PendingBatch& batch) {
  auto found = runners_[index]->Locked(batch.operations);
  if (!found.ok()) return {};
  return {found->begin(), found->end()};
}

// A transaction of another replica, perhaps a hung one, has locked a wallet. The server ends an
// idle transaction soon. Until then only the locked workspaces wait.
void GroupCommit::SetLockedAside(size_t index, PendingBatch& batch, const sql::SqlError& error,
                                 std::set<std::string> locked) {
  if (locked.empty() && std::ranges::any_of(batch.operations, IsCommand)) {
    // A command of another workspace has locked the audit log, or a piece of a distributed database
    // is being moved. Requests do not write to the audit log.
    auto [commands, requests] = SplitCommands(batch);
    ReplyUnavailable(commands);
    if (!requests.sources.empty()) Execute(index, requests);
    return;
  }
  // The lock is released, or is not on a wallet.
  if (locked.empty() && batch.workspaces.size() > 1) return Divide(index, batch, error);
  if (locked.empty()) locked.insert(batch.workspaces.begin(), batch.workspaces.end());
  auto [waiting, rest] = Split(batch, locked);
  for (const std::string& workspace : waiting.workspaces) Isolate(workspace, error);
  {
    const std::lock_guard lock(mutex_);
    if (!stopping_) queue_.PutBack(waiting.sources, waiting.operations);
  }
  FailBatch(waiting, sql::ToError(error));
  if (!rest.sources.empty()) Execute(index, rest);
}

bool GroupCommit::IsOfANode(size_t index, const sql::SqlError& error) {
  if (error.kind == sql::ErrorKind::kNodeLost) return true;
  if (!error.no_answer || Stopping()) return false;
  {
    const std::lock_guard lock(mutex_);
    if (queue_.nodes().of_shard.empty()) return false;
  }
  // If the coordinator accepts a new connection, it waits for another node.
  return runners_[index]->Reconnect().ok();
}

// The batch's workspaces are retried in separate batches until their first success; the others
// continue. Nothing else is sent to the node until it has answered.
void GroupCommit::SetNodeAside(size_t index, PendingBatch& batch, const sql::SqlError& error) {
  const int32_t node = batch.node;
  // A node that is slow but answers is not set aside, since that would refuse operations of others
  // there. Commands may also have waited for the audit log's node instead, until a ledger of an
  // older version has its outbox, so the node is asked then too. A hung node is not asked.
  const bool ask =
      error.kind == sql::ErrorKind::kNodeLost || std::ranges::any_of(batch.operations, IsCommand);
  bool lost = node != LedgerNodes::kNone && node_answers_ && !(ask && node_answers_(node));
  std::vector<QueuedOperation> waiting;
  {
    const std::lock_guard lock(mutex_);
    const int64_t now_us = clock_.MonotonicUs();
    for (const std::string& workspace : batch.workspaces) {
      queue_.Isolate(workspace, now_us, now_us + options_.isolated_retry_ms * 1000, 0);
    }
    lost = lost && !stopping_ && !queue_.aside().contains(node);
    if (lost) waiting = queue_.SetAside(node);
  }
  aside_wake_.notify_one();
  ReplyUnavailable(batch);
  std::vector<Reply> replies(waiting.size(), Refuse(Deny::kUnavailable));
  SetReplies(waiting, replies);
  if (lost && observer_) observer_->OnNode(node, &error);
}

void GroupCommit::SetNodes(LedgerNodes nodes) {
  const std::lock_guard lock(mutex_);
  // Leaves one thread for other nodes while this node keeps batches waiting.
  queue_.SetNodes(std::move(nodes), std::max<size_t>(1, runners_.size() - 1));
}

bool GroupCommit::HasNodeAside() const {
  const std::lock_guard lock(mutex_);
  return !queue_.aside().empty();
}

void GroupCommit::NodesMain() {
  while (true) {
    std::set<int32_t> aside;
    {
      std::unique_lock lock(mutex_);
      aside_wake_.wait(lock, [this] { return stopping_ || !queue_.aside().empty(); });
      if (stopping_) return;
      aside = queue_.aside();
    }
    for (const int32_t node : aside) {
      if (Stopping() || !node_answers_(node)) continue;
      {
        const std::lock_guard lock(mutex_);
        queue_.Restore(node);
      }
      wake_.notify_all();
      if (observer_) observer_->OnNode(node, nullptr);
    }
    Pause(options_.isolated_retry_ms);
  }
}

// All operations are of one workspace: writes those that can be written and isolates the workspace,
// so that it does not delay others.
void GroupCommit::FailAlone(size_t index, PendingBatch& batch, const sql::SqlError& error) {
  const std::string& workspace = batch.workspaces.front();
  Isolate(workspace, error);
  if (error.kind != sql::ErrorKind::kRetry && !batch.part) {
    auto broken = runners_[index]->FreezeIfBroken(workspace);
    if (broken.ok() && !broken->empty() && observer_) observer_->OnBroken(workspace, *broken);
  }
  if (batch.sources.size() == 1) return ReplyUnavailable(batch);
  int failures = 0;
  for (size_t i = 0; i < batch.sources.size(); ++i) {
    PendingBatch one;
    one.part = true;
    one.node = batch.node;
    one.workspaces = batch.workspaces;
    one.sources.push_back(batch.sources[i]);
    one.operations.push_back(std::move(batch.operations[i]));
    if (failures < kMaxFailuresInARow) {
      Execute(index, one);
      failures = one.failed ? failures + 1 : 0;
    } else {
      ReplyUnavailable(one);
    }
  }
}

void GroupCommit::Isolate(const std::string& workspace, const sql::SqlError& error) {
  bool is_new;
  {
    const std::lock_guard lock(mutex_);
    const int64_t now_us = clock_.MonotonicUs();
    is_new = queue_.Isolate(workspace, now_us, now_us + options_.isolated_retry_ms * 1000);
  }
  if (is_new && observer_) observer_->OnIsolated(workspace, error);
}

void GroupCommit::ReplyUnavailable(PendingBatch& batch) {
  batch.failed = true;
  std::vector<Reply> replies(batch.sources.size(), Refuse(Deny::kUnavailable));
  SetReplies(batch.sources, replies);
}

}  // namespace tollgate::billing
