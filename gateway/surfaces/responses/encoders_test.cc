// Exact bytes of Responses bodies and streams. See docs/design/wire.md 5.2, 5.3, 7.4, decisions 4,
// 23, 27, 30.
#include "gateway/surfaces/responses/encoders.h"

#include <gtest/gtest.h>

#include <vector>

#include "gateway/surfaces/responses/request.h"

namespace tollgate::gateway {
namespace {

namespace pb = inference::v1;

const ManualClock kClock(1'700'000'007'900'000);
const ResponseStamp kStamp{"ID", 1'700'000'000, &kClock};
const std::string kEcho = R"("tools":[],"metadata":{})";

CanonicalRequest Request() {
  CanonicalRequest request;
  request.model = "ns/m";
  const auto state = std::make_shared<ResponsesState>();
  state->echo_json = kEcho;
  request.state = state;
  return request;
}

// A request with reasoning that must be sealed.
CanonicalRequest SealingRequest() {
  CanonicalRequest request = Request();
  const auto keys = std::make_shared<const ReasoningKeys>(ReasoningKeys{{std::string(32, 'k')}});
  auto& state = static_cast<ResponsesState&>(*request.state);
  state.seal_keys = keys;
  state.workspace = "acme";
  return request;
}

pb::Delta Text(const std::string& escaped, const std::string& logprobs = "") {
  pb::Delta delta;
  delta.set_content_json(escaped);
  delta.set_logprobs_json(logprobs);
  return delta;
}
pb::Delta Think(const std::string& escaped) {
  pb::Delta delta;
  delta.set_reasoning_json(escaped);
  return delta;
}
pb::Delta Refusal(const std::string& escaped) {
  pb::Delta delta;
  delta.set_refusal_json(escaped);
  return delta;
}
pb::Delta Call(int32_t index, const std::string& id, const std::string& name,
               const std::string& arguments) {
  pb::Delta delta;
  pb::ToolCallDelta* call = delta.add_tool_calls();
  call->set_index(index);
  call->set_id_json(id);
  call->set_name_json(name);
  call->set_arguments_json(arguments);
  return delta;
}
pb::Delta Finish(pb::FinishReason reason) {
  pb::Delta delta;
  delta.set_finish_reason(reason);
  return delta;
}
const pb::Delta kStop = Finish(pb::FINISH_REASON_STOP);

pb::End End(bool cut_by_credit = false) {
  pb::End end;
  end.mutable_usage()->set_prompt_tokens(7);
  end.mutable_usage()->set_completion_tokens(5);
  end.mutable_usage()->set_cached_tokens(3);
  end.mutable_usage()->set_cache_write_tokens(1);
  end.mutable_usage()->set_reasoning_tokens(2);
  end.set_cut_by_credit(cut_by_credit);
  return end;
}
const std::string kUsage =
    R"({"input_tokens":7,"input_tokens_details":{"cached_tokens":3,"cache_write_tokens":1},)"
    R"("output_tokens":5,"output_tokens_details":{"reasoning_tokens":2},"total_tokens":12})";

std::string Object(const std::string& status, const std::string& output,
                   const std::string& usage = kUsage, const std::string& details = "null",
                   const std::string& error = "null") {
  return R"({"id":"resp_ID","object":"response","created_at":1700000000,"completed_at":)" +
         std::string(status == "completed" ? "1700000007" : "null") + R"(,"status":")" + status +
         R"(","error":)" + error + R"(,"incomplete_details":)" + details +
         R"(,"model":"ns/m","output":)" + output + ",\"usage\":" + usage + "," + kEcho + "}";
}

std::string EncodeBody(const std::vector<pb::Delta>& deltas, const pb::End& end = End(),
                       const CanonicalRequest& request = Request()) {
  const auto encoder = MakeResponsesBodyEncoder(request, kStamp);
  for (const pb::Delta& delta : deltas) encoder->OnDelta(delta);
  return encoder->Finish(end);
}

std::string EncodeStream(const std::vector<pb::Delta>& deltas, const pb::End& end = End(),
                         const CanonicalRequest& request = Request()) {
  const auto encoder = MakeResponsesStreamEncoder(request, kStamp);
  std::string out;
  encoder->OnStarted({}, out);
  for (const pb::Delta& delta : deltas) encoder->OnDelta(delta, out);
  encoder->OnEnd(end, out);
  return out;
}

// The events of a stream, each as its type and its data after the sequence number. Checks that the
// events are numbered from 0 and end with [DONE].
std::vector<std::string> Events(const std::string& stream) {
  std::vector<std::string> events;
  size_t at = 0;
  for (size_t end; (end = stream.find("\n\n", at)) != std::string::npos; at = end + 2) {
    const std::string event = stream.substr(at, end - at);
    if (event == "data: [DONE]") {
      EXPECT_EQ(end + 2, stream.size()) << "nothing follows [DONE]";
      return events;
    }
    const size_t line = event.find("\ndata: ");
    const std::string type = event.substr(7, line - 7);
    const std::string head = "event: " + type + "\ndata: {\"type\":\"" + type +
                             "\",\"sequence_number\":" + std::to_string(events.size()) + ",";
    EXPECT_EQ(event.substr(0, head.size()), head);
    EXPECT_TRUE(json::Document::ParseView(event.substr(line + 7)).ok()) << event;
    events.push_back(type + " {" + event.substr(std::min(head.size(), event.size())));
  }
  ADD_FAILURE() << "no [DONE]: " << stream;
  return events;
}

std::vector<std::string> Whole(std::vector<std::string> items, const std::string& last) {
  std::vector<std::string> events = {
      "response.created {\"response\":" + Object("in_progress", "[]", "null") + "}",
      "response.in_progress {\"response\":" + Object("in_progress", "[]", "null") + "}"};
  for (std::string& item : items) events.push_back(std::move(item));
  events.push_back(last);
  return events;
}

std::string Completed(const std::string& output) {
  return "response.completed {\"response\":" + Object("completed", output) + "}";
}
std::string Incomplete(const std::string& output, const std::string& reason) {
  return "response.incomplete {\"response\":" +
         Object("incomplete", output, kUsage, "{\"reason\":\"" + reason + "\"}") + "}";
}

std::string Message(const std::string& text, const std::string& status = "completed",
                    const std::string& id = "msg_ID0", const std::string& logprobs = "") {
  return R"({"id":")" + id + R"(","type":"message","status":")" + status +
         R"(","role":"assistant","content":[{"type":"output_text","text":")" + text +
         R"(","annotations":[],"logprobs":[)" + logprobs + "]}]}";
}
std::string Reasoning(const std::string& text, const std::string& status = "completed") {
  return R"({"id":"rs_ID0","type":"reasoning","status":")" + status +
         R"(","summary":[{"type":"summary_text","text":")" + text + "\"}]}";
}
std::string FunctionCall(int index, const std::string& call_id, const std::string& name,
                         const std::string& arguments, const std::string& status = "completed") {
  return R"({"id":"fc_ID)" + std::to_string(index) + R"(","type":"function_call","status":")" +
         status + R"(","call_id":")" + call_id + R"(","name":")" + name + R"(","arguments":")" +
         arguments + "\"}";
}

