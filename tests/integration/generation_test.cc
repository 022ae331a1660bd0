// The cost of an answer: in its usage on request, and in its receipt. Both equal what the ledger
// has booked. See decisions 4, 8, 10 and 65.
#include <map>

#include "tests/integration/system_test.h"

namespace tollgate::test {
namespace {

struct Form {
  const char* path;
  const char* body;  // without the closing brace
  bool streams;
};
constexpr Form kForms[] = {
    {"/v1/chat/completions",
     R"({"model":"sim/model","messages":[{"role":"user","content":"hello there"}])", true},
    {"/v1/completions", R"({"model":"sim/text","prompt":"hello there")", true},
    {"/v1/responses", R"({"model":"sim/model","input":"hello there")", true},
    {"/v1/embeddings", R"({"model":"sim/embed","input":"hello there")", false},
    {"/v1/messages",
     R"({"model":"sim/model","max_tokens":4000,"messages":[{"role":"user","content":"hello there"}])",
     true},
};

// "0.000000001" for 1.
std::string Usd(int64_t nano) {
  std::string decimals = std::to_string(nano % kUsd + kUsd).substr(1);
  while (!decimals.empty() && decimals.back() == '0') decimals.pop_back();
  return std::to_string(nano / kUsd) + (decimals.empty() ? "" : "." + decimals);
}

class GenerationTest : public SystemTest {
 protected:
  HttpResponse Ask(const ApiKey& key, const Form& form, const std::string& more,
                   const HeaderList& headers = {}) {
    HeaderList all = key.headers();
    all.insert(all.end(), headers.begin(), headers.end());
    return Http(cluster().port(), "POST", form.path, all, form.body + more + "}");
  }
  HttpResponse Receipt(const ApiKey& key, const std::string& id, const char* method = "GET") {
    return Http(cluster().port(), method, "/api/v1/generation?id=" + id,
                // The response to HEAD has no body and ends with the connection.
                {{"Authorization", "Bearer " + key.secret}, {"Connection", "close"}});
  }
  // The last usage object of an answer, streamed or not, and its id.
  static Json UsageOf(const HttpResponse& answer, std::string* id) {
    Json usage;
    const auto take = [&](const Json& from) {
      if (from["id"].is_string() && id->empty()) *id = from["id"].str();
      if (from["usage"].is_object()) usage = from["usage"];
    };
    if (answer.header("content-type") == "application/json") {
      take(answer.json());
      return usage;
    }
    for (size_t at = 0; (at = answer.body.find("data: {", at)) != std::string::npos;) {
      const size_t end = answer.body.find('\n', at);
      const Json data = Json::Parse(answer.body.substr(at + 6, end - at - 6)).value_or(Json());
      take(data);
      take(data["response"]);
      take(data["message"]);
      at = end;
    }
    return usage;
  }
};
INSTANTIATE_TEST_SUITE_P(Systems, GenerationTest, kSystemsAndStores,
                         [](const auto& info) { return info.param; });

TEST_P(GenerationTest, TheCostIsWhatTheLedgerHasBooked) {
  for (const Form& form : kForms) {
    for (const bool stream : {false, true}) {
      if (stream && !form.streams) continue;
      SCOPED_TRACE(std::string(form.path) + (stream ? " streamed" : ""));
      const ApiKey key = Customer();
      const std::string more = stream ? ",\"stream\":true" : "";
      const HttpResponse answer = Ask(key, form, more, {{"x-tollgate-include-cost", "true"}});
      ASSERT_EQ(answer.status, 200) << answer.body;
      std::string id;
      const Json usage = UsageOf(answer, &id);
      const int64_t spent = SpentOf(key);
      EXPECT_GT(spent, 0);
      EXPECT_EQ(usage["cost"].number_text(), Usd(spent)) << answer.body;
      EXPECT_TRUE(usage["cost_details"]["prompt_cost"].is_string()) << usage.Dump();
      EXPECT_FALSE(usage["cost_details"].has("cut_by_credit"));

      // The answer's id and the id in its header both work.
      if (id.empty()) id = answer.header("x-request-id");
      for (const std::string& name : {id, answer.header("x-request-id")}) {
        const HttpResponse receipt = Receipt(key, name);
        ASSERT_EQ(receipt.status, 200) << receipt.body;
        const Json data = receipt.json()["data"];
        EXPECT_EQ(data["id"].str(), id);
        EXPECT_EQ(data["request_id"].str(), answer.header("x-request-id"));
        EXPECT_EQ(data["total_cost"].str(), Usd(spent));
        EXPECT_EQ(data["cost_details"].Dump(), usage["cost_details"].Dump());
        EXPECT_EQ(data["streamed"].boolean(), stream);
        EXPECT_EQ(data["status"].str(), "completed");
        EXPECT_EQ(data["matches"].integer(), 1);
        EXPECT_GT(data["tokens_prompt"].integer(), 0);
      }
      // Without the option, the response has no cost.
      const HttpResponse plain = Ask(Customer(), form, more);
      EXPECT_EQ(plain.body.find("\"cost"), std::string::npos) << plain.body;
    }
  }
}

TEST_P(GenerationTest, TheBodyAsksOnEverySurface) {
  for (const Form& form : kForms) {
    for (const bool stream : {false, true}) {
      if (stream && !form.streams) continue;
      SCOPED_TRACE(std::string(form.path) + (stream ? " streamed" : ""));
      const ApiKey key = Customer();
      engine(0).ForgetRequests();
      engine(1).ForgetRequests();
      const HttpResponse answer =
          Ask(key, form,
              R"(,"usage":{"include":true})" + std::string(stream ? R"(,"stream":true)" : ""));
      ASSERT_EQ(answer.status, 200) << answer.body;
      std::string id;
      EXPECT_EQ(UsageOf(answer, &id)["cost"].number_text(), Usd(SpentOf(key))) << answer.body;
      int64_t asked = 0;
      for (const int index : {0, 1}) {
        for (const SimRequest& request : engine(index).requests()) {
          ++asked;
          const auto body = Json::Parse(request.body);
          ASSERT_TRUE(body) << request.body;
          EXPECT_FALSE(body->has("usage")) << request.body;
        }
      }
      EXPECT_EQ(asked, 1);
    }
  }
}

// A replayed answer equals the original: it has the cost only if the original had it. The receipt
// always has it.
TEST_P(GenerationTest, ARepeatedAnswerHasTheCostThatItHad) {
  for (const bool first_asks : {false, true}) {
    const ApiKey key = Customer();
    const HeaderList once = {{"Idempotency-Key", "again"}};
    const HeaderList asks = {{"Idempotency-Key", "again"}, {"x-tollgate-include-cost", "true"}};
    const HttpResponse first = Ask(key, kForms[0], "", first_asks ? asks : once);
    ASSERT_EQ(first.status, 200) << first.body;
    const int64_t spent = SpentOf(key);
    const HttpResponse again = Ask(key, kForms[0], "", first_asks ? once : asks);
    EXPECT_EQ(again.header("idempotent-replayed"), "true");
    EXPECT_EQ(again.body, first.body);
    std::string id;
    EXPECT_EQ(UsageOf(again, &id)["cost"].number_text(), first_asks ? Usd(spent) : "")
        << again.body;
    EXPECT_EQ(Receipt(key, id).json()["data"]["total_cost"].str(), Usd(spent));
    EXPECT_EQ(SpentOf(key), spent);
  }
}

// Decision 30: it is not in the ledger, so it has no receipt.
TEST_P(GenerationTest, AnAnswerWithoutAnEngineHasNoReceipt) {
  const ApiKey key = Customer();
  const HttpResponse answer = Ask(key, kForms[0], R"(,"max_tokens":0,"usage":{"include":true})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  std::string id;
  EXPECT_EQ(UsageOf(answer, &id)["cost"].number_text(), "0") << answer.body;
  EXPECT_EQ(Receipt(key, id).status, 404);
  EXPECT_EQ(Receipt(key, answer.header("x-request-id")).status, 404);
  EXPECT_EQ(SpentOf(key), 0);
}

// Receipts of other workspaces are not found, whether they exist or not.
TEST_P(GenerationTest, OtherWorkspacesFindNothing) {
  const ApiKey key = Customer(), other = Customer();
  const HttpResponse answer = Ask(key, kForms[0], "", {{"X-Request-Id", "shared.name"}});
  ASSERT_EQ(answer.status, 200);
  const std::string id = answer.json()["id"].str();
  const HttpResponse foreign = Receipt(other, id);
  const HttpResponse unknown = Receipt(other, "chatcmpl-0000000000000000000000");
  EXPECT_EQ(foreign.status, 404);
  EXPECT_EQ(foreign.body, unknown.body);
  EXPECT_EQ(Receipt(other, "shared.name").status, 404);
  EXPECT_EQ(Receipt(other, "-").status, 404);
  EXPECT_EQ(Http(cluster().port(), "GET", "/api/v1/generation?id=" + id).status, 401);
  EXPECT_EQ(Receipt(key, id, "HEAD").status, 200);
  EXPECT_EQ(Receipt(key, id, "POST").status, 404);
}

// Decision 65: several requests with one x-request-id return the newest, and their number.
TEST_P(GenerationTest, ARepeatedRequestIdFindsTheNewest) {
  const ApiKey key = Customer();
  std::string last;
  for (int i = 0; i < 3; ++i) {
    last = Ask(key, kForms[0], "", {{"X-Request-Id", "again"}}).json()["id"].str();
    ASSERT_TRUE(cluster().WaitIdle(key.workspace_id));
  }
  const Json data = Receipt(key, "again").json()["data"];
  EXPECT_EQ(data["id"].str(), last);
  EXPECT_EQ(data["request_id"].str(), "again");
  EXPECT_EQ(data["matches"].integer(), 3);
}

// Receipts belong to the workspace: all its keys see them.
TEST_P(GenerationTest, AnotherKeyOfTheWorkspaceFindsTheReceipt) {
  const ApiKey key = Customer(), second = cluster().NewKey(key.workspace_id);
  const HttpResponse answer = Ask(key, kForms[0], "");
  ASSERT_EQ(answer.status, 200) << answer.body;
  ASSERT_TRUE(cluster().WaitIdle(key.workspace_id));
  const std::string id = answer.json()["id"].str();
  const HttpResponse receipt = Receipt(second, id);
  ASSERT_EQ(receipt.status, 200) << receipt.body;
  EXPECT_EQ(receipt.json()["data"]["id"].str(), id);
  EXPECT_EQ(receipt.body, Receipt(key, id).body);
}

// The cost is in the usage, in a header or a comment, and in the receipt, with a finish reason that
// clients of the protocol know.
TEST_P(GenerationTest, AnAnswerCutByCreditSaysSo) {
  const int64_t credit = Charge(80, 300);
  const std::string script = R"(,"x_sim":{"tokens":3000,"token_ms":1})";
  const std::map<std::string, std::string> reasons = {
      {"/v1/chat/completions", R"("finish_reason":"length")"},
      {"/v1/completions", R"("finish_reason":"length")"},
      {"/v1/responses", R"("reason":"max_output_tokens")"},
      {"/v1/messages", R"("stop_reason":"max_tokens")"}};
  size_t forms = 0;
  for (const Form& form : kForms) {
    if (!form.streams) continue;
    ++forms;
    for (const bool stream : {false, true}) {
      SCOPED_TRACE(std::string(form.path) + (stream ? " streamed" : ""));
      const ApiKey key = Customer(credit);
      // A completion generates 16 tokens unless it asks for more.
      const bool completion = form.path == std::string_view("/v1/completions");
      const HttpResponse answer = Ask(
          key, form,
          script + (completion ? ",\"max_tokens\":3000" : "") + (stream ? ",\"stream\":true" : ""),
          {{"x-tollgate-include-cost", "true"}});
      ASSERT_EQ(answer.status, 200) << answer.body;
      std::string id;
      EXPECT_TRUE(UsageOf(answer, &id)["cost_details"]["cut_by_credit"].boolean()) << answer.body;
      EXPECT_EQ(answer.header("x-tollgate-cut-by-credit"), stream ? "" : "true");
      EXPECT_EQ(answer.body.find("\n: x-tollgate-cut-by-credit: true\n\n") != std::string::npos,
                stream);
      EXPECT_NE(answer.body.find(reasons.at(form.path)), std::string::npos) << answer.body;
      ASSERT_TRUE(cluster().WaitIdle(key.workspace_id));
      const HttpResponse receipt = Receipt(key, id);
      EXPECT_TRUE(receipt.json()["data"]["cut_by_credit"].boolean()) << receipt.body;
      const HttpResponse whole = Ask(Customer(), form, stream ? ",\"stream\":true" : "");
      EXPECT_FALSE(whole.has_header("x-tollgate-cut-by-credit"));
      EXPECT_EQ(whole.body.find("cut-by-credit"), std::string::npos);
    }
  }
  EXPECT_EQ(forms, reasons.size());
}

}  // namespace
}  // namespace tollgate::test
