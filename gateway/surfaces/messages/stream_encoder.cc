#include "gateway/envelopes/stream_error.h"
#include "gateway/surfaces/messages/encoders.h"
#include "gateway/surfaces/messages/message_frame.h"
#include "gateway/surfaces/messages/tool_input.h"
#include "gateway/surfaces/shared/answer_cost.h"

namespace tollgate::gateway {

namespace pb = inference::v1;

namespace {

class MessagesStreamEncoder : public StreamEncoder, private BlockHandler {
 public:
  MessagesStreamEncoder(const CanonicalRequest& request, const ResponseStamp& stamp)
      : frame_(request, stamp), cost_(request), blocks_(*this) {}

  void OnStarted(const pb::Started& started, std::string& out) override;
  void OnDelta(const pb::Delta& delta, std::string& out) override;
  void OnEnd(const pb::End& end, std::string& out) override;
  void OnError(const Error& error, std::string& out) override { out += MessagesStreamError(error); }
  void KeepAlive(std::string& out) override { out += "event: ping\ndata: {\"type\":\"ping\"}\n\n"; }

 private:
  void OnBlockStart(const BlockStart& start) override;
  void OnBlockDelta(std::string_view escaped, std::string_view logprobs_json) override;
  void OnBlockEnd() override;

  void StartBlock(std::string_view content_block);
  void AppendDelta(std::string_view escaped);
  // The start of a content_block_delta, up to its value.
  std::string DeltaHead(std::string_view kind_and_member) const;

  MessageFrame frame_;
  const AnswerCost cost_;
  BlockSequencer blocks_;
  bool started_ = false;
  int index_ = -1;  // index of the open block, else of the last one
  BlockKind kind_ = BlockKind::kText;
  std::string delta_head_;      // for the open block
  StreamedToolInput input_;     // for an open tool_use block
  std::string* out_ = nullptr;  // output of the current call
};

void MessagesStreamEncoder::OnStarted(const pb::Started& started, std::string& out) {
  if (started_) return;
  started_ = true;
  // 0 if the engine reports the prompt size only at the end. message_delta has the final values.
  tollgate::common::v1::Usage usage;
  usage.set_prompt_tokens(started.prompt_tokens());
  usage.set_cached_tokens(started.cached_tokens());
  usage.set_cache_write_tokens(started.cache_write_tokens());
  out += "event: message_start\ndata: {\"type\":\"message_start\",\"message\":";
  out += frame_.head();
  out += R"(],"stop_reason":null,"stop_sequence":null,"usage":)";
  AppendMessagesUsage(out, usage);
  out += "}}\n\n";
}

void MessagesStreamEncoder::OnDelta(const pb::Delta& delta, std::string& out) {
  OnStarted({}, out);
  out_ = &out;
  blocks_.OnDelta(delta);
}

std::string MessagesStreamEncoder::DeltaHead(std::string_view kind_and_member) const {
  std::string head =
      "event: content_block_delta\ndata: {\"type\":\"content_block_delta\",\"index\":";
  head += std::to_string(index_);
  head += R"(,"delta":{"type":")";
  head += kind_and_member;
  head += "\":\"";
  return head;
}

void MessagesStreamEncoder::StartBlock(std::string_view content_block) {
  ++index_;
  *out_ += "event: content_block_start\ndata: {\"type\":\"content_block_start\",\"index\":";
  *out_ += std::to_string(index_);
  *out_ += R"(,"content_block":{"type":")";
  *out_ += content_block;
  *out_ += "}}\n\n";
}

void MessagesStreamEncoder::OnBlockStart(const BlockStart& start) {
  frame_.RecordBlock(start.kind);
  kind_ = start.kind;
  switch (start.kind) {
    case BlockKind::kReasoning:  // a thinking block
      StartBlock(R"(thinking","thinking":"","signature":"")");
      delta_head_ = DeltaHead(R"(thinking_delta","thinking)");
      break;
    case BlockKind::kText:
    case BlockKind::kRefusal:
      StartBlock(R"(text","text":"")");
      delta_head_ = DeltaHead(R"(text_delta","text)");
      break;
    case BlockKind::kToolCall: {
      std::string block = R"(tool_use","id":")";
      block += start.id_json;
      block += R"(","name":")";
      block += start.name_json;
      block += R"(","input":{})";
      StartBlock(block);
      input_ = StreamedToolInput();
      delta_head_ = DeltaHead(R"(input_json_delta","partial_json)");
      break;
    }
  }
}

void MessagesStreamEncoder::AppendDelta(std::string_view escaped) {
  *out_ += delta_head_;
  *out_ += escaped;
  *out_ += "\"}}\n\n";
}

void MessagesStreamEncoder::OnBlockDelta(std::string_view escaped, std::string_view) {
  if (kind_ != BlockKind::kToolCall) return AppendDelta(escaped);
  std::string piece;
  input_.Add(escaped, piece);
  if (!piece.empty()) AppendDelta(piece);
}

void MessagesStreamEncoder::OnBlockEnd() {
  if (kind_ == BlockKind::kReasoning) {  // the signature of a thinking block
    delta_head_ = DeltaHead(R"(signature_delta","signature)");
    AppendDelta(frame_.Signature(index_));
  } else if (kind_ == BlockKind::kToolCall) {
    std::string piece;
    input_.End(piece);
    if (!piece.empty()) AppendDelta(piece);
  }
  *out_ += "event: content_block_stop\ndata: {\"type\":\"content_block_stop\",\"index\":";
  *out_ += std::to_string(index_);
  *out_ += "}\n\n";
}

void MessagesStreamEncoder::OnEnd(const pb::End& end, std::string& out) {
  OnStarted({}, out);
  out_ = &out;
  blocks_.Finish();
  if (frame_.NeedsEmptyText(blocks_, end)) {
    OnBlockStart({BlockKind::kText, {}, {}});
    OnBlockEnd();
  }
  out += "event: message_delta\ndata: {\"type\":\"message_delta\",\"delta\":{";
  frame_.AppendStop(blocks_, end, out);
  out += R"(},"usage":)";
  AppendMessagesUsage(out, end.usage(), cost_.Members(end));
  out += "}\n\nevent: message_stop\ndata: {\"type\":\"message_stop\"}\n\n";
}

}  // namespace

std::unique_ptr<StreamEncoder> MakeMessagesStreamEncoder(const CanonicalRequest& request,
                                                         const ResponseStamp& stamp) {
  return std::make_unique<MessagesStreamEncoder>(request, stamp);
}

}  // namespace tollgate::gateway