// The events of one message with these deltas.
std::vector<std::string> MessageEvents(int index, const std::vector<std::string>& pieces,
                                       const std::string& status = "completed") {
  const std::string n = std::to_string(index);
  const std::string id = "msg_ID" + n;
  const std::string place =
      R"({"item_id":")" + id + R"(","output_index":)" + n + R"(,"content_index":0)";
  std::vector<std::string> events = {
      R"(response.output_item.added {"output_index":)" + n + R"(,"item":{"id":")" + id +
          R"(","type":"message","status":"in_progress","role":"assistant","content":[]}})",
      "response.content_part.added " + place +
          R"(,"part":{"type":"output_text","text":"","annotations":[],"logprobs":[]}})"};
  std::string text;
  for (const std::string& piece : pieces) {
    text += piece;
    events.push_back("response.output_text.delta " + place + R"(,"delta":")" + piece +
                     R"(","logprobs":[]})");
  }
  events.push_back("response.output_text.done " + place + R"(,"text":")" + text +
                   R"(","logprobs":[]})");
  events.push_back("response.content_part.done " + place +
                   R"(,"part":{"type":"output_text","text":")" + text +
                   R"(","annotations":[],"logprobs":[]}})");
  events.push_back(R"(response.output_item.done {"output_index":)" + n + R"(,"item":)" +
                   Message(text, status, id) + "}");
  return events;
}

TEST(ResponsesBody, PlainText) {
  EXPECT_EQ(EncodeBody({Text("Hel"), Text(R"(lo \"you\")"), kStop}),
            Object("completed", "[" + Message(R"(Hello \"you\")") + "]"));
}

TEST(ResponsesStream, PlainText) {
  EXPECT_EQ(
      Events(EncodeStream({Text("Hel"), Text(R"(lo\n)"), kStop})),
      Whole(MessageEvents(0, {"Hel", R"(lo\n)"}), Completed("[" + Message(R"(Hello\n)") + "]")));
}

