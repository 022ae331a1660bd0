// Failures after the stream has started, in each family's format: an error event, no normal end, no
// engine text. See decision 23, docs/design/wire.md 1.1.
#include <gtest/gtest.h>

#include <functional>
#include <map>
#include <tuple>

#include "tests/contract/error_cases.h"
#include "tests/contract/published_errors.h"
#include "tests/contract/target.h"
#include "tests/support/protocol/chat_checker.h"
#include "tests/support/protocol/completions_checker.h"
#include "tests/support/protocol/messages_checker.h"
#include "tests/support/protocol/responses_checker.h"

namespace tollgate::test {
namespace {

struct Fault {
  const char* name;
  const char* script;
  const char* row = "upstream_error";  // of docs/errors.md
};

// Each fault follows three tokens.
constexpr Fault kFaults[] = {
    {"Cut", R"({"text":"one two three four","cut_after_tokens":3})"},
    {"ErrorEventWithCode500",
     R"({"tokens":9,"in_stream_error":"Zq7EngineWords","in_stream_error_after":3})",
     "server_error"},
    {"ErrorEventWithCode",
     R"({"tokens":9,"in_stream_error":{"message":"Zq7EngineWords","type":"Zq7EngineWords","code":503},"in_stream_error_after":3})",
     "service_unavailable"},
    {"ErrorEventWithoutCode",
     R"({"tokens":9,"in_stream_error":{"message":"Zq7EngineWords","type":"Zq7EngineWords"},"in_stream_error_after":3})"},
    {"CutInReasoning", R"({"reasoning_tokens":9,"cut_after_tokens":3})"},
    {"CutInToolCall",
     R"({"tool_calls":[{"name":"look","arguments":{"place":"a b c d e f g h"}}],"cut_after_tokens":3})"},
};

Checked Check(const EndpointForm& form, const std::string& bytes) {
  if (form.name == "chat") return CheckChatStream(bytes);
  if (form.name == "completions") return CheckCompletionsStream(bytes);
  if (form.name == "responses") return CheckResponsesStream(bytes);
  return CheckMessagesStream(bytes);
}

std::vector<const EndpointForm*> StreamingForms() {
  std::vector<const EndpointForm*> forms;
  for (const EndpointForm& form : EndpointForms()) {
    if (form.streams) forms.push_back(&form);
  }
  return forms;
}

using Parameter = std::tuple<std::string, const EndpointForm*, Fault>;

class StreamErrorTest : public ::testing::TestWithParam<Parameter> {
 protected:
  void SetUp() override {
    ASSERT_EQ(target().failure, "");
    if (target().cluster == nullptr) GTEST_SKIP() << "needs a cluster of its own";
  }
  Target& target() const { return TargetOf(std::get<0>(GetParam())); }
  const EndpointForm& form() const { return *std::get<1>(GetParam()); }
  std::string script() const { return std::get<2>(GetParam()).script; }
  HeaderList headers() const {
    return {{"Authorization", "Bearer " + target().facts["keys"]["good"].str()},
            {"Content-Type", "application/json"},
            {"X-Request-Id", "stream.error"}};
  }
};

TEST_P(StreamErrorTest, EndsWithTheErrorEventOfTheFamily) {
  HttpConnection connection(target().port);
  connection.SendRequest("POST", form().path, headers(),
                         form().Body({.script = script(), .stream = true}));
  const HttpResponse head = connection.ReadHead();
  ASSERT_EQ(head.status, 200) << head.body;
  EXPECT_EQ(head.header("content-type").rfind("text/event-stream", 0), 0u);
  EXPECT_EQ(head.header("x-request-id"), "stream.error");
  std::string bytes;
  for (std::string more; !(more = connection.ReadSome()).empty();) bytes += more;
  const Checked checked = Check(form(), bytes);
  EXPECT_EQ(checked.ending, Ending::kError) << bytes;
  EXPECT_EQ(checked.violations, std::vector<std::string>()) << bytes;
  bool published = false;
  for (const auto& [name, row] : PublishedErrors()) {
    published |= row.code == checked.error_code && row.retryable;
  }
  EXPECT_TRUE(published) << checked.error_code;
  EXPECT_EQ(bytes.find(kEngineMark), std::string::npos) << bytes;
}

// Without stream: true the response is never partial.
TEST_P(StreamErrorTest, IsAnErrorStatusWithoutStreaming) {
  const HttpResponse answer =
      Http(target().port, "POST", form().path, headers(), form().Body({.script = script()}));
  const PublishedError& row = PublishedErrors().at(std::get<2>(GetParam()).row);
  EXPECT_EQ(answer.status, row.status) << answer.body;
  EXPECT_EQ(answer.header("content-type"), "application/json");
  const Json error = answer.json()["error"];
  EXPECT_EQ(error["code"].str(), row.code) << answer.body;
  EXPECT_EQ(error["type"].str(),
            form().family == Family::kMessages ? row.messages_type : row.openai_type);
  EXPECT_EQ(answer.body.find(kEngineMark), std::string::npos) << answer.body;
}

INSTANTIATE_TEST_SUITE_P(Errors, StreamErrorTest,
                         ::testing::Combine(::testing::Values("allinone", "tcp"),
                                            ::testing::ValuesIn(StreamingForms()),
                                            ::testing::ValuesIn(kFaults)),
                         [](const auto& info) {
                           return std::get<0>(info.param) + "_" + std::get<1>(info.param)->name +
                                  "__" + std::get<2>(info.param).name;
                         });

}  // namespace
}  // namespace tollgate::test
