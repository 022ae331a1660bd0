// A workspace whose batches fail does not stop others (docs/design/ledger.md 10).
#include "common/base/ledger_shard.h"
#include "services/billing/commit/testing/fake_runner.h"

namespace tollgate::billing {
namespace {

using sql::ErrorKind;

class IsolationTest : public GroupCommitTest {
 protected:
  // Submits operations of many workspaces, so that they form one batch behind a blocked one.
  std::map<std::string, PendingReplies> SubmitTogether(int workspaces) {
    db.Block(true);
    auto first = Submit({NewSettle(0, "first")});
    db.WaitForBatches(1);
    std::map<std::string, PendingReplies> calls;
    for (int i = 0; i < workspaces; ++i) {
      const std::string workspace = "ws" + std::to_string(i);
      calls[workspace] = Submit({NewSettle(i, workspace)});
    }
    db.Block(false);
    EXPECT_TRUE(first.get().ok());
    return calls;
  }
  static Reply Only(PendingReplies& call) {
    auto replies = call.get();
    return replies.ok() ? replies->front() : Reply();
  }
  void SetLocked(std::set<std::string> workspaces) {
    const std::lock_guard lock(db.mutex);
    db.locked = std::move(workspaces);
  }
};

TEST_F(IsolationTest, ALastingErrorOfOneWorkspaceFailsThatOneOnly) {
  for (const ErrorKind kind :
       {ErrorKind::kUnique, ErrorKind::kRetry, ErrorKind::kConstraint, ErrorKind::kOther}) {
    Start();
    db.bad = {{"ws77", kind}};
    auto calls = SubmitTogether(200);
    for (auto& [workspace, call] : calls) {
      const Reply reply = Only(call);
      EXPECT_EQ(reply.ok, workspace != "ws77") << workspace;
      if (workspace == "ws77") EXPECT_EQ(reply.denied_by, Deny::kUnavailable);
    }
    EXPECT_EQ(events.isolated().back(), "ws77");
    EXPECT_LT(db.batches.size(), 80U) << "divided, not one by one";
    db.bad.clear();
    db.batches.clear();
    group_commit.reset();
  }
  EXPECT_EQ(events.isolated().size(), 4U) << "each reported once";
}

TEST_F(IsolationTest, AnIsolatedWorkspaceIsNeverInABatchWithOthers) {
  Start();
  db.bad = {{"bad", ErrorKind::kUnique}};
  EXPECT_EQ(Only(*std::make_unique<PendingReplies>(Submit({NewSettle(1, "bad")}))).denied_by,
            Deny::kUnavailable);
  std::vector<PendingReplies> good;
  std::vector<PendingReplies> bad;
  for (int i = 0; i < 100; ++i) {
    bad.push_back(Submit({NewSettle(i, "bad")}));
    good.push_back(Submit({NewSettle(i, "good")}));
  }
  for (auto& call : good) EXPECT_TRUE(Only(call).ok);
  for (auto& call : bad) EXPECT_EQ(Only(call).denied_by, Deny::kUnavailable);
  const std::lock_guard lock(db.mutex);
  for (const auto& batch : db.batches) {
    std::set<std::string> workspaces;
    for (const Operation& op : batch) workspaces.insert(WorkspaceOf(op));
    EXPECT_EQ(workspaces.size(), 1U);
  }
}

// A router's call contains settlements of many workspaces.
TEST_F(IsolationTest, ACallOfManyWorkspacesGetsAReplyForEach) {
  Start();
  db.bad = {{"bad", ErrorKind::kUnique}};
  const auto replies = Submit({NewSettle(1, "a"), NewSettle(2, "bad"), NewSettle(3, "b")}).get();
  ASSERT_TRUE(replies.ok());
  EXPECT_TRUE((*replies)[0].ok);
  EXPECT_EQ((*replies)[1].denied_by, Deny::kUnavailable);
  EXPECT_TRUE((*replies)[2].ok);
}

TEST_F(IsolationTest, ALockedWorkspaceWaitsAloneAndLosesNothing) {
  options.isolated_retry_ms = 1;
  Start();
  SetLocked({"ws3", "ws5"});
  auto calls = SubmitTogether(20);
  for (auto& [workspace, call] : calls) {
    if (workspace == "ws3" || workspace == "ws5") continue;
    EXPECT_TRUE(Only(call).ok) << workspace;
  }
  EXPECT_FALSE(IsReady(calls["ws3"])) << "its reply is still pending";
  SetLocked({});
  EXPECT_TRUE(Only(calls["ws3"]).ok);
  EXPECT_TRUE(Only(calls["ws5"]).ok);
  EXPECT_EQ(events.isolated().size(), 2U);
  EXPECT_TRUE(events.broken().empty());
}

TEST_F(IsolationTest, AWorkspaceThatWaitsKeepsNoOthersOfItsCallWaiting) {
  options.part_timeout_ms = 1;
  Start();
  SetLocked({"locked"});
  const auto replies = Submit({NewSettle(1, "locked"), NewSettle(2, "free")}).get();
  ASSERT_TRUE(replies.ok());
  EXPECT_EQ((*replies)[0].denied_by, Deny::kUnavailable) << "may be retried";
  EXPECT_TRUE((*replies)[1].ok);
  // A call with only the locked workspace waits.
  auto alone = Submit({NewSettle(3, "locked")});
  auto other = Submit({NewSettle(4, "free")});
  EXPECT_TRUE(Only(other).ok);
  EXPECT_FALSE(IsReady(alone));
  SetLocked({});
  EXPECT_TRUE(Only(alone).ok);
}

// For example a table lock while the archive detaches a partition.
TEST_F(IsolationTest, ALockThatIsOnNoWalletIsWaitedForOnceMore) {
  Start();
  for (const int workspaces : {1, 20}) {
    {
      const std::lock_guard lock(db.mutex);
      db.errors = {ErrorKind::kLocked};
      db.batches.clear();
    }
    std::vector<Operation> together;
    for (int i = 0; i < workspaces; ++i) {
      together.push_back(NewSettle(i, "ws" + std::to_string(i)));
    }
    const auto replies = Submit(together).get();
    ASSERT_TRUE(replies.ok());
    for (const Reply& reply : *replies) EXPECT_TRUE(reply.ok);
    EXPECT_EQ(db.batches.size(), 2U) << "the whole batch twice";
  }
  EXPECT_TRUE(events.isolated().empty());
}

TEST_F(IsolationTest, RequestsDoNotWaitForTheAuditLogThatACommandNeeds) {
  Start();
  {
    const std::lock_guard lock(db.mutex);
    db.audit_log_locked = true;
  }
  AddCredit credit = NewAddCredit(2);
  credit.workspace = "ws";
  const auto replies = Submit({NewSettle(1, "ws"), credit, NewAuthorize(3, "ws")}).get();
  ASSERT_TRUE(replies.ok());
  EXPECT_TRUE(replies->at(0).ok);
  EXPECT_EQ(replies->at(1).denied_by, Deny::kUnavailable);
  EXPECT_TRUE(replies->at(2).ok);
  EXPECT_TRUE(events.isolated().empty());
}

TEST_F(IsolationTest, AWorkspaceWithBrokenBooksIsReported) {
  Start();
  db.bad = {{"ws2", ErrorKind::kUnique}, {"ws4", ErrorKind::kUnique}};
  db.broken = {"ws4"};
  auto calls = SubmitTogether(6);
  for (auto& [workspace, call] : calls) (void)Only(call);
  EXPECT_EQ(events.broken(), std::vector<std::string>{"ws4"});
}

TEST_F(IsolationTest, HowManyWorkspacesFailIsTold) {
  Start();
  EXPECT_TRUE(events.WaitForFailing(0));
  db.bad = {{"ws2", ErrorKind::kUnique}, {"ws4", ErrorKind::kUnique}};
  auto calls = SubmitTogether(6);
  for (auto& [workspace, call] : calls) (void)Only(call);
  EXPECT_TRUE(events.WaitForFailing(2));
}

TEST_F(IsolationTest, WhatWaitsOfAnIsolatedWorkspaceIsBounded) {
  options.isolated_retry_ms = 60'000;
  Start();
  db.bad = {{"bad", ErrorKind::kUnique}};
  EXPECT_FALSE(Submit({NewSettle(1, "bad")}).get()->front().ok);
  std::vector<PendingReplies> waiting;
  for (int i = 0; i < 256; ++i) waiting.push_back(Submit({NewAuthorize(i, "bad")}));
  auto refused = Submit({NewAuthorize(1, "bad"), NewAuthorize(1, "good")});
  const auto replies = refused.get();
  ASSERT_TRUE(replies.ok());
  EXPECT_EQ((*replies)[0].denied_by, Deny::kUnavailable) << "at once";
  EXPECT_TRUE((*replies)[1].ok) << "the queue has room for others";
}

// A distributed database (docs/adr/0040). Workspaces of node 1 hang, those of node 2 do not.
class NodesTest : public IsolationTest {
 protected:
  void StartOnTwoNodes() {
    node_answers = [this](int32_t node) { return node != 1 || first_answers_; };
    Start(4);
    LedgerNodes nodes;
    nodes.of_shard.resize(kLedgerShards);
    for (int shard = 0; shard < kLedgerShards; ++shard) {
      nodes.of_shard[static_cast<size_t>(shard)] = 1 + shard % 2;
    }
    group_commit->SetOneShard(true);
    group_commit->SetNodes(nodes);
  }
  // Returns the number-th workspace of a node.
  static std::string On(int32_t node, int number) {
    for (int i = 0;; ++i) {
      const std::string name = "ws" + std::to_string(i);
      if (1 + LedgerShard(name) % 2 == node && number-- == 0) return name;
    }
  }
  void Hang(bool hang) {
    first_answers_ = !hang;
    const std::lock_guard lock(db.mutex);
    for (int i = 0; i < 8; ++i) {
      if (hang) db.hanging.insert(On(1, i));
      if (!hang) db.hanging.erase(On(1, i));
    }
  }
  size_t Batches() {
    const std::lock_guard lock(db.mutex);
    return db.batches.size();
  }
  void WaitForAside(bool aside) {
    while (group_commit->HasNodeAside() != aside) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }

