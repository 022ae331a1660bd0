#include <set>

#include "common/observability/metrics.h"
#include "services/billing/domain/dead_letter.h"
#include "services/billing/domain/testing/lease_world.h"
#include "services/billing/rpc/testing/admin_rpc_world.h"

namespace tollgate::billing {
namespace {

using Stub = pb::DeadLetterService::Stub;

class DeadLetterRpcTest : public AdminRpcTest {
 protected:
  // Submits settlements that have no hold.
  void Refuse(const std::vector<Id>& ids) {
    std::vector<Operation> operations;
    for (const Id& id : ids) {
      Settle settle = MakeSettle(id, 100, 30);
      settle.workspace = "ws";
      settle.engine = "engine-1";
      operations.push_back(settle);
    }
    for (const Reply& reply : Do(std::move(operations))) EXPECT_FALSE(reply.ok);
  }
  pb::ListDeadLettersResponse List(int page_size, const std::string& token = "",
                                   bool resolved = false) {
    pb::ListDeadLettersRequest request;
    request.set_page_size(page_size);
    request.set_page_token(token);
    request.set_show_resolved(resolved);
    request.set_filter("workspace = \"ws\"");
    pb::ListDeadLettersResponse response;
    EXPECT_EQ(Call(*dead_letters_, &Stub::ListDeadLetters, request, response), "");
    return response;
  }
  template <typename Request>
  std::string Resolve(grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                   pb::DeadLetter*),
                      const std::string& name) {
    Request request;
    request.set_name(name);
    request.set_reason("looked at");
    request.set_request_id("r1");
    return Call(*dead_letters_, method, request, letter_);
  }
  static std::string NameOf(const Id& id) { return "deadLetters/ws." + id.ToHex() + ".1"; }

  pb::DeadLetter letter_;
};

TEST_F(DeadLetterRpcTest, AreListedInPagesReadRetriedAndWrittenOff) {
  ASSERT_EQ(OpenWallet(), "");
  ASSERT_EQ(Grant("g", "5"), "");
  const std::vector<Id> ids = {Id::New(), Id::New(), Id::New()};
  Refuse(ids);
  std::set<std::string> seen;
  std::string token;
  do {
    const auto page = List(1, token);
    ASSERT_EQ(page.dead_letters_size(), 1);
    seen.insert(page.dead_letters(0).name());
    token = page.next_page_token();
  } while (!token.empty());
  EXPECT_EQ(seen, (std::set<std::string>{NameOf(ids[0]), NameOf(ids[1]), NameOf(ids[2])}));

  pb::GetDeadLetterRequest get;
  get.set_name(NameOf(ids[0]));
  ASSERT_EQ(Call(*dead_letters_, &Stub::GetDeadLetter, get, letter_), "");
  EXPECT_EQ(letter_.completion_tokens(), 30);
  EXPECT_EQ(letter_.engine(), "engine-1");
  EXPECT_EQ(letter_.reason(), "invalid");
  EXPECT_EQ(letter_.outcome(), "completed");
  EXPECT_EQ(letter_.state(), pb::DEAD_LETTER_STATE_OPEN);

  EXPECT_EQ(Resolve(&Stub::RetryDeadLetter, NameOf(ids[0])), "REFUSED_AGAIN")
      << "the hold is still missing";
  Authorize hold = MakeAuthorize(ids[0], 100, 100);
  hold.workspace = "ws";
  ASSERT_TRUE(Do({hold}).front().ok);
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(Resolve(&Stub::RetryDeadLetter, NameOf(ids[0])), "");
    EXPECT_EQ(letter_.state(), pb::DEAD_LETTER_STATE_RETRIED);
    EXPECT_EQ(letter_.actor(), "local:anna");
    EXPECT_EQ(letter_.note(), "looked at");
  }
  EXPECT_EQ(Resolve(&Stub::WriteOffDeadLetter, NameOf(ids[0])), "ALREADY_DECIDED");
  ASSERT_EQ(Resolve(&Stub::WriteOffDeadLetter, NameOf(ids[1])), "");
  EXPECT_EQ(letter_.state(), pb::DEAD_LETTER_STATE_WRITTEN_OFF);
  EXPECT_EQ(List(10).dead_letters_size(), 1);
  EXPECT_EQ(List(10, "", true).dead_letters_size(), 3);
  const auto charged = 5 * kNanoPerUsd - *ParseDecimalUsdToNano(Balance().available_usd());
  EXPECT_EQ(charged, 160) << "once";
}

