#include "services/billing/domain/testing/ledger_world.h"
#include "services/billing/rpc/testing/admin_rpc_world.h"
#include "services/billing/verify/verifications.h"

namespace tollgate::billing {
namespace {

using Stub = pb::LedgerVerificationService::Stub;

class VerificationRpcTest : public AdminRpcTest {
 protected:
  std::string Create(const std::string& request_id, const std::string& workspace = "") {
    pb::CreateLedgerVerificationRequest request;
    request.set_request_id(request_id);
    request.mutable_ledger_verification()->set_workspace(workspace);
    return Call(*verifications_, &Stub::CreateLedgerVerification, request, verification_);
  }
  std::string Get(const std::string& name) {
    pb::GetLedgerVerificationRequest request;
    request.set_name(name);
    return Call(*verifications_, &Stub::GetLedgerVerification, request, verification_);
  }
  // Waits until the verification has ended.
  void Wait() {
    const std::string name = verification_.name();
    while (verification_.state() == pb::LEDGER_VERIFICATION_STATE_RUNNING) {
      ASSERT_EQ(Get(name), "");
    }
  }
  template <typename Function>
  void InDatabase(Function function) {
    std::promise<bool> done;
    ledger_->Read(
        [&](sql::Database& database) {
          function(database);
          done.set_value(true);
        },
        [&](Error) { done.set_value(false); });
    ASSERT_TRUE(done.get_future().get());
  }

  // Rows of the audit log about cancelled verifications: "actor subject".
  std::vector<std::string> Cancelled() {
    std::vector<std::string> rows;
    InDatabase([&](sql::Database& database) {
      const auto read = database.Transact(sql::TxMode::kRead, [&](sql::Connection& db) {
        return db.Query(
            "SELECT actor, subject FROM audit_entry WHERE action = 'ledger_verification.cancel'",
            {}, [&](const sql::Row& row) { rows.push_back(row.Text(0) + " " + row.Text(1)); });
      });
      EXPECT_TRUE(read.ok());
    });
    return rows;
  }

