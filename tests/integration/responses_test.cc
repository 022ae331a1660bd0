// Responses through the whole product: the cases of the public Open Responses suite for a stateless
// server, endings, failures and charges. See docs/design/wire.md 5, decisions 4, 7, 23,
// 27, 30, 33, 34.
#include "tests/integration/system_test.h"
#include "tests/support/protocol/responses_checker.h"

namespace tollgate::test {
namespace {

constexpr char kResponses[] = "/v1/responses";
// A red dot.
constexpr char kImage[] =
    R"({"type":"input_image","image_url":"data:image/gif;base64,R0lGODdhAQABAIAAAP8AAP8AACwAAAAAAQABAAACAkQBADs="})";
constexpr char kWeather[] =
    R"(,"tools":[{"type":"function","name":"get_weather","description":"Weather of a place",
        "parameters":{"type":"object","properties":{"location":{"type":"string"}},"required":["location"]}}])";

std::string Item(const std::string& role, const std::string& text) {
  return R"({"type":"message","role":")" + role + R"(","content":)" + JsonQuoted(text) + "}";
}

class ResponsesTest : public SystemTest {
 protected:
  static std::string Body(const std::string& input, const std::string& more = "",
                          const std::string& model = "sim/model") {
    return "{\"model\":\"" + model + "\",\"input\":" + input + more + "}";
  }
  HttpResponse Ask(const ApiKey& key, const std::string& body) {
    return cluster().Post(key, kResponses, body);
  }
  // A response that is not streamed, checked for every rule of the protocol.
  Json Whole(const ApiKey& key, const std::string& input, const std::string& more = "",
             const std::string& model = "sim/model") {
    const HttpResponse answer = Ask(key, Body(input, more, model));
    EXPECT_EQ(answer.status, 200) << answer.body;
    EXPECT_EQ(CheckResponsesBody(answer.body).violations, std::vector<std::string>())
        << answer.body;
    return answer.json();
  }
  // The same for a stream.
  Checked Streamed(const ApiKey& key, const std::string& input, const std::string& more = "") {
    HttpConnection connection(cluster().port());
    connection.SendRequest("POST", kResponses, key.headers(),
                           Body(input, more + ",\"stream\":true"));
    const HttpResponse head = connection.ReadHead();
    EXPECT_EQ(head.status, 200);
    EXPECT_EQ(head.header("content-type").rfind("text/event-stream", 0), 0u);
    std::string bytes;
    for (std::string more_bytes; !(more_bytes = connection.ReadSome()).empty();) {
      bytes += more_bytes;
    }
    EXPECT_TRUE(connection.ended_properly());
    Checked checked = CheckResponsesStream(bytes);
    EXPECT_EQ(checked.violations, std::vector<std::string>()) << bytes;
    return checked;
  }
  // The engine request with this tag.
  Json EngineBody(const std::string& tag) {
    const auto requests = EngineRequests(tag);
    EXPECT_EQ(requests.size(), 1u);
    return requests.empty() ? Json() : Json::Parse(requests[0].body).value_or(Json());
  }
};
INSTANTIATE_TEST_SUITE_P(Systems, ResponsesTest, kSystems,
                         [](const auto& info) { return info.param; });

TEST_P(ResponsesTest, TextHasThePublishedShape) {
  const Json answer = Whole(Customer(), "[" + Item("user", "Say hello in exactly 3 words.") + "]");
  EXPECT_EQ(answer["status"].str(), "completed");
  EXPECT_EQ(answer["model"].str(), "sim/model");
  ASSERT_EQ(answer["output"].size(), 1u);
  EXPECT_FALSE(answer["output"][0]["content"][0]["text"].str().empty());
  EXPECT_FALSE(answer.has("output_text")) << "clients compute it";
  EXPECT_GE(answer["completed_at"].integer(), answer["created_at"].integer());
}