// ADR 0055
TEST_F(DeadLetterRpcTest, WhatCameTooLateIsChargedByTwoProvedPersons) {
  ASSERT_EQ(OpenWallet(), "");
  ASSERT_EQ(Grant("g", "5"), "");
  const int64_t begun_ms = SystemClock::Get().WallUs() / 1000 - 8LL * 24 * 3600 * 1000;
  Settle settle = MakeSettle(Id::Make(begun_ms, 0, 1), 100, 30);
  settle.admission = MakeAdmission(settle.request_id, 100, 400, UtcMonth(begun_ms * 1000));
  ASSERT_FALSE(Do({settle}).front().ok);
  const std::string name = NameOf(settle.request_id);
  EXPECT_EQ(Resolve(&Stub::RetryDeadLetter, name), "PERSON_NOT_PROVED");
  SignIn("ben");
  for (int i = 0; i < 2; ++i) {
    ASSERT_EQ(Resolve(&Stub::RetryDeadLetter, name), "");
    EXPECT_EQ(letter_.state(), pb::DEAD_LETTER_STATE_ADJUSTED);
    const std::string id = AdjustmentIdOf(settle.request_id);
    EXPECT_EQ(letter_.adjustment(), "workspaces/ws/adjustments/" + id);
  }
  EXPECT_EQ(Resolve(&Stub::WriteOffDeadLetter, name), "ALREADY_DECIDED");
  EXPECT_EQ(Balance().available_usd(), "5.00");
  const std::string id = AdjustmentIdOf(settle.request_id);
  EXPECT_EQ(Approve(id), "SAME_PERSON");
  SignIn("cora");
  ASSERT_EQ(Approve(id), "");
  EXPECT_EQ(5 * kNanoPerUsd - *ParseDecimalUsdToNano(Balance().available_usd()), 160);
}

// Such a dead letter can only be written off; the error of a retry says so.
TEST_F(DeadLetterRpcTest, ASettlementThatNamesNoWorkspaceCanOnlyBeWrittenOff) {
  ASSERT_EQ(OpenWallet(), "");
  const auto open = [] { return metrics::Gauge("tollgate_billing_dead_letters_open", "").Value(); };
  const double before = open();
  const Id id = Id::New();
  Settle settle = MakeSettle(id, 100, 30);
  settle.workspace = "No Name!";
  EXPECT_FALSE(Do({settle}).front().ok);
  const std::string name = "deadLetters/_." + id.ToHex() + ".1";
  EXPECT_EQ(open(), before + 1);
  EXPECT_EQ(Resolve(&Stub::RetryDeadLetter, name), "REFUSED_AGAIN");
  ASSERT_EQ(Resolve(&Stub::WriteOffDeadLetter, name), "");
  EXPECT_EQ(letter_.workspace(), "");
  EXPECT_EQ(letter_.state(), pb::DEAD_LETTER_STATE_WRITTEN_OFF);
  EXPECT_EQ(open(), before);
}

TEST_F(DeadLetterRpcTest, WrongNamesTokensAndUnknownCallersAreRefused) {
  ASSERT_EQ(OpenWallet(), "");
  const Id id = Id::New();
  EXPECT_EQ(Resolve(&Stub::RetryDeadLetter, NameOf(id)), "NOT_FOUND");
  for (const char* name : {"", "deadLetters/", "deadLetters/ws", "deadLetters/ws.1.1",
                           "deadLetters/WS.0123456789abcdef0123456789abcdef.1",
                           "deadLetters/ws.0123456789abcdef0123456789abcdef.0",
                           "deadLetters/ws.0123456789abcdef0123456789abcdef."}) {
    EXPECT_EQ(Resolve(&Stub::WriteOffDeadLetter, name), "INVALID_FIELD") << name;
  }
  pb::ListDeadLettersRequest list;
  pb::ListDeadLettersResponse response;
  list.set_page_token("made up");
  EXPECT_EQ(Call(*dead_letters_, &Stub::ListDeadLetters, list, response), "INVALID_FIELD");
  list.clear_page_token();
  list.set_filter("state = \"open\"");
  EXPECT_EQ(Call(*dead_letters_, &Stub::ListDeadLetters, list, response), "INVALID_FIELD");
  Use(tcp_);
  EXPECT_EQ(Resolve(&Stub::RetryDeadLetter, NameOf(id)), "STEP_UP_REQUIRED");
}

TEST_F(DeadLetterRpcTest, AClockThatIsNotAheadIsNotRepaired) {
  ASSERT_EQ(OpenWallet(), "");
  pb::RepairClockRequest request;
  pb::RepairClockResponse response;
  request.set_name("workspaces/ws/balance");
  request.set_request_id("r1");
  EXPECT_EQ(Call(*books_, &pb::LedgerService::Stub::RepairClock, request, response),
            "INVALID_FIELD")
      << "a reason is required";
  request.set_reason("looked at");
  EXPECT_EQ(Call(*books_, &pb::LedgerService::Stub::RepairClock, request, response), "");
  EXPECT_EQ(response.moved_back_us(), 0);
  request.set_name("workspaces/none/balance");
  EXPECT_EQ(Call(*books_, &pb::LedgerService::Stub::RepairClock, request, response),
            "WALLET_NOT_FOUND");
}

}  // namespace
}  // namespace tollgate::billing