  std::atomic<bool> first_answers_ = true;
};

TEST_F(NodesTest, ANodeThatStandsStillKeepsNoBatchOfOthersWaiting) {
  StartOnTwoNodes();
  Hang(true);
  std::vector<PendingReplies> hanging;
  for (int i = 0; i < 8; ++i) hanging.push_back(Submit({NewSettle(i, On(1, i))}));
  db.WaitForBatches(3);
  // One of four threads is left, and the batches of the hanging node have not ended yet.
  for (int i = 0; i < 8; ++i) {
    auto other = Submit({NewSettle(i, On(2, i))});
    EXPECT_TRUE(Only(other).ok);
  }
  EXPECT_TRUE(group_commit->available());
  for (auto& call : hanging) EXPECT_EQ(Only(call).denied_by, Deny::kUnavailable);
  EXPECT_EQ(Batches(), 3U + 8U) << "later ones were not tried";
}

TEST_F(NodesTest, WhatNeedsANodeThatIsSetAsideIsRefusedUntilItAnswers) {
  StartOnTwoNodes();
  Hang(true);
  auto first = Submit({NewSettle(1, On(1, 0))});
  EXPECT_EQ(Only(first).denied_by, Deny::kUnavailable);
  ASSERT_TRUE(group_commit->HasNodeAside());
  const size_t before = Batches();
  auto second = Submit({NewSettle(2, On(1, 1))});
  EXPECT_TRUE(IsReady(second));
  EXPECT_EQ(Only(second).denied_by, Deny::kUnavailable);
  EXPECT_EQ(Batches(), before);
  AddCredit credit = NewAddCredit(3);
  credit.workspace = On(2, 0);
  auto other = Submit({NewSettle(4, On(2, 0)), credit});
  EXPECT_TRUE(Only(other).ok);

  Hang(false);
  WaitForAside(false);
  auto again = Submit({NewSettle(5, On(1, 1))});
  EXPECT_TRUE(Only(again).ok);
  auto healed = Submit({NewSettle(6, On(1, 0))});
  EXPECT_TRUE(Only(healed).ok);
}

// Otherwise callers would treat all of billing as unavailable.
TEST_F(NodesTest, ACallIsAnsweredBeforeItsNodeIs) {
  options.node_timeout_ms = 1;
  options.part_timeout_ms = 1;
  StartOnTwoNodes();
  db.Block(true);
  auto call = Submit({NewSettle(1, On(1, 0))});
  EXPECT_EQ(Only(call).denied_by, Deny::kUnavailable);
  db.Block(false);
  // The short timeout may also end this call.
  bool settled = false;
  for (int i = 0; i < 1000 && !settled; ++i) {
    auto again = Submit({NewSettle(1, On(1, 0))});
    settled = Only(again).ok;
  }
  EXPECT_TRUE(settled);
}

TEST_F(NodesTest, ADatabaseThatStandsStillAsAWholeIsUnavailable) {
  options.call_timeout_ms = 1'000;  // timeout of its only call
  StartOnTwoNodes();
  Hang(true);
  {
    const std::lock_guard lock(db.mutex);
    db.reachable = false;
  }
  auto call = Submit({NewSettle(1, On(1, 0))});
  EXPECT_FALSE(call.get().ok());
  EXPECT_FALSE(group_commit->HasNodeAside());
  EXPECT_FALSE(group_commit->available());
  const std::lock_guard lock(db.mutex);
  db.reachable = true;
}

}  // namespace
}  // namespace tollgate::billing