TEST(ResponsesStream, ReasoningIsSentAsSummary) {  // decision 27
  const std::string place = R"({"item_id":"rs_ID0","output_index":0,"summary_index":0)";
  std::vector<std::string> events = {
      R"(response.output_item.added {"output_index":0,"item":{"id":"rs_ID0","type":"reasoning",)"
      R"("status":"in_progress","summary":[]}})",
      "response.reasoning_summary_part.added " + place +
          R"(,"part":{"type":"summary_text","text":""}})",
      "response.reasoning_summary_text.delta " + place + R"(,"delta":"h"})",
      "response.reasoning_summary_text.delta " + place + R"(,"delta":"m"})",
      "response.reasoning_summary_text.done " + place + R"(,"text":"hm"})",
      "response.reasoning_summary_part.done " + place +
          R"(,"part":{"type":"summary_text","text":"hm"}})",
      R"(response.output_item.done {"output_index":0,"item":)" + Reasoning("hm") + "}"};
  for (const std::string& event : MessageEvents(1, {"a"})) events.push_back(event);
  const std::string output =
      "[" + Reasoning("hm") + "," + Message("a", "completed", "msg_ID1") + "]";
  const std::vector<pb::Delta> deltas = {Think("h"), Think("m"), Text("a"), kStop};
  EXPECT_EQ(Events(EncodeStream(deltas)), Whole(events, Completed(output)));
  EXPECT_EQ(EncodeBody(deltas), Object("completed", output));
}

// ADR 0017. The done event and the response contain the sealed reasoning; the added event does not.
TEST(ResponsesStream, ReasoningIsSealedOnRequest) {
  CanonicalRequest request = SealingRequest();
  request.model =
      "ns/other";  // a fall-back answers: later requests to it must unseal the reasoning
  const std::vector<pb::Delta> deltas = {Think("h\\n"), Think("m"), Text("a"), kStop};
  const ReasoningSeal seal(static_cast<const ResponsesState&>(*request.state).seal_keys, "acme",
                           "ns/other");
  const auto unsealed = [&](std::string_view text) {
    constexpr std::string_view kMember = R"(],"encrypted_content":")";
    const size_t at = text.find(kMember);
    if (at == std::string::npos) return std::string("none");
    text.remove_prefix(at + kMember.size());
    return seal.Unseal(text.substr(0, text.find('"')), kStamp.created_s).value_or("not ours");
  };
  EXPECT_EQ(unsealed(EncodeBody(deltas, End(), request)), "h\\nm");
  const std::vector<std::string> events = Events(EncodeStream(deltas, End(), request));
  for (const std::string& event : events) {
    const bool has = event.starts_with("response.output_item.done {\"output_index\":0") ||
                     event.starts_with("response.completed");
    EXPECT_EQ(unsealed(event), has ? "h\\nm" : "none") << event;
  }
}

TEST(ResponsesStream, ConsecutiveFunctionCalls) {
  const auto call = [](int index, const std::string& id, const std::string& name,
                       const std::vector<std::string>& pieces) {
    const std::string n = std::to_string(index);
    const std::string place = R"({"item_id":"fc_ID)" + n + R"(","output_index":)" + n;
    std::vector<std::string> events = {R"(response.output_item.added {"output_index":)" + n +
                                       R"(,"item":)" +
                                       FunctionCall(index, id, name, "", "in_progress") + "}"};
    std::string all;
    for (const std::string& piece : pieces) {
      all += piece;
      events.push_back("response.function_call_arguments.delta " + place + R"(,"delta":")" + piece +
                       "\"}");
    }
    events.push_back("response.function_call_arguments.done " + place + R"(,"name":")" + name +
                     R"(","arguments":")" + all + "\"}");
    events.push_back(R"(response.output_item.done {"output_index":)" + n + R"(,"item":)" +
                     FunctionCall(index, id, name, all) + "}");
    return events;
  };
  std::vector<std::string> events = MessageEvents(0, {"let me see"});
  for (const auto& event : call(1, "call_a", "f", {R"({\"x\":)", "1}"})) events.push_back(event);
  // Clients parse the arguments, so missing ones are sent as an empty object.
  for (const auto& event : call(2, "call_b", "g", {"{}"})) events.push_back(event);
  const std::string output = "[" + Message("let me see") + "," +
                             FunctionCall(1, "call_a", "f", R"({\"x\":1})") + "," +
                             FunctionCall(2, "call_b", "g", "{}") + "]";
  const std::vector<pb::Delta> deltas = {
      Text("let me see"),    Call(0, "call_a", "f", ""), Call(0, "", "", R"({\"x\":)"),
      Call(0, "", "", "1}"), Call(1, "call_b", "g", ""), Finish(pb::FINISH_REASON_TOOL_CALLS)};
  EXPECT_EQ(Events(EncodeStream(deltas)), Whole(events, Completed(output)));
  EXPECT_EQ(EncodeBody(deltas), Object("completed", output));
}

