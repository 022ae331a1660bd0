// Responses: each rule has a stream that breaks it.
#include "tests/support/protocol/responses_checker.h"

#include "tests/support/protocol/broken_streams.h"

namespace tollgate::test {
namespace {

std::string Response(const std::string& status, const std::string& output,
                     const std::string& usage = "null") {
  const std::string reason = status == "incomplete" ? R"({"reason":"max_output_tokens"})" : "null";
  const std::string error =
      status == "failed" ? R"({"code":"server_error","message":"m"})" : "null";
  return R"({"id":"resp_1","object":"response","created_at":7,"completed_at":)" +
         std::string(status == "completed" ? "8" : "null") + R"(,"status":")" + status +
         R"(","error":)" + error + R"(,"incomplete_details":)" + reason +
         R"(,"instructions":null,"model":"m","output":[)" + output +
         R"(],"tools":[],"tool_choice":"auto","parallel_tool_calls":true,"temperature":1,"top_p":1,"presence_penalty":0,"frequency_penalty":0,"top_logprobs":0,"metadata":{},"max_output_tokens":null,"max_tool_calls":null,"previous_response_id":null,"safety_identifier":null,"prompt_cache_key":null,"reasoning":null,"text":{"format":{"type":"text"}},"truncation":"disabled","usage":)" +
         usage + R"(,"store":false,"background":false,"service_tier":"default"})";
}
const char kResponseUsage[] =
    R"({"input_tokens":5,"input_tokens_details":{"cached_tokens":1,"cache_write_tokens":0},"output_tokens":4,"output_tokens_details":{"reasoning_tokens":2},"total_tokens":9})";
const std::string kReasoning =
    R"({"id":"rs_1","type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]})";
const std::string kMessage =
    R"({"id":"msg_1","type":"message","status":"completed","role":"assistant","content":[{"type":"output_text","text":"hello","annotations":[],"logprobs":[]}]})";
const std::string kCall =
    R"({"id":"fc_1","type":"function_call","status":"completed","call_id":"call_1","name":"f","arguments":"{}"})";

Events ResponsesStream() {
  const std::string item0 = R"("item_id":"rs_1","output_index":0)";
  const std::string item1 = R"("item_id":"msg_1","output_index":1)";
  const std::string item2 = R"("item_id":"fc_1","output_index":2)";
  std::vector<std::string> bodies = {
      R"("response.created","response":)" + Response("in_progress", ""),      // 0
      R"("response.in_progress","response":)" + Response("in_progress", ""),  // 1
      R"("response.output_item.added","output_index":0,"item":{"id":"rs_1","type":"reasoning","status":"in_progress","summary":[]})",  // 2
      R"("response.reasoning_summary_part.added",)" + item0 +
          R"(,"summary_index":0,"part":{"type":"summary_text","text":""})",  // 3
      R"("response.reasoning_summary_text.delta",)" + item0 +
          R"(,"summary_index":0,"delta":"hm")",  // 4
      R"("response.reasoning_summary_text.done",)" + item0 +
          R"(,"summary_index":0,"text":"hm")",  // 5
      R"("response.reasoning_summary_part.done",)" + item0 +
          R"(,"summary_index":0,"part":{"type":"summary_text","text":"hm"})",  // 6
      R"("response.output_item.done","output_index":0,"item":)" + kReasoning,  // 7
      R"("response.output_item.added","output_index":1,"item":{"id":"msg_1","type":"message","status":"in_progress","role":"assistant","content":[]})",  // 8
      R"("response.content_part.added",)" + item1 +
          R"(,"content_index":0,"part":{"type":"output_text","text":"","annotations":[],"logprobs":[]})",  // 9
      R"("response.output_text.delta",)" + item1 +
          R"(,"content_index":0,"delta":"hel","logprobs":[])",  // 10
      R"("response.output_text.delta",)" + item1 +
          R"(,"content_index":0,"delta":"lo","logprobs":[])",  // 11
      R"("response.output_text.done",)" + item1 +
          R"(,"content_index":0,"text":"hello","logprobs":[])",  // 12
      R"("response.content_part.done",)" + item1 +
          R"(,"content_index":0,"part":{"type":"output_text","text":"hello","annotations":[],"logprobs":[]})",  // 13
      R"("response.output_item.done","output_index":1,"item":)" + kMessage,  // 14
      R"("response.output_item.added","output_index":2,"item":{"id":"fc_1","type":"function_call","status":"in_progress","call_id":"call_1","name":"f","arguments":""})",  // 15
      R"("response.function_call_arguments.delta",)" + item2 + R"(,"delta":"{}")",  // 16
      R"("response.function_call_arguments.done",)" + item2 +
          R"(,"name":"f","arguments":"{}")",                              // 17
      R"("response.output_item.done","output_index":2,"item":)" + kCall,  // 18
      R"("response.completed","response":)" +
          Response("completed", kReasoning + "," + kMessage + "," + kCall, kResponseUsage),  // 19
  };
  Events events;
  for (size_t i = 0; i < bodies.size(); ++i) {
    events.push_back(
        Named(R"({"type":)" + bodies[i] + R"(,"sequence_number":)" + std::to_string(i) + "}"));
  }
  events.push_back("data: [DONE]\n\n");  // 20
  return events;
}