// ADR 0017: the engine gets back the reasoning of the same workspace and model only.
TEST_P(ResponsesTest, SealedReasoningComesBackToItsOwnWorkspaceAndModel) {
  const ApiKey key = Customer();
  const std::string question = Item("user", "Think.");
  const Json answer = Whole(key, "[" + question + "]",
                            R"(,"include":["reasoning.encrypted_content"],"x_sim":)"
                            R"({"reasoning_tokens":4,"tokens":2})");
  ASSERT_EQ(answer["output"].size(), 2u);
  const Json reasoning = answer["output"][0];
  const std::string text = reasoning["summary"][0]["text"].str();
  const std::string sealed = reasoning["encrypted_content"].str();
  ASSERT_FALSE(sealed.empty());
  ASSERT_FALSE(text.empty());
  EXPECT_EQ(sealed.find(text), std::string::npos);
  const auto sent_back = [&](const ApiKey& by, const std::string& model) {
    const std::string tag = NewTag();
    Whole(by,
          "[" + question +
              R"(,{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":")" + sealed +
              "\"}," + Item("assistant", "So it is.") + "," + question + "]",
          R"(,"x_sim":{"tag":")" + tag + "\"}", model);
    return EngineBody(tag)["messages"][1]["reasoning_content"].str();
  };
  EXPECT_EQ(sent_back(key, "sim/model"), text);
  EXPECT_EQ(sent_back(Customer(), "sim/model"), "") << "another workspace";
  EXPECT_EQ(sent_back(key, "sim/vision"), "") << "another model";
}

TEST_P(ResponsesTest, StreamEqualsTheUnstreamedResponse) {
  const ApiKey key = Customer();
  const std::string input = "[" + Item("user", "Count from 1 to 5.") + "]";
  const std::string more = R"(,"x_sim":{"reasoning_tokens":4,"tokens":6})";
  const Checked streamed = Streamed(key, input, more);
  const Checked whole = CheckResponsesBody(Ask(key, Body(input, more)).body);
  EXPECT_EQ(streamed.ending, Ending::kWell);
  EXPECT_EQ(streamed.choices, whole.choices);
  ASSERT_TRUE(streamed.usage && whole.usage);
  EXPECT_TRUE(streamed.usage->SameButForEstimates(*whole.usage));
  EXPECT_FALSE(whole.choices[0].reasoning.empty());
  EXPECT_EQ(whole.usage->completion, 10);
}

// Decision 38: a NUL from the engine is sent as the escape that JSON has for it.
TEST_P(ResponsesTest, ANulFromTheEngineArrives) {
  const std::string script =
      R"(,"x_sim":{"text":"a\u0000b","tool_calls":[{"name":"get_weather","arguments":)"
      R"({"location":"\u0000"}}]})";
  const std::string input = "[" + Item("user", "Speak.") + "]";
  const ApiKey key = Customer();
  const Checked streamed = Streamed(key, input, kWeather + script);
  EXPECT_EQ(streamed.choices[0].text, std::string("a\0b", 3));
  ASSERT_EQ(streamed.choices[0].calls.size(), 1u);
  EXPECT_EQ(streamed.choices[0].calls[0].arguments, R"({"location":"\u0000"})");
  EXPECT_EQ(CheckResponsesBody(Ask(key, Body(input, kWeather + script)).body).choices,
            streamed.choices);
}

TEST_P(ResponsesTest, SystemItemsJoinTheInstructions) {
  const std::string tag = NewTag();
  const Json answer =
      Whole(Customer(), "[" + Item("system", "You are a pirate.") + "," + Item("user", "Hi") + "]",
            R"(,"instructions":"Be brief.","x_sim":{"tag":")" + tag + "\"}");
  EXPECT_EQ(answer["status"].str(), "completed");
  EXPECT_EQ(answer["instructions"].str(), "Be brief.");
  const Json messages = EngineBody(tag)["messages"];
  ASSERT_EQ(messages.size(), 2u) << messages.Dump();
  EXPECT_EQ(messages[0]["role"].str(), "system");
  EXPECT_EQ(messages[0]["content"].str(), "Be brief.\n\nYou are a pirate.");
}

