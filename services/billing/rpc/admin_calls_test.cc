// The services of tollgate.admin.v1 over a real ledger.
#include <random>

#include "services/billing/domain/testing/ledger_world.h"
#include "services/billing/rpc/testing/admin_rpc_world.h"

namespace tollgate::billing {
namespace {

// Decision 64: granting credit to a workspace without a wallet is NOT_FOUND, and is not booked
// later.
TEST_F(AdminRpcTest, CreditWantsAWalletAndCountsOncePerRequestId) {
  EXPECT_EQ(Grant("g1", "5"), "WALLET_NOT_FOUND");
  EXPECT_FALSE(Balance().wallet_open());
  EXPECT_EQ(OpenWallet(), "");
  EXPECT_EQ(OpenWallet(), "");
  EXPECT_TRUE(Balance().wallet_open());
  EXPECT_EQ(Balance().available_usd(), "0.00");

  pb::GetCreditGrantRequest status;
  status.set_name("workspaces/ws/creditGrants/g1");
  EXPECT_EQ(Call(*adjustments_, &pb::AdjustmentService::Stub::GetCreditGrant, status, grant_),
            "NOT_FOUND")
      << "refused: not executed, and repeating it is safe";
  EXPECT_EQ(Grant("g1", "5"), "");
  EXPECT_EQ(Grant("g1", "5.00"), "");
  EXPECT_EQ(grant_.name(), "workspaces/ws/creditGrants/g1");
  EXPECT_EQ(grant_.amount_usd(), "5.00");
  EXPECT_EQ(grant_.actor(), "local:anna");
  EXPECT_EQ(Grant("g1", "6"), "REQUEST_ID_REUSED");
  EXPECT_EQ(Grant("g2", "0.25", false), "");
  EXPECT_EQ(Balance().paid_usd(), "5.00");
  EXPECT_EQ(Balance().granted_usd(), "0.25");
  EXPECT_EQ(Call(*adjustments_, &pb::AdjustmentService::Stub::GetCreditGrant, status, grant_), "");
  for (const char* bad : {"", "-1", "0", "1.0000000001", "1e3", "ten"}) {
    EXPECT_EQ(Grant("g3", bad), "INVALID_FIELD") << bad;
  }
  EXPECT_EQ(Grant("", "1"), "INVALID_FIELD") << "granting credit requires a request_id";
}

// Decision 57.
TEST_F(AdminRpcTest, OverPlainTcpACallerIsUnverifiedAndMayNotDoWhatWantsAStepUp) {
  ASSERT_EQ(OpenWallet(), "");
  Use(tcp_);
  EXPECT_EQ(Grant("g", "50"), "");
  EXPECT_EQ(grant_.actor(), "unverified:anna");
  EXPECT_EQ(Grant("g2", "0.01"), "SECOND_PERSON_REQUIRED");
  EXPECT_EQ(Adjust("a", pb::ADJUSTMENT_KIND_REFUND, "1"), "");
  EXPECT_EQ(Adjust("b", pb::ADJUSTMENT_KIND_REFUND, "51"), "STEP_UP_REQUIRED");
  EXPECT_EQ(Approve("a"), "STEP_UP_REQUIRED");
  pb::FreezeWorkspaceRequest freeze;
  freeze.set_name(kWorkspace);
  freeze.set_reason("abuse");
  pb::Balance balance;
  EXPECT_EQ(Call(*books_, &pb::LedgerService::Stub::FreezeWorkspace, freeze, balance),
            "STEP_UP_REQUIRED");
  pb::UpdateCapRequest cap;
  cap.mutable_cap()->set_name("workspaces/ws/cap");
  pb::Cap answer;
  EXPECT_EQ(Call(*books_, &pb::LedgerService::Stub::UpdateCap, cap, answer), "STEP_UP_REQUIRED");
}

TEST_F(AdminRpcTest, AFrozenWorkspaceTakesNoRequestsUntilItIsUnfrozen) {
  ASSERT_EQ(OpenWallet(), "");
  ASSERT_EQ(Grant("g", "1"), "");
  pb::FreezeWorkspaceRequest freeze;
  freeze.set_name(kWorkspace);
  pb::Balance balance;
  EXPECT_EQ(Call(*books_, &pb::LedgerService::Stub::FreezeWorkspace, freeze, balance),
            "INVALID_FIELD")
      << "a reason is required";
  freeze.set_reason("abuse");
  EXPECT_EQ(Call(*books_, &pb::LedgerService::Stub::FreezeWorkspace, freeze, balance), "");
  EXPECT_EQ(balance.frozen(), pb::FREEZE_REASON_OPERATOR);
  EXPECT_EQ(Do({MakeAuthorize(Id::New(), 10, 10)}).front().denied_by, Deny::kFrozen);
  pb::UnfreezeWorkspaceRequest unfreeze;
  unfreeze.set_name(kWorkspace);
  unfreeze.set_reason("settled");
  EXPECT_EQ(Call(*books_, &pb::LedgerService::Stub::UnfreezeWorkspace, unfreeze, balance), "");
  EXPECT_EQ(balance.frozen(), 0);
  EXPECT_TRUE(Do({MakeAuthorize(Id::New(), 10, 10)}).front().ok);
}

TEST_F(AdminRpcTest, TheCapIsSetAndRemoved) {
  ASSERT_EQ(OpenWallet(), "");
  pb::UpdateCapRequest update;
  update.mutable_cap()->set_name("workspaces/ws/cap");
  update.mutable_cap()->set_cap_usd("12.5");
  pb::Cap cap;
  EXPECT_EQ(Call(*books_, &pb::LedgerService::Stub::UpdateCap, update, cap), "");
  EXPECT_EQ(cap.cap_usd(), "12.50");
  pb::GetCapRequest get;
  get.set_name("workspaces/ws/cap");
  EXPECT_EQ(Call(*books_, &pb::LedgerService::Stub::GetCap, get, cap), "");
  EXPECT_EQ(cap.cap_usd(), "12.50");
  update.mutable_cap()->clear_cap_usd();
  EXPECT_EQ(Call(*books_, &pb::LedgerService::Stub::UpdateCap, update, cap), "");
  EXPECT_FALSE(cap.has_cap_usd());
  update.mutable_update_mask()->add_paths("month_spent_usd");
  EXPECT_EQ(Call(*books_, &pb::LedgerService::Stub::UpdateCap, update, cap), "INVALID_FIELD");
}

// Every page and every filter show the balance that the wallet had after the entry.
TEST_F(AdminRpcTest, TransactionsHaveARunningBalance) {
  ASSERT_EQ(OpenWallet(), "");
  std::vector<std::string> after = {""};  // by sequence
  for (int i = 1; i <= 9; ++i) {
    ASSERT_EQ(Grant("g" + std::to_string(i), std::to_string(i), i % 2 == 0), "");
    after.push_back(Balance().available_usd());
  }
  const Id id = Id::New();
  ASSERT_TRUE(Do({MakeAuthorize(id, 1000, 50)}).back().ok);
  ASSERT_TRUE(Do({MakeSettle(id, 1000, 50)}).back().ok);
  for (const std::string filter :
       {"", "kind = \"topup\"", "kind = \"grant\" AND create_time >= \"2026-01-01\"",
        "create_time < \"2200-01-01\""}) {
    pb::ListTransactionsRequest list;
    list.set_parent(kWorkspace);
    list.set_page_size(2);
    list.set_filter(filter);
    pb::ListTransactionsResponse page;
    size_t rows = 0;
    int64_t last = INT64_MAX;
    do {
      ASSERT_EQ(Call(*books_, &pb::LedgerService::Stub::ListTransactions, list, page), "");
      for (const pb::Transaction& one : page.transactions()) {
        const int64_t sequence = std::stoll(one.name().substr(one.name().rfind('/') + 1));
        EXPECT_LT(sequence, last);
        last = sequence;
        ++rows;
        if (sequence < static_cast<int64_t>(after.size())) {
          EXPECT_EQ(one.balance_usd(), after[sequence]) << filter << " " << sequence;
        } else {
          EXPECT_EQ(one.request(), id.ToHex());
        }
        pb::GetTransactionRequest get;
        get.set_name(one.name());
        pb::Transaction alone;
        ASSERT_EQ(Call(*books_, &pb::LedgerService::Stub::GetTransaction, get, alone), "");
        EXPECT_EQ(alone.SerializeAsString(), one.SerializeAsString());
      }
      list.set_page_token(page.next_page_token());
    } while (!list.page_token().empty());
    EXPECT_EQ(rows, filter.starts_with("kind = \"t")   ? 4U
                    : filter.starts_with("kind = \"g") ? 5U
                                                       : 12U)
        << filter;
  }
  pb::ListTransactionsRequest range;
  range.set_parent(kWorkspace);
  range.set_filter("sequence >= \"3\" AND sequence < \"5\"");
  pb::ListTransactionsResponse two;
  ASSERT_EQ(Call(*books_, &pb::LedgerService::Stub::ListTransactions, range, two), "");
  ASSERT_EQ(two.transactions_size(), 2);
  EXPECT_EQ(two.transactions(0).name(), "workspaces/ws/transactions/4");
  EXPECT_EQ(two.transactions(0).balance_usd(), after[4]);
  range.set_filter("sequence < \"many\"");
  EXPECT_EQ(Call(*books_, &pb::LedgerService::Stub::ListTransactions, range, two), "INVALID_FIELD");
  // A page token is valid only for its own list.
  pb::ListTransactionsRequest list;
  list.set_parent(kWorkspace);
  list.set_page_size(1);
  pb::ListTransactionsResponse page;
  ASSERT_EQ(Call(*books_, &pb::LedgerService::Stub::ListTransactions, list, page), "");
  list.set_page_token(page.next_page_token());
  list.set_filter("kind = \"topup\"");
  EXPECT_EQ(Call(*books_, &pb::LedgerService::Stub::ListTransactions, list, page), "INVALID_FIELD");
}

int64_t Pico(const std::string& usd) {
  const size_t dot = usd.find('.');
  std::string decimals = dot == std::string::npos ? "" : usd.substr(dot + 1);
  decimals.resize(12, '0');
  return std::stoll(usd.substr(0, dot)) * 1'000'000'000'000 + std::stoll(decimals);
}

// The cost of each answer can be recomputed from its receipt, and equals what the entries moved.
TEST_F(AdminRpcTest, AReceiptRecomputesItsCost) {
  ASSERT_EQ(OpenWallet(), "");
  ASSERT_EQ(Grant("paid", "40"), "");
  ASSERT_EQ(Grant("granted", "0.000001", false), "");
  std::mt19937_64 random(7);
  const auto below = [&](int64_t limit) { return static_cast<int64_t>(random() % limit); };
  std::vector<Id> ids;
  for (int i = 0; i < 200; ++i) {
    Authorize authorize = MakeAuthorize(Id::New(), 1 + below(5000), 1 + below(5000));
    authorize.rates = {below(3'000'000), below(15'000'000)};
    authorize.price_version = i;
    authorize.surface = Surface::kMessages;
    authorize.client_request_id = i % 3 == 0 ? "" : "caller-" + std::to_string(i % 50);
    Settle settle = MakeSettle(authorize.request_id, below(authorize.prompt_bound + 1),
                               below(authorize.output_bound + 1));
    settle.usage.cached = below(settle.usage.prompt + 1);
    if (i % 10 == 0) settle.outcome = Outcome::kFailedBeforeOutput;
    ASSERT_TRUE(Do({authorize}).front().ok) << i;
    ASSERT_TRUE(Do({settle}).front().ok) << i;
    ids.push_back(authorize.request_id);
  }
  Int128 charged = 0;
  for (const Id& id : ids) {
    pb::GetRequestRequest get;
    get.set_name("workspaces/ws/requests/" + id.ToHex());
    pb::Receipt receipt;
    ASSERT_EQ(Call(*usage_, &pb::UsageService::Stub::GetRequest, get, receipt), "");
    const Rates rates = {*ParseUsdPerMillionToPico(receipt.input_usd_per_million()),
                         *ParseUsdPerMillionToPico(receipt.output_usd_per_million())};
    const Int128 cost =
        CostPicoUsd(rates, receipt.tokens().prompt_tokens(), receipt.tokens().completion_tokens());
    EXPECT_EQ(Pico(receipt.exact_cost_usd()), static_cast<int64_t>(cost));
    const int64_t nano = *ParseDecimalUsdToNano(receipt.charged_usd()) +
                         *ParseDecimalUsdToNano(receipt.overrun_usd());
    EXPECT_EQ(nano, ChargeNanoUsd(cost));
    int64_t moved = 0;
    int terminal = 0;
    for (const pb::ReceiptEntry& entry : receipt.entries()) {
      if (entry.kind() == "charge") moved += *ParseDecimalUsdToNano(entry.amount_usd());
      if (entry.kind() == "settle" || entry.kind() == "void") ++terminal;
    }
    EXPECT_EQ(moved, *ParseDecimalUsdToNano(receipt.charged_usd()));
    EXPECT_EQ(terminal, 1);
    EXPECT_EQ(receipt.entries(0).kind(), "hold");
    charged += moved;
    // The id of the answer also names it (decision 65).
    const std::string name = receipt.name();
    get.set_name("workspaces/ws/requests/msg_" + id.ToBase62());
    ASSERT_EQ(Call(*usage_, &pb::UsageService::Stub::GetRequest, get, receipt), "");
    EXPECT_EQ(receipt.name(), name);
    get.set_name("workspaces/other/requests/" + id.ToHex());
    EXPECT_EQ(Call(*usage_, &pb::UsageService::Stub::GetRequest, get, receipt), "NOT_FOUND");
  }
  EXPECT_EQ(40 * kNanoPerUsd + 1000 - *ParseDecimalUsdToNano(Balance().available_usd()),
            static_cast<int64_t>(charged));
  // By the caller's x-request-id: returns the newest request and the number of requests.
  pb::GetRequestRequest get;
  get.set_name("workspaces/ws/requests/caller-1");
  pb::Receipt receipt;
  ASSERT_EQ(Call(*usage_, &pb::UsageService::Stub::GetRequest, get, receipt), "");
  EXPECT_EQ(receipt.matches(), 3) << "1, 101 and 151; 51 had none";
  EXPECT_EQ(receipt.name(), "workspaces/ws/requests/" + ids[151].ToHex());

  pb::ListRequestsRequest list;
  list.set_parent(kWorkspace);
  list.set_page_size(64);
  pb::ListRequestsResponse page;
  size_t rows = 0;
  do {
    ASSERT_EQ(Call(*usage_, &pb::UsageService::Stub::ListRequests, list, page), "");
    rows += page.receipts_size();
    list.set_page_token(page.next_page_token());
  } while (!list.page_token().empty());
  EXPECT_EQ(rows, 200U);
  list.set_filter(R"(client_request_id = "caller-1" AND create_time >= "2026-01-01")");
  ASSERT_EQ(Call(*usage_, &pb::UsageService::Stub::ListRequests, list, page), "");
  EXPECT_EQ(page.receipts_size(), 3);
  list.set_filter(R"(outcome = "failed_before_output" AND key = "key" AND model = "model")");
  ASSERT_EQ(Call(*usage_, &pb::UsageService::Stub::ListRequests, list, page), "");
  EXPECT_EQ(page.receipts_size(), 20);
}

TEST_F(AdminRpcTest, UsageIsGroupedAndItsTotalsAreThoseOfTheWallet) {
  ASSERT_EQ(OpenWallet(), "");
  ASSERT_EQ(Grant("paid", "1"), "");
  for (int i = 0; i < 30; ++i) {
    Authorize authorize = MakeAuthorize(Id::New(), 100, 100);
    authorize.model = "m" + std::to_string(i % 10);
    authorize.key_id = "k" + std::to_string(i % 2);
    ASSERT_TRUE(Do({authorize}).back().ok);
    ASSERT_TRUE(Do({MakeSettle(authorize.request_id, 100, 10 + i % 10)}).back().ok);
  }
  pb::QueryUsageRequest query;
  query.set_parent(kWorkspace);
  query.set_interval(pb::USAGE_INTERVAL_NONE);
  query.set_top(3);
  query.add_group_by(pb::USAGE_GROUP_MODEL);
  pb::QueryUsageResponse report;
  ASSERT_EQ(Call(*usage_, &pb::UsageService::Stub::QueryUsage, query, report), "");
  ASSERT_EQ(report.rows_size(), 4);
  EXPECT_EQ(report.rows(0).model(), "m9") << "the highest cost first";
  EXPECT_EQ(report.rows(0).requests(), 3);
  EXPECT_TRUE(report.rows(3).other());
  EXPECT_EQ(report.rows(3).requests(), 21);
  EXPECT_EQ(report.totals().requests(), 30);
  EXPECT_EQ(*ParseDecimalUsdToNano(report.totals().cost_usd()),
            kNanoPerUsd - *ParseDecimalUsdToNano(Balance().available_usd()));
  query.set_filter(R"(key = "k1" AND model = "m9")");
  for (const pb::UsageInterval interval :
       {pb::USAGE_INTERVAL_UNSPECIFIED, pb::USAGE_INTERVAL_DAY, pb::USAGE_INTERVAL_HOUR}) {
    query.set_interval(interval);
    query.set_time_zone("America/New_York");
    ASSERT_EQ(Call(*usage_, &pb::UsageService::Stub::QueryUsage, query, report), "");
    EXPECT_EQ(report.totals().requests(), 3) << interval;
    EXPECT_NE(report.interval(), 0);
  }
  query.mutable_start_time()->set_seconds(1);
  EXPECT_EQ(Call(*usage_, &pb::UsageService::Stub::QueryUsage, query, report), "INVALID_FIELD")
      << "more than 366 days";
}

// A service whose read never ends.
class EndlessReads : public pb::UsageService::CallbackService {
 public:
  explicit EndlessReads(LedgerService& ledger) : ledger_(ledger) {}
  grpc::ServerUnaryReactor* QueryUsage(grpc::CallbackServerContext* context,
                                       const pb::QueryUsageRequest*,
                                       pb::QueryUsageResponse*) override {
    grpc::ServerUnaryReactor* const reactor = context->DefaultReactor();
    const auto read = [](sql::Database& database) -> admin::AdminResult<void> {
      auto connection = database.Borrow();
      auto read = (*connection)
                      ->Query(
                          "WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM c) "
                          "SELECT count(*) FROM c",
                          {}, [](const sql::Row&) {});
      if (!read.ok()) return SqlFailure(read);
      return {};
    };
    OnLedger{ledger_}.Run(context, admin::Call(reactor), read);
    return reactor;
  }

 private:
  LedgerService& ledger_;
};

// Otherwise a few reports whose callers have left would occupy all read threads of the ledger.
TEST_F(AdminRpcTest, AReadEndsWithItsCall) {
  ASSERT_EQ(OpenWallet(), "");
  EndlessReads service(*ledger_);
  grpc::ServerBuilder builder;
  int port = 0;
  builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
  builder.RegisterService(&service);
  const auto server = builder.BuildAndStart();
  const auto stub = pb::UsageService::NewStub(
      grpc::CreateChannel("127.0.0.1:" + std::to_string(port), grpc::InsecureChannelCredentials()));
  for (int i = 0; i < 4; ++i) {  // more than the number of threads
    grpc::ClientContext context;
    context.set_deadline(std::chrono::system_clock::now() + std::chrono::milliseconds(50));
    pb::QueryUsageResponse response;
    EXPECT_EQ(stub->QueryUsage(&context, pb::QueryUsageRequest(), &response).error_code(),
              grpc::StatusCode::DEADLINE_EXCEEDED);
  }
  EXPECT_EQ(Balance().available_usd(), "0.00") << "a thread is free to read it";
  server->Shutdown();
}

}  // namespace
}  // namespace tollgate::billing