TEST(ResponsesChecker, AssemblesAsAClient) {
  const Checked checked = CheckResponsesStream(Join(ResponsesStream()));
  EXPECT_EQ(Violations(checked), "");
  const AssembledChoice expected{"hello", "hm", "", {{"call_1", "f", "{}"}}, "completed", "", {}};
  EXPECT_EQ(checked.choices.at(0), expected);
  EXPECT_EQ(checked.usage, (AssembledUsage{5, 4, 1, 0, 2}));
}

TEST(ResponsesChecker, EveryViolationOfOrderIsFound) {
  const std::vector<Broken> table = {
      {"the event line equals the type", Change(10, "event: response.output_text.delta\n", "")},
      {"sequence_number grows by one from 0", Drop(10)},
      {"sequence_number grows by one from 0",
       Change(10, "\"sequence_number\":10", "\"sequence_number\":11")},
      {"response.created is the first event", Drop(0)},
      {"response.in_progress is the second event", Drop(1)},
      {"only [DONE] follows the terminal event", Swap(18, 19)},
      {"nothing follows [DONE]", Swap(19, 20)},
      {"[DONE] comes after the terminal event", Swap(19, 20)},
      {"[DONE] follows the terminal event", Drop(20)},
      {"the stream ends in a terminal event", Drop(19)},
      {"items do not overlap", Drop(7)},
      {"output_index counts up from 0", Change(8, "\"output_index\":1", "\"output_index\":2")},
      {"items have ids of their own", Change(8, "msg_1", "rs_1")},
      {"it begins empty", Change(8, "\"content\":[]", "\"content\":[1]")},
      {"an item begins in progress", Change(8, "in_progress", "completed")},
      {"an item is open", Drop(2)},
      {"output_index is the open item's", Change(10, "\"output_index\":1", "\"output_index\":0")},
      {"item_id is the open item's", Change(10, "\"msg_1\"", "\"msg_2\"")},
      {"an event fits its item's type",
       Change(9, "response.content_part.added\",", "response.reasoning_summary_part.added\",")},
      {"parts count up from 0", Change(9, "\"content_index\":0", "\"content_index\":1")},
      {"a part begins empty", Change(9, "\"text\":\"\"", "\"text\":\"x\"")},
      {"the part has annotations", Change(9, "\"annotations\":[],", "")},
      {"a part is open", Drop(9)},
      {"the index is the open part's", Change(10, "\"content_index\":0", "\"content_index\":1")},
      {"response.output_text.delta has logprobs", Change(10, ",\"logprobs\":[]", "")},
      {"delta is a string", Change(10, "\"hel\"", "null")},
      {"no delta follows the done event", Swap(11, 12)},
      {"a done text is the joined deltas", Change(12, "\"hello\"", "\"hell\"")},
      {"a part's text is done before the part", Drop(12)},
      {"a done part is the joined deltas", Change(13, "\"hello\"", "\"hell\"")},
      {"an item's parts are done before it", Drop(13)},
      {"a done item is what was streamed", Change(14, "\"hello\"", "\"hell\"")},
      {"an item keeps its id and type", Change(14, "msg_1", "msg_2")},
      {"a whole item is completed or incomplete", Change(14, "completed", "in_progress")},
      {"a call keeps its name", Change(17, "\"name\":\"f\"", "\"name\":\"g\"")},
      {"arguments.done has name", Change(17, "\"name\":\"f\",", "")},
      {"done arguments are the joined deltas", Change(17, "\"{}\"", "\"{\"")},
      {"arguments are done before their item", Drop(17)},
      {"a done item has the parts", Change(7, R"({"type":"summary_text","text":"hm"})", "")},
  };
  ExpectFound(ResponsesStream(), table, CheckResponsesStream);
}

