// See decision 65, docs/contract.md "Endpoints".
#include "gateway/handlers/show_generation.h"

#include <gtest/gtest.h>

#include "common/json/json.h"
#include "gateway/testing/pipeline_fakes.h"

namespace tollgate::gateway {
namespace {

using testing::FakeExchange;
using testing::Rig;

const Id kId = Id::Make(1'700'000'000'000, 5, 6);

billing::v1::GetReceiptResponse Found() {
  billing::v1::GetReceiptResponse found;
  found.set_matches(2);
  billing::v1::GenerationReceipt& receipt = *found.mutable_receipt();
  receipt.set_request_id(kId.ToBytes());
  receipt.set_model("ns/model");
  receipt.set_surface(billing::v1::SURFACE_MESSAGES);
  receipt.set_streamed(true);
  receipt.set_outcome(billing::v1::OUTCOME_COMPLETED);
  receipt.mutable_usage()->set_prompt_tokens(5);
  receipt.mutable_usage()->set_completion_tokens(4);
  receipt.mutable_usage()->set_reasoning_tokens(3);
  receipt.mutable_usage()->set_cached_tokens(2);
  receipt.mutable_price()->set_input_pico_usd(500);
  receipt.mutable_price()->set_output_pico_usd(500'000);
  receipt.set_charged_nano_usd(2002);
  receipt.set_created_us(1'700'000'000'000'000);
  receipt.set_closed_us(1'700'000'001'500'999);
  receipt.set_first_token_us(250'999);
  return found;
}

class ShowGenerationTest : public ::testing::Test {
 protected:
  std::shared_ptr<FakeExchange> Get(const std::string& query, bool with_key = true) {
    std::shared_ptr<FakeExchange> exchange;
    tollgate::testing::RunOn(rig.pool.loop(0), [&](Loop& loop) -> Task<int> {
      HttpRequest request;
      request.query = query;
      if (with_key) request.headers = {{"authorization", "Bearer " + rig.key_text}};
      exchange = std::make_shared<FakeExchange>(loop, std::move(request));
      co_await ShowGeneration(*rig.worker, *exchange, endpoint);
      co_return 0;
    });
    return exchange;
  }

  Rig rig;
  const Endpoint endpoint{"GET",           "/api/v1/generation",    "generation",
                          Family::kOpenAi, CredentialRule::kBearer, {}};
};

// The ledger is asked only for the key's own workspace.
TEST_F(ShowGenerationTest, IsAReceiptOfTheKeysWorkspace) {
  rig.billing->receipt = Found();
  const auto answer = Get("id=msg_abc");
  EXPECT_EQ(answer->status, 200) << answer->body;
  EXPECT_EQ(answer->header("cache-control"), "no-store");
  ASSERT_EQ(rig.billing->receipts_asked.size(), 1u);
  EXPECT_EQ(rig.billing->receipts_asked[0].workspace_id(), "ws1");
  EXPECT_EQ(rig.billing->receipts_asked[0].id(), "msg_abc");
  EXPECT_TRUE(rig.limiter->acquired.empty());
}

TEST_F(ShowGenerationTest, AnUnknownIdIsNotFound) {
  const auto answer = Get("id=chatcmpl-x");
  EXPECT_EQ(answer->status, 404);
  EXPECT_EQ(answer->header("x-should-retry"), "false");
  EXPECT_NE(answer->body.find("\"code\":\"not_found\""), std::string::npos);
}

TEST_F(ShowGenerationTest, TheIdMustBeOne) {
  for (const char* query : {"", "id=", "id=a&id=b", "id=a%20b", "id=%zz", "id=%00", "other=a"}) {
    const auto answer = Get(query);
    EXPECT_EQ(answer->status, 400) << query;
    EXPECT_NE(answer->body.find("\"param\":\"id\""), std::string::npos) << query;
  }
  EXPECT_EQ(Get("id=" + std::string(129, 'a'))->status, 400);
  EXPECT_EQ(Get("id=a", false)->status, 401);
  EXPECT_TRUE(rig.billing->receipts_asked.empty());
}

TEST_F(ShowGenerationTest, WithoutTheLedgerItIsUnavailable) {
  rig.billing->receipt = Unavailable("billing is down");
  EXPECT_EQ(Get("id=a")->status, 503);
}

TEST(RenderGeneration, IsExact) {
  EXPECT_EQ(
      RenderGeneration(Found()),
      R"({"data":{"id":"msg_)" + kId.ToBase62() + R"(","request_id":"req_)" + kId.ToBase62() +
          R"(","matches":2,"created_at":"2023-11-14T22:13:20.000000Z","model":"ns/model",)"
          R"("api_type":"messages","streamed":true,"status":"completed","cancelled":false,)"
          R"("cut_by_credit":false,"estimated":false,"total_cost":"0.000002002",)"
          R"("cost_details":{"prompt_cost":"0.0000000025","completion_cost":"0.000002"},)"
          R"("pricing":{"prompt":"0.0000000005","completion":"0.0000005"},)"
          R"("tokens_prompt":5,"tokens_completion":4,"native_tokens_prompt":5,)"
          R"("native_tokens_completion":4,"native_tokens_reasoning":3,"native_tokens_cached":2,)"
          R"("latency":250,"generation_time":1500}})");
}

TEST(RenderGeneration, OfARunningRequest) {
  billing::v1::GetReceiptResponse found = Found();
  found.mutable_receipt()->set_open(true);
  found.mutable_receipt()->set_closed_us(0);
  found.mutable_receipt()->set_first_token_us(0);
  found.mutable_receipt()->set_charged_nano_usd(0);
  found.mutable_receipt()->set_client_request_id("mine");
  const std::string text = RenderGeneration(found);
  EXPECT_NE(text.find(R"("status":"running")"), std::string::npos);
  EXPECT_NE(text.find(R"("total_cost":"0",)"), std::string::npos) << text;
  EXPECT_NE(text.find(R"("request_id":"mine")"), std::string::npos);
  EXPECT_NE(text.find(R"("latency":null,"generation_time":null)"), std::string::npos);
}

}  // namespace
}  // namespace tollgate::gateway