TEST(ResponsesStream, RefusalEvents) {
  const std::string place = R"({"item_id":"msg_ID0","output_index":0,"content_index":0)";
  const std::string item =
      R"({"id":"msg_ID0","type":"message","status":"completed","role":"assistant",)"
      R"("content":[{"type":"refusal","refusal":"no"}]})";
  EXPECT_EQ(
      Events(EncodeStream({Refusal("n"), Refusal("o"), kStop})),
      Whole(
          {R"(response.output_item.added {"output_index":0,"item":{"id":"msg_ID0",)"
           R"("type":"message","status":"in_progress","role":"assistant","content":[]}})",
           "response.content_part.added " + place + R"(,"part":{"type":"refusal","refusal":""}})",
           "response.refusal.delta " + place + R"(,"delta":"n"})",
           "response.refusal.delta " + place + R"(,"delta":"o"})",
           "response.refusal.done " + place + R"(,"refusal":"no"})",
           "response.content_part.done " + place + R"(,"part":{"type":"refusal","refusal":"no"}})",
           R"(response.output_item.done {"output_index":0,"item":)" + item + "}"},
          Completed("[" + item + "]")));
}

TEST(ResponsesStream, TheTruncatedItemIsLastAndIncomplete) {
  const std::string output = "[" + Message("a", "incomplete") + "]";
  EXPECT_EQ(Events(EncodeStream({Text("a"), Finish(pb::FINISH_REASON_LENGTH)})),
            Whole(MessageEvents(0, {"a"}, "incomplete"), Incomplete(output, "max_output_tokens")));
  EXPECT_EQ(Events(EncodeStream({Text("a"), Finish(pb::FINISH_REASON_CONTENT_FILTER)})),
            Whole(MessageEvents(0, {"a"}, "incomplete"), Incomplete(output, "content_filter")));
  // The credit ends (decision 4).
  EXPECT_EQ(Events(EncodeStream({Text("a")}, End(true))),
            Whole(MessageEvents(0, {"a"}, "incomplete"), Incomplete(output, "max_output_tokens")));
  EXPECT_EQ(EncodeBody({Think("hm"), Finish(pb::FINISH_REASON_LENGTH)}),
            Object("incomplete", "[" + Reasoning("hm", "incomplete") + "]", kUsage,
                   R"({"reason":"max_output_tokens"})"));
  // Only the last item is incomplete.
  EXPECT_EQ(EncodeBody(
                {Think("hm"), Call(0, "call_a", "f", R"({\"x)"), Finish(pb::FINISH_REASON_LENGTH)}),
            Object("incomplete",
                   "[" + Reasoning("hm") + "," +
                       FunctionCall(1, "call_a", "f", R"({\"x)", "incomplete") + "]",
                   kUsage, R"({"reason":"max_output_tokens"})"));
}

TEST(ResponsesStream, EmptyOutput) {
  // max_tokens was 0 (decision 30).
  EXPECT_EQ(Events(EncodeStream({Finish(pb::FINISH_REASON_LENGTH)})),
            Whole({}, Incomplete("[]", "max_output_tokens")));
  // If the model generated nothing, the response has an empty message.
  EXPECT_EQ(Events(EncodeStream({kStop})),
            Whole(MessageEvents(0, {}), Completed("[" + Message("") + "]")));
  EXPECT_EQ(
      EncodeBody({Think("hm"), kStop}),
      Object("completed", "[" + Reasoning("hm") + "," + Message("", "completed", "msg_ID1") + "]"));
}

