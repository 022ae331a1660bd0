// A client disconnects from a stream: the receipt says how many of the produced tokens were
// reasoning, although the engine reports that only at its end. See docs/design/wire.md 2.5.
#include "tests/integration/system_test.h"

namespace tollgate::test {
namespace {

struct Form {
  const char* path;
  const char* body;      // without the closing brace
  const char* thinking;  // within a piece of reasoning
  const char* text;      // within a piece of text
};
constexpr Form kForms[] = {
    {"/v1/chat/completions",
     R"({"model":"sim/model","messages":[{"role":"user","content":"hello there"}])",
     R"("reasoning_content":")", R"("content":")"},
    {"/v1/messages",
     R"({"model":"sim/model","max_tokens":9000,"messages":[{"role":"user","content":"hello there"}])",
     R"("thinking_delta")", R"("text_delta")"},
    {"/v1/responses", R"({"model":"sim/model","input":"hello there")",
     R"("response.reasoning_summary_text.delta")", R"("response.output_text.delta")"},
};

class AbortedStreamsTest : public SystemTest {
 protected:
  // Leaves a stream after five pieces with these bytes, and returns its receipt.
  ReceiptView LeaveAfter(const Form& form, const std::string& piece, const std::string& script) {
    const ApiKey key = Customer();
    {
      HttpConnection connection(cluster().port());
      connection.SendRequest("POST", form.path, key.headers(),
                             std::string(form.body) + R"(,"stream":true,"x_sim":)" + script + "}");
      EXPECT_EQ(connection.ReadHead().status, 200);
      for (int seen = 0; seen < 5;) {
        const auto event = connection.NextEvent();
        if (!event) {
          ADD_FAILURE() << "the stream ended: " << connection.error();
          break;
        }
        if (event->data.find(piece) != std::string::npos) ++seen;
      }
    }
    EXPECT_TRUE(cluster().WaitIdle(key.workspace_id));
    const auto receipts = cluster().Receipts(key.workspace_id);
    EXPECT_TRUE(receipts && receipts->size() == 1);
    return receipts && receipts->size() == 1 ? receipts->front() : ReceiptView();
  }
};
INSTANTIATE_TEST_SUITE_P(Systems, AbortedStreamsTest, kSystems,
                         [](const auto& info) { return info.param; });

TEST_P(AbortedStreamsTest, WithinTheReasoningAllOfItIsReasoning) {
  for (const Form& form : kForms) {
    SCOPED_TRACE(form.path);
    const ReceiptView receipt =
        LeaveAfter(form, form.thinking, R"({"tokens":4,"reasoning_tokens":5000,"token_ms":5})");
    EXPECT_GE(receipt.completion_tokens, 5);
    EXPECT_LT(receipt.completion_tokens, 5000);
    EXPECT_EQ(receipt.reasoning_tokens, receipt.completion_tokens);
  }
}

TEST_P(AbortedStreamsTest, WithinTheTextTheReasoningBeforeItCounts) {
  for (const Form& form : kForms) {
    SCOPED_TRACE(form.path);
    const ReceiptView receipt =
        LeaveAfter(form, form.text, R"({"tokens":5000,"reasoning_tokens":7,"token_ms":5})");
    EXPECT_EQ(receipt.reasoning_tokens, 7);
    EXPECT_GE(receipt.completion_tokens, 7 + 5);
    EXPECT_LT(receipt.completion_tokens, 5000);
  }
}

}  // namespace
}  // namespace tollgate::test
