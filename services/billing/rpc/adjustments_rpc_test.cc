// Credit and corrections by operators: what one person may do alone, and what takes two (ADR 0053).
#include "services/billing/rpc/testing/admin_rpc_world.h"

namespace tollgate::billing {
namespace {

TEST_F(AdminRpcTest, ALargeCorrectionWaitsForAnotherOperator) {
  ASSERT_EQ(OpenWallet(), "");
  Pay(200);
  SignIn("anna");
  EXPECT_EQ(Adjust("small", pb::ADJUSTMENT_KIND_REFUND, "50"), "");
  EXPECT_EQ(adjustment_.state(), pb::ADJUSTMENT_STATE_POSTED);
  EXPECT_EQ(Adjust("large", pb::ADJUSTMENT_KIND_REFUND, "50.01"), "");
  EXPECT_EQ(adjustment_.state(), pb::ADJUSTMENT_STATE_PENDING_APPROVAL);
  EXPECT_EQ(Balance().paid_usd(), "150.00");
  EXPECT_EQ(Approve("large"), "SAME_PERSON");
  EXPECT_EQ(Approve("nothing"), "NOT_FOUND");
  SignIn("bert");
  pb::ApproveAdjustmentRequest bad;
  bad.set_name("workspaces/ws/adjustments/large");
  bad.set_request_id(std::string(65, 'a'));
  EXPECT_EQ(Call(*adjustments_, &pb::AdjustmentService::Stub::ApproveAdjustment, bad, adjustment_),
            "INVALID_FIELD");
  EXPECT_EQ(Approve("large"), "");
  EXPECT_EQ(adjustment_.state(), pb::ADJUSTMENT_STATE_POSTED);
  EXPECT_EQ(adjustment_.actor(), "user:anna");
  EXPECT_EQ(adjustment_.decided_by(), "user:bert");
  EXPECT_EQ(Approve("large"), "") << "repeated";
  EXPECT_EQ(Balance().paid_usd(), "99.99");
  SignIn("carl");
  EXPECT_EQ(Approve("large"), "ALREADY_DECIDED");
  EXPECT_EQ(Approve("small"), "ALREADY_DECIDED");
  EXPECT_EQ(Adjust("more", pb::ADJUSTMENT_KIND_REFUND, "100"), "");
  pb::RejectAdjustmentRequest reject;
  reject.set_name("workspaces/ws/adjustments/more");
  EXPECT_EQ(
      Call(*adjustments_, &pb::AdjustmentService::Stub::RejectAdjustment, reject, adjustment_), "");
  EXPECT_EQ(adjustment_.state(), pb::ADJUSTMENT_STATE_REJECTED);
  EXPECT_EQ(Adjust("too-much", pb::ADJUSTMENT_KIND_DEBIT, "49.995"), "");
  EXPECT_EQ(Adjust("too-much-2", pb::ADJUSTMENT_KIND_REFUND, "50"), "INSUFFICIENT_CREDIT");
  EXPECT_EQ(Adjust("owed", pb::ADJUSTMENT_KIND_WRITE_OFF, "1"), "INVALID_VALUE")
      << "nothing is owed";

  pb::ListAdjustmentsRequest list;
  list.set_parent(kWorkspace);
  list.set_page_size(2);
  pb::ListAdjustmentsResponse page;
  std::vector<std::string> names;
  do {
    ASSERT_EQ(Call(*adjustments_, &pb::AdjustmentService::Stub::ListAdjustments, list, page), "");
    for (const auto& one : page.adjustments()) names.push_back(one.name());
    list.set_page_token(page.next_page_token());
  } while (!list.page_token().empty());
  EXPECT_EQ(names.size(), 4U);
  list.set_filter(R"(state = "REJECTED")");
  ASSERT_EQ(Call(*adjustments_, &pb::AdjustmentService::Stub::ListAdjustments, list, page), "");
  ASSERT_EQ(page.adjustments_size(), 1);
  EXPECT_EQ(page.adjustments(0).name(), "workspaces/ws/adjustments/more");
  // All workspaces.
  list.set_parent("workspaces/-");
  ASSERT_EQ(Call(*adjustments_, &pb::AdjustmentService::Stub::ListAdjustments, list, page), "");
  ASSERT_EQ(page.adjustments_size(), 1);
  EXPECT_EQ(page.adjustments(0).name(), "workspaces/ws/adjustments/more");
}

// Each grant is small, but a person makes only so much in a day, by whatever door and wherever.
TEST_F(AdminRpcTest, CreditByHandIsSummedUpPerPerson) {
  ASSERT_EQ(OpenWallet(), "");
  SignIn("anna");
  EXPECT_EQ(Grant("g1", "20", false), "");
  EXPECT_EQ(Grant("g1", "20", false), "") << "a repetition does not count";
  EXPECT_EQ(Adjust("a1", pb::ADJUSTMENT_KIND_CREDIT, "25"), "");
  EXPECT_EQ(adjustment_.state(), pb::ADJUSTMENT_STATE_POSTED);
  EXPECT_EQ(Grant("g2", "5.01"), "SECOND_PERSON_REQUIRED");
  EXPECT_EQ(Grant("g3", "5"), "");
  EXPECT_EQ(Adjust("a2", pb::ADJUSTMENT_KIND_CREDIT, "0.01"), "");
  EXPECT_EQ(adjustment_.state(), pb::ADJUSTMENT_STATE_PENDING_APPROVAL);
  EXPECT_EQ(Balance().available_usd(), "50.00");
  EXPECT_EQ(Grant("g3", "5"), "") << "what was made stays repeatable";
  EXPECT_EQ(Adjust("a3", pb::ADJUSTMENT_KIND_DEBIT, "30"), "");
  EXPECT_EQ(adjustment_.state(), pb::ADJUSTMENT_STATE_POSTED) << "it takes credit";
  EXPECT_EQ(Grant("g4", "1"), "SECOND_PERSON_REQUIRED") << "what was taken does not count back";
  SignIn("bert");
  EXPECT_EQ(Grant("g5", "50"), "");
  EXPECT_EQ(Approve("a2"), "");
  EXPECT_EQ(Balance().available_usd(), "70.01");
}

TEST_F(AdminRpcTest, CreditForAWorkspaceWithoutAWalletDoesNotCount) {
  SignIn("anna");
  EXPECT_EQ(Grant("g1", "50"), "WALLET_NOT_FOUND");
  ASSERT_EQ(OpenWallet(), "");
  EXPECT_EQ(Grant("g2", "50"), "");
}

// Over a unix socket the name is whatever the caller says.
TEST_F(AdminRpcTest, NamesSaidOverASocketAreOnePersonAndNeverOneOfTwo) {
  ASSERT_EQ(OpenWallet(), "");
  EXPECT_EQ(Grant("g1", "30"), "");
  operator_ = "bert";
  EXPECT_EQ(Grant("g2", "30"), "SECOND_PERSON_REQUIRED");
  EXPECT_EQ(Grant("g3", "20"), "");
  EXPECT_EQ(Adjust("a1", pb::ADJUSTMENT_KIND_CREDIT, "1"), "PERSON_NOT_PROVED");
  EXPECT_EQ(Adjust("a2", pb::ADJUSTMENT_KIND_REFUND, "51"), "PERSON_NOT_PROVED");
  person_ = "carl";
  EXPECT_EQ(Adjust("a3", pb::ADJUSTMENT_KIND_CREDIT, "51"), "PERSON_NOT_PROVED")
      << "so is the identity of a person";
  SignIn("anna");
  ASSERT_EQ(Adjust("a4", pb::ADJUSTMENT_KIND_CREDIT, "51"), "");
  person_.clear();
  operator_ = "dora";
  Use(grpc::CreateChannel("unix:" + file_ + ".sock", grpc::InsecureChannelCredentials()));
  EXPECT_EQ(Approve("a4"), "PERSON_NOT_PROVED");
  EXPECT_EQ(Balance().available_usd(), "50.00");
}

TEST_F(AdminRpcTest, AChargebackNeverWaits) {
  ASSERT_EQ(OpenWallet(), "");
  Pay(200);
  EXPECT_EQ(Adjust("a1", pb::ADJUSTMENT_KIND_CHARGEBACK, "100"), "");
  EXPECT_EQ(adjustment_.state(), pb::ADJUSTMENT_STATE_POSTED);
  EXPECT_EQ(Balance().available_usd(), "100.00");
}

}  // namespace
}  // namespace tollgate::billing
