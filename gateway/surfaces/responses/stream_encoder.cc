#include "gateway/surfaces/responses/encoders.h"
#include "gateway/surfaces/responses/response_object.h"

namespace tollgate::gateway {

namespace pb = inference::v1;

namespace {

// The event names of an item, and the members that differ between items.
struct Events {
  std::string_view delta, done;
  std::string_view part;        // prefix of the part's two events; empty for calls
  std::string_view part_index;  // the index member with its comma
  std::string_view full_text;   // the done event's member with the full text
};

Events EventsOf(BlockKind kind) {
  switch (kind) {
    case BlockKind::kReasoning:
      return {"response.reasoning_summary_text.delta", "response.reasoning_summary_text.done",
              "response.reasoning_summary_part", ",\"summary_index\":0", "text"};
    case BlockKind::kRefusal:
      return {"response.refusal.delta", "response.refusal.done", "response.content_part",
              ",\"content_index\":0", "refusal"};
    case BlockKind::kToolCall:
      return {"response.function_call_arguments.delta", "response.function_call_arguments.done", "",
              "", "arguments"};
    default:
      return {"response.output_text.delta", "response.output_text.done", "response.content_part",
              ",\"content_index\":0", "text"};
  }
}

class ResponsesStreamEncoder : public StreamEncoder, private OutputItems {
 public:
  ResponsesStreamEncoder(const CanonicalRequest& request, const ResponseStamp& stamp)
      : OutputItems(request, stamp), response_(request, stamp) {}

  void OnStarted(const pb::Started&, std::string& out) override {
    out_ = &out;
    SendCreated();
  }
  void OnDelta(const pb::Delta& delta, std::string& out) override {
    out_ = &out;
    OutputItems::OnDelta(delta);
  }
  void OnEnd(const pb::End& end, std::string& out) override;
  void OnError(const Error& error, std::string& out) override;

 private:
  void OnItemAdded(const OutputItem& item) override;
  void OnItemDelta(const OutputItem& item, std::string_view escaped,
                   std::string_view logprobs) override;
  void OnItemDone(const OutputItem& item, std::string_view item_json) override;

  // Sends response.created and response.in_progress once.
  void SendCreated();
  // event: T
  // data: {"type":"T","sequence_number":n,   … continued by Put up to End.
  void Begin(std::string_view type);
  void Put(std::string_view text) { *out_ += text; }
  void End() { Put("}\n\n"); }
  void PartEvent(const OutputItem& item, std::string_view which, std::string_view text,
                 std::string_view logprobs);

  const ResponseObject response_;
  std::string* out_ = nullptr;  // output of the current call
  bool created_ = false;
  int64_t sequence_ = 0;
  // Precomputed for the open item: the members that identify item and part, and the text before and
  // after the sequence number in its delta events, which are most of all events.
  std::string location_, delta_head_, delta_middle_;
};

void ResponsesStreamEncoder::Begin(std::string_view type) {
  Put("event: ");
  Put(type);
  Put("\ndata: {\"type\":\"");
  Put(type);
  Put("\",\"sequence_number\":");
  Put(std::to_string(sequence_++));
  Put(",");
}

void ResponsesStreamEncoder::SendCreated() {
  if (created_) return;
  created_ = true;
  for (const char* type : {"response.created", "response.in_progress"}) {
    Begin(type);
    Put("\"response\":");
    response_.AppendInProgress(*out_);
    End();
  }
}

void ResponsesStreamEncoder::PartEvent(const OutputItem& item, std::string_view which,
                                       std::string_view text, std::string_view logprobs) {
  Begin(std::string(EventsOf(item.kind).part) + std::string(which));
  Put(location_);
  Put(",\"part\":");
  Put(PartJson(item.kind, text, logprobs));
  End();
}

void ResponsesStreamEncoder::OnItemAdded(const OutputItem& item) {
  SendCreated();
  const Events events = EventsOf(item.kind);
  const std::string index = "\"output_index\":" + std::to_string(item.index);
  Begin("response.output_item.added");
  Put(index);
  Put(",\"item\":");
  Put(ItemJson(item, ItemStatus::kInProgress));
  End();
  location_ = "\"item_id\":\"" + item.id + "\"," + index;
  location_ += events.part_index;
  const std::string type(events.delta);
  delta_head_ = "event: " + type + "\ndata: {\"type\":\"" + type + "\",\"sequence_number\":";
  delta_middle_ = "," + location_ + ",\"delta\":\"";
  if (!events.part.empty()) PartEvent(item, ".added", {}, {});
}

void ResponsesStreamEncoder::OnItemDelta(const OutputItem& item, std::string_view escaped,
                                         std::string_view logprobs) {
  Put(delta_head_);
  Put(std::to_string(sequence_++));
  Put(delta_middle_);
  Put(escaped);
  if (item.kind != BlockKind::kText) return Put("\"}\n\n");
  Put("\",\"logprobs\":[");
  Put(logprobs);
  Put("]}\n\n");
}

void ResponsesStreamEncoder::OnItemDone(const OutputItem& item, std::string_view item_json) {
  const Events events = EventsOf(item.kind);
  Begin(events.done);
  Put(location_);
  if (item.kind == BlockKind::kToolCall) Put(",\"name\":\"" + item.name + "\"");
  Put(",\"");
  Put(events.full_text);
  Put("\":\"");
  Put(item.text);
  Put("\"");
  if (item.kind == BlockKind::kText) Put(",\"logprobs\":[" + item.logprobs + "]");
  End();
  if (!events.part.empty()) PartEvent(item, ".done", item.text, item.logprobs);
  Begin("response.output_item.done");
  Put("\"output_index\":" + std::to_string(item.index) + ",\"item\":");
  Put(item_json);
  End();
}

void ResponsesStreamEncoder::OnEnd(const pb::End& end, std::string& out) {
  out_ = &out;
  SendCreated();
  const Outcome outcome = Finish(end);
  Begin(outcome.completed ? "response.completed" : "response.incomplete");
  Put("\"response\":");
  response_.AppendEnded(out, outcome, Array(), end);
  End();
  Put("data: [DONE]\n\n");
}

// Does not send a done event for the open item: clients act on items that are done (decision 23).
void ResponsesStreamEncoder::OnError(const Error& error, std::string& out) {
  out_ = &out;
  SendCreated();
  Begin("response.failed");
  Put("\"response\":");
  response_.AppendFailed(out, error, Array());
  End();
  Put("data: [DONE]\n\n");
}

}  // namespace

std::unique_ptr<StreamEncoder> MakeResponsesStreamEncoder(const CanonicalRequest& request,
                                                          const ResponseStamp& stamp) {
  return std::make_unique<ResponsesStreamEncoder>(request, stamp);
}

}  // namespace tollgate::gateway