TEST(ResponsesStream, FailuresFollowCreatedAndKeepTheOutput) {  // decision 23
  const std::string error = R"({"code":"server_error","message":"The model backend failed."})";
  {
    // The stream fails before the first event, but keep-alives have begun it.
    const auto encoder = MakeResponsesStreamEncoder(Request(), kStamp);
    std::string out;
    encoder->KeepAlive(out);
    EXPECT_EQ(out, ": keep-alive\n\n");
    out.clear();
    encoder->OnError(Error{ErrorId::kUpstreamError}, out);
    EXPECT_EQ(Events(out), Whole({}, "response.failed {\"response\":" +
                                         Object("failed", "[]", "null", "null", error) + "}"));
  }
  const auto encoder = MakeResponsesStreamEncoder(Request(), kStamp);
  std::string out;
  encoder->OnStarted({}, out);
  encoder->OnDelta(Text("a"), out);
  encoder->OnError(Error{ErrorId::kUpstreamError}, out);
  std::vector<std::string> begun = MessageEvents(0, {"a"});
  begun.resize(3);  // no done events
  EXPECT_EQ(Events(out), Whole(begun, "response.failed {\"response\":" +
                                          Object("failed", "[" + Message("a", "incomplete") + "]",
                                                 "null", "null", error) +
                                          "}"));
}

TEST(ResponsesStream, FailuresHavePublishedCodes) {  // docs/design/wire.md 5.3
  const struct {
    ErrorId id;
    const char* code;
  } kCases[] = {
      {ErrorId::kServerError, "server_error"},
      {ErrorId::kUpstreamError, "server_error"},
      {ErrorId::kUpstreamUnreachable, "server_error"},
      {ErrorId::kServiceUnavailable, "server_error"},
      {ErrorId::kModelNotServing, "server_error"},
      {ErrorId::kRateLimited, "rate_limit_exceeded"},
      {ErrorId::kTokenLimited, "rate_limit_exceeded"},
      {ErrorId::kBadRequest, "invalid_prompt"},
      // Agents shorten their history when they see this code.
      {ErrorId::kContextLengthExceeded, "context_length_exceeded"},
      {ErrorId::kInsufficientCredits, "insufficient_credits"},
  };
  for (const auto& c : kCases) {
    const auto encoder = MakeResponsesStreamEncoder(Request(), kStamp);
    std::string out;
    encoder->OnError(Error{c.id, "what \"it\" was"}, out);
    EXPECT_NE(out.find(R"("status":"failed","error":{"code":")" + std::string(c.code) +
                       R"(","message":"what \"it\" was"})"),
              std::string::npos)
        << out;
  }
}

TEST(ResponsesStream, PublicLogprobs) {
  const std::string engine =
      R"({"content":[{"token":"a","logprob":-0.5,"bytes":[97],"extra":1,)"
      R"("top_logprobs":[{"token":"a","logprob":-0.5,"bytes":null},{"token":"é","logprob":-2}]}]})";
  const std::string token =
      R"({"token":"a","logprob":-0.5,"bytes":[97],"top_logprobs":[)"
      R"({"token":"a","logprob":-0.5,"bytes":[97]},{"token":"é","logprob":-2,"bytes":[195,169]}]})";
  const std::vector<pb::Delta> deltas = {Text("a", engine), Text("b", R"({"content":null})"),
                                         Text("a", engine), kStop};
  EXPECT_EQ(
      EncodeBody(deltas),
      Object("completed", "[" + Message("aba", "completed", "msg_ID0", token + "," + token) + "]"));
  const std::vector<std::string> events = Events(EncodeStream(deltas));
  const std::string place = R"({"item_id":"msg_ID0","output_index":0,"content_index":0)";
  EXPECT_EQ(events[4],
            "response.output_text.delta " + place + R"(,"delta":"a","logprobs":[)" + token + "]}");
  EXPECT_EQ(events[5], "response.output_text.delta " + place + R"(,"delta":"b","logprobs":[]})");
  EXPECT_EQ(events[7], "response.output_text.done " + place + R"(,"text":"aba","logprobs":[)" +
                           token + "," + token + "]}");
}

TEST(ResponsesStream, NamespacedFunctionsHaveTheirNamespace) {
  CanonicalRequest request = Request();
  const auto state = std::make_shared<ResponsesState>();
  state->echo_json = kEcho;
  state->namespaces = {{"f", "\"ns\""}};
  request.state = state;
  EXPECT_EQ(
      EncodeBody({Call(0, "call_a", "f", "{}"), kStop}, End(), request),
      Object("completed", R"([{"id":"fc_ID0","type":"function_call","status":"completed",)"
                          R"("call_id":"call_a","name":"f","namespace":"ns","arguments":"{}"}])"));
}

TEST(ResponsesStream, OtherChoicesAreIgnored) {
  pb::Delta other = Text("x");
  other.set_choice(1);
  EXPECT_EQ(EncodeBody({Text("a"), other, kStop}), Object("completed", "[" + Message("a") + "]"));
}

}  // namespace
}  // namespace tollgate::gateway