TEST_P(ResponsesTest, ToolsRoundTrip) {
  const ApiKey key = Customer();
  const std::string question = Item("user", "What does get_weather say about San Francisco?");
  const Json answer = Whole(key, "[" + question + "]", kWeather);
  EXPECT_EQ(answer["status"].str(), "completed");
  const Json& call = answer["output"][answer["output"].size() - 1];
  ASSERT_EQ(call["type"].str(), "function_call") << answer.Dump();
  EXPECT_EQ(call["name"].str(), "get_weather");
  EXPECT_TRUE(Json::Parse(call["arguments"].str()).value_or(Json()).has("location"));
  EXPECT_EQ(answer["tools"][0]["name"].str(), "get_weather");
  EXPECT_EQ(answer["tool_choice"].str(), "auto");
  const Checked streamed = Streamed(key, "[" + question + "]", kWeather);
  ASSERT_EQ(streamed.choices[0].calls.size(), 1u);
  EXPECT_EQ(streamed.choices[0].calls[0].arguments, call["arguments"].str());
  const std::string tag = NewTag();
  const Json end =
      Whole(key,
            "[" + question + "," + call.Dump() + R"(,{"type":"function_call_output","call_id":)" +
                JsonQuoted(call["call_id"].str()) + R"(,"output":"foggy"}])",
            std::string(kWeather) + R"(,"x_sim":{"tokens":3,"tag":")" + tag + "\"}");
  EXPECT_EQ(end["output"][0]["type"].str(), "message");
  const Json messages = EngineBody(tag)["messages"];
  ASSERT_EQ(messages.size(), 3u);
  EXPECT_EQ(messages[1]["tool_calls"][0]["id"].str(), messages[2]["tool_call_id"].str());
  EXPECT_EQ(messages[2]["content"].str(), "foggy");
}

TEST_P(ResponsesTest, ImagesNeedAVisionModel) {  // decision 34
  const ApiKey key = Customer();
  const std::string input = R"([{"type":"message","role":"user","content":[)"
                            R"({"type":"input_text","text":"What do you see?"},)" +
                            std::string(kImage) + "]}]";
  ExpectError(Ask(key, Body(input)), 400, "bad_request", "invalid_request_error", "input");
  const std::string tag = NewTag();
  const Json answer = Whole(key, input, R"(,"x_sim":{"tag":")" + tag + "\"}", "sim/vision");
  EXPECT_EQ(answer["status"].str(), "completed");
  EXPECT_EQ(EngineBody(tag)["messages"][0]["content"][1]["type"].str(), "image_url");
}

TEST_P(ResponsesTest, EarlierTurnsReachTheEngine) {
  const std::string tag = NewTag();
  const Json answer =
      Whole(Customer(),
            "[" + Item("user", "My name is Alice.") + "," + Item("assistant", "Hello Alice!") +
                "," + Item("user", "What is my name?") + "]",
            R"(,"x_sim":{"tag":")" + tag + "\"}");
  EXPECT_EQ(answer["status"].str(), "completed");
  EXPECT_EQ(EngineBody(tag)["messages"].size(), 3u);
}

TEST_P(ResponsesTest, AResponseCutByMaxOutputTokensIsIncomplete) {
  const ApiKey key = Customer();
  for (const char* script : {R"({"tokens":9})", R"({"reasoning_tokens":9})"}) {
    const std::string more = R"(,"max_output_tokens":4,"x_sim":)" + std::string(script);
    const Json answer = Whole(key, "\"hi\"", more);
    EXPECT_EQ(answer["status"].str(), "incomplete");
    EXPECT_EQ(answer["incomplete_details"]["reason"].str(), "max_output_tokens");
    ASSERT_EQ(answer["output"].size(), 1u);
    EXPECT_EQ(answer["output"][0]["status"].str(), "incomplete");
    EXPECT_EQ(Streamed(key, "\"hi\"", more).choices[0].finish, "max_output_tokens");
  }
}

TEST_P(ResponsesTest, AResponseCutByCreditIsIncompleteAndCharged) {  // decision 4
  const int64_t credit = Charge(60, 40);
  const ApiKey key = Customer(credit);
  const Checked streamed = Streamed(key, "\"hi\"", R"(,"x_sim":{"tokens":2000,"token_ms":0.2})");
  EXPECT_EQ(streamed.ending, Ending::kWell);
  EXPECT_EQ(streamed.choices[0].finish, "max_output_tokens");
  ASSERT_TRUE(streamed.usage.has_value());
  EXPECT_EQ(SpentOf(key, credit), Charge(streamed.usage->prompt, streamed.usage->completion));
}