  pb::LedgerVerification verification_;
};

TEST_F(VerificationRpcTest, SaysWhatItFoundAndRunsOncePerRequestId) {
  ASSERT_EQ(OpenWallet(), "");
  ASSERT_EQ(Grant("g", "5"), "");
  ASSERT_EQ(Create("v1"), "");
  EXPECT_EQ(verification_.actor(), "local:anna");
  EXPECT_EQ(verification_.state(), pb::LEDGER_VERIFICATION_STATE_RUNNING);
  const std::string first = verification_.name();
  Wait();
  EXPECT_EQ(verification_.state(), pb::LEDGER_VERIFICATION_STATE_CONSISTENT);
  EXPECT_EQ(verification_.workspaces(), 1);
  EXPECT_EQ(verification_.entries(), 1);
  EXPECT_TRUE(verification_.has_end_time());
  ASSERT_EQ(Create("v1"), "");
  EXPECT_EQ(verification_.name(), first);
  EXPECT_EQ(verification_.state(), pb::LEDGER_VERIFICATION_STATE_CONSISTENT);
  EXPECT_EQ(Create("v1", "workspaces/ws"), "REQUEST_ID_REUSED");

  InDatabase([](sql::Database& database) {
    auto changed = database.Transact(sql::TxMode::kWrite, [](sql::Connection& db) {
      return db.ExecuteScript("UPDATE wallet SET paid = paid + 1");
    });
    EXPECT_TRUE(changed.ok());
  });
  ASSERT_EQ(Create("v2", "workspaces/ws"), "");
  EXPECT_EQ(verification_.workspace(), "workspaces/ws");
  Wait();
  EXPECT_EQ(verification_.state(), pb::LEDGER_VERIFICATION_STATE_VIOLATED);
  EXPECT_EQ(verification_.violations_size(), 1);

  pb::ListLedgerVerificationsRequest list;
  pb::ListLedgerVerificationsResponse page;
  list.set_page_size(1);
  ASSERT_EQ(Call(*verifications_, &Stub::ListLedgerVerifications, list, page), "");
  ASSERT_EQ(page.ledger_verifications_size(), 1);
  EXPECT_EQ(page.ledger_verifications(0).name(), verification_.name()) << "the newest first";
  list.set_page_token(page.next_page_token());
  ASSERT_EQ(Call(*verifications_, &Stub::ListLedgerVerifications, list, page), "");
  ASSERT_EQ(page.ledger_verifications_size(), 1);
  EXPECT_EQ(page.ledger_verifications(0).name(), first);
  EXPECT_EQ(page.next_page_token(), "");
}

// Simulates a run of another replica. It blocks others until it is cancelled or has not reported
// for a minute.
TEST_F(VerificationRpcTest, OneRunsAtATimeAndADeadOneIsReplaced) {
  ASSERT_EQ(OpenWallet(), "");
  Verification other;
  other.id = Id::New();
  other.actor = "cert:bob";
  other.request_id = "b";
  const std::string name = "ledgerVerifications/" + other.id.ToHex();
  InDatabase([&](sql::Database& database) {
    const auto begun = BeginVerification(database, other, "cert:bob", true, ledger_->NowUs());
    ASSERT_TRUE(begun.ok() && begun->fresh);
  });
  EXPECT_EQ(Create("v1"), "ALREADY_RUNNING");
  ASSERT_EQ(Get(name), "");
  EXPECT_EQ(verification_.state(), pb::LEDGER_VERIFICATION_STATE_RUNNING);
  pb::CancelLedgerVerificationRequest cancel;
  cancel.set_name(name);
  for (int times = 0; times < 2; ++times) {
    ASSERT_EQ(Call(*verifications_, &Stub::CancelLedgerVerification, cancel, verification_), "");
    EXPECT_EQ(Cancelled(), std::vector{"local:anna " + other.id.ToHex()})
        << "one row for both calls";
  }
  InDatabase([&](sql::Database& database) {
    const auto wanted = ReportVerification(database, other.id, {}, ledger_->NowUs());
    EXPECT_TRUE(wanted.ok() && !*wanted) << "its process must stop";
    EXPECT_TRUE(EndVerification(database, other.id, VerificationState::kBrokenOff,
                                {.stopped = true}, ledger_->NowUs())
                    .ok());
  });
  ASSERT_EQ(Get(name), "");
  EXPECT_EQ(verification_.state(), pb::LEDGER_VERIFICATION_STATE_CANCELLED);

  other.id = Id::New();
  other.request_id = "c";
  InDatabase([&](sql::Database& database) {
    const auto begun =
        BeginVerification(database, other, "cert:bob", true, ledger_->NowUs() - 61'000'000);
    ASSERT_TRUE(begun.ok() && begun->fresh);
  });
  ASSERT_EQ(Get("ledgerVerifications/" + other.id.ToHex()), "");
  EXPECT_EQ(verification_.state(), pb::LEDGER_VERIFICATION_STATE_BROKEN_OFF);
  ASSERT_EQ(Create("v2"), "");
  Wait();
  EXPECT_EQ(verification_.state(), pb::LEDGER_VERIFICATION_STATE_CONSISTENT);
}

// A long step of a run takes more than a minute without a report.
TEST_F(VerificationRpcTest, ARunThatIsSilentButLivesIsNotEndedByItsOwnProcessAndEndsAsItFound) {
  Verification silent;
  silent.id = Id::New();
  silent.actor = "cert:bob";
  silent.request_id = "silent";
  Verification next = silent;
  next.id = Id::New();
  next.request_id = "next";
  InDatabase([&](sql::Database& database) {
    const int64_t now_us = ledger_->NowUs();
    auto begun = BeginVerification(database, silent, "cert:bob", true, now_us - 61'000'000);
    ASSERT_TRUE(begun.ok() && begun->fresh);
    begun = BeginVerification(database, next, "cert:bob", false, now_us);
    ASSERT_TRUE(begun.ok());
    EXPECT_FALSE(begun->verification) << "refused: the silent run is of this process";
    const auto again = BeginVerification(database, silent, "cert:bob", false, now_us);
    EXPECT_TRUE(again.ok() && again->verification && again->verification->id == silent.id)
        << "a repeated call returns the run";
    const auto wanted = ReportVerification(database, silent.id, {}, now_us - 61'000'000);
    EXPECT_TRUE(wanted.ok() && *wanted) << "the run continues";

    begun = BeginVerification(database, next, "cert:bob", true, now_us);
    ASSERT_TRUE(begun.ok() && begun->fresh) << "another process may start a run";
    EXPECT_TRUE(
        EndVerification(database, silent.id, VerificationState::kConsistent, {}, now_us).ok());
    const auto found = FindVerification(database, silent.id, now_us);
    ASSERT_TRUE(found.ok() && *found);
    EXPECT_EQ((*found)->state, VerificationState::kConsistent);
    EXPECT_TRUE(
        EndVerification(database, next.id, VerificationState::kConsistent, {}, now_us).ok());
  });
}

TEST_F(VerificationRpcTest, RefusesWhatIsNoNameAndNoWorkspace) {
  EXPECT_EQ(Create("v1", "acme"), "INVALID_FIELD");
  EXPECT_EQ(Create("not a request id"), "INVALID_FIELD");
  EXPECT_EQ(Get("ledgerVerifications/1"), "INVALID_FIELD");
  EXPECT_EQ(Get("ledgerVerifications/" + Id::New().ToHex()), "NOT_FOUND");
}

}  // namespace
}  // namespace tollgate::billing