TEST(ResponsesChecker, EveryViolationOfTheObjectIsFound) {
  const std::vector<Broken> table = {
      {"it begins in progress", Change(0, "\"in_progress\"", "\"queued\"")},
      {"it begins without output", Change(0, "\"output\":[]", "\"output\":[1]")},
      {"the response has truncation", Change(0, "\"truncation\":\"disabled\",", "")},
      {"the response has no output_text", Change(0, "\"store\"", "\"output_text\":\"\",\"store\"")},
      {"the response's id and model stay the same", Change(19, "resp_1", "resp_2")},
      {"temperature is a number", Change(1, "\"temperature\":1", "\"temperature\":null")},
      {"service_tier is a string", Change(1, "\"default\"", "null")},
      {"the status is the event's",
       Change(19, "\"status\":\"completed\",\"error\"", "\"status\":\"failed\",\"error\"")},
      {"completed_at is set when completed",
       Change(19, "\"completed_at\":8", "\"completed_at\":null")},
      {"usage is set when the answer has ended", Change(19, kResponseUsage, "null")},
      {"total_tokens is the sum", Change(19, "\"total_tokens\":9", "\"total_tokens\":8")},
      {"input_tokens_details has cache_write_tokens", Change(19, ",\"cache_write_tokens\":0", "")},
      {"output has exactly the announced items", Change(19, "," + kCall, "")},
      {"output has the items in their order", Change(19, "msg_1", "msg_2")},
      {"output is what was streamed", Change(19, "\"hello\"", "\"hell\"")},
      {"every item is done", Drop(18)},
      {"an incomplete item is the last one",
       Change(19, "\"type\":\"message\",\"status\":\"completed\"",
              "\"type\":\"message\",\"status\":\"incomplete\"")},
  };
  ExpectFound(ResponsesStream(), table, CheckResponsesStream);
}

TEST(ResponsesChecker, FailedAndBody) {
  const Events legal = {Named(R"({"type":"response.created","sequence_number":0,"response":)" +
                              Response("in_progress", "") + "}"),
                        Named(R"({"type":"response.in_progress","sequence_number":1,"response":)" +
                              Response("in_progress", "") + "}"),
                        Named(R"({"type":"response.failed","sequence_number":2,"response":)" +
                              Response("failed", "") + "}"),
                        "data: [DONE]\n\n"};
  const std::vector<Broken> table = {
      {"error is set when failed", Change(2, R"({"code":"server_error","message":"m"})", "null")},
      {"usage is set when the answer has ended", Change(2, "\"usage\":null", "\"usage\":{}")},
  };
  ExpectFound(legal, table, CheckResponsesStream);
  EXPECT_EQ(CheckResponsesStream(Join(legal)).error_code, "server_error");
  ExpectFound({Response("incomplete", kMessage, kResponseUsage)},
              {{"the reason is a public one", Change(0, "max_output_tokens\"}", "stop\"}")},
               {"output is an array", Change(0, "\"output\":[", "\"output\":1,\"x\":[")},
               {"the answer has ended", Change(0, "\"incomplete\",", "\"in_progress\",")}},
              CheckResponsesBody);
}

}  // namespace
}  // namespace tollgate::test