TEST_P(ResponsesTest, ZeroTokensAreAnsweredWithoutTheEngineAndForFree) {  // decision 30
  const ApiKey key = Customer();
  const std::string tag = NewTag();
  const std::string more = R"(,"max_output_tokens":0,"x_sim":{"tag":")" + tag + "\"}";
  const Json answer = Whole(key, "\"hi\"", more);
  EXPECT_EQ(answer["status"].str(), "incomplete");
  EXPECT_EQ(answer["output"].size(), 0u);
  EXPECT_GT(answer["usage"]["input_tokens"].integer(), 0);
  EXPECT_EQ(Streamed(key, "\"hi\"", more).choices[0].finish, "max_output_tokens");
  EXPECT_EQ(EngineRequests(tag).size(), 0u);
  EXPECT_EQ(SpentOf(key), 0);
}

TEST_P(ResponsesTest, EngineFailureInMidStreamFailsTheResponse) {  // decisions 7, 23
  const Checked streamed =
      Streamed(Customer(), "\"hi\"", R"(,"x_sim":{"tokens":9,"cut_after_tokens":3})");
  EXPECT_EQ(streamed.ending, Ending::kError);
  EXPECT_EQ(streamed.error_code, "server_error");
  EXPECT_FALSE(streamed.choices[0].text.empty()) << "the output so far is delivered";
}

TEST_P(ResponsesTest, ErrorsBeforeTheStreamUseTheOpenAiEnvelope) {
  const ApiKey key = Customer();
  const auto refused = [&](const std::string& body, const std::string& param) {
    ExpectError(Ask(key, body), 400, "bad_request", "invalid_request_error", param);
  };
  refused(R"({"model":"sim/model"})", "input");
  refused(R"({"input":"hi"})", "model");
  refused(Body("\"hi\"", R"(,"max_output_tokens":-1)"), "max_output_tokens");
  refused(Body("\"hi\"", R"(,"max_output_tokens":1.5)"), "max_output_tokens");
  refused(Body("\"hi\"", R"(,"stream":true,"previous_response_id":"resp_x")"),
          "previous_response_id");
  refused(Body("\"hi\"", R"(,"conversation":"c")"), "conversation");
  refused(Body("\"hi\"", R"(,"background":true)"), "background");
  refused(Body(R"([{"type":"item_reference","id":"x"}])"), "input");
  ExpectError(Ask(key, Body("\"hi\"", R"(,"max_output_tokens":131072)")), 400,
              "context_length_exceeded", "invalid_request_error", "max_output_tokens");
  ExpectError(Ask(key, Body("\"hi\"", R"(,"stream":true,"x_sim":{"status":502})")), 502,
              "server_error", "server_error");
  ExpectError(Ask(key, Body("\"hi\"", "", "sim/nothing")), 404, "model_unavailable",
              "not_found_error");
}

TEST_P(ResponsesTest, CostsTheSameAsChat) {
  const ApiKey responses = Customer(), chat = Customer();
  const Json answer = Whole(responses, "\"hello there\"", R"(,"x_sim":{"tokens":12})");
  EXPECT_EQ(Chat(chat, R"(,"x_sim":{"tokens":12})").status, 200);
  EXPECT_EQ(SpentOf(responses), SpentOf(chat));
  EXPECT_EQ(SpentOf(responses), Charge(answer["usage"]["input_tokens"].integer(), 12));
}

TEST_P(ResponsesTest, LogprobsHaveThePublishedShape) {
  const std::string more =
      R"(,"include":["message.output_text.logprobs"],"top_logprobs":2,"x_sim":{"tokens":3})";
  const ApiKey key = Customer();
  const Json answer = Whole(key, "\"hi\"", more);
  const Json& logprobs = answer["output"][0]["content"][0]["logprobs"];
  ASSERT_EQ(logprobs.size(), 3u) << answer.Dump();
  EXPECT_TRUE(logprobs[0]["token"].is_string());
  EXPECT_TRUE(logprobs[0]["logprob"].is_number());
  EXPECT_TRUE(logprobs[0]["bytes"].is_array());
  EXPECT_TRUE(logprobs[0]["top_logprobs"].is_array());
  EXPECT_EQ(Streamed(key, "\"hi\"", more).choices[0].logprob_tokens.size(), 3u);
}

}  // namespace
}  // namespace tollgate::test
