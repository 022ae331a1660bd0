#include "gateway/surfaces/messages/encoders.h"
#include "gateway/surfaces/messages/message_frame.h"
#include "gateway/surfaces/messages/tool_input.h"
#include "gateway/surfaces/shared/answer_cost.h"

namespace tollgate::gateway {

namespace pb = inference::v1;

namespace {

class MessagesBodyEncoder : public BodyEncoder, private BlockHandler {
 public:
  MessagesBodyEncoder(const CanonicalRequest& request, const ResponseStamp& stamp)
      : frame_(request, stamp), cost_(request), blocks_(*this), out_(frame_.head()) {}

  void OnDelta(const pb::Delta& delta) override { blocks_.OnDelta(delta); }
  std::string Finish(const pb::End& end) override;

 private:
  void OnBlockStart(const BlockStart& start) override;
  void OnBlockDelta(std::string_view escaped, std::string_view logprobs_json) override;
  void OnBlockEnd() override;

  MessageFrame frame_;
  const AnswerCost cost_;
  BlockSequencer blocks_;
  int index_ = -1;  // index of the open block, else of the last one
  BlockKind kind_ = BlockKind::kText;
  std::string arguments_;  // arguments of the open tool call
  std::string out_;
};

void MessagesBodyEncoder::OnBlockStart(const BlockStart& start) {
  frame_.RecordBlock(start.kind);
  kind_ = start.kind;
  if (++index_ > 0) out_ += ",";
  switch (start.kind) {
    case BlockKind::kReasoning:
      out_ += R"({"type":"thinking","thinking":")";
      break;
    case BlockKind::kText:
    case BlockKind::kRefusal:
      out_ += R"({"type":"text","text":")";
      break;
    case BlockKind::kToolCall:
      arguments_.clear();
      out_ += R"({"type":"tool_use","id":")";
      out_ += start.id_json;
      out_ += R"(","name":")";
      out_ += start.name_json;
      out_ += R"(","input":)";
      break;
  }
}

void MessagesBodyEncoder::OnBlockDelta(std::string_view escaped, std::string_view) {
  (kind_ == BlockKind::kToolCall ? arguments_ : out_) += escaped;
}

void MessagesBodyEncoder::OnBlockEnd() {
  switch (kind_) {
    case BlockKind::kReasoning:
      out_ += R"(","signature":")" + frame_.Signature(index_) + "\"}";
      break;
    case BlockKind::kText:
    case BlockKind::kRefusal:
      out_ += "\"}";
      break;
    case BlockKind::kToolCall:
      out_ += ToolInput(arguments_) + "}";
      break;
  }
}

std::string MessagesBodyEncoder::Finish(const pb::End& end) {
  blocks_.Finish();
  if (frame_.NeedsEmptyText(blocks_, end)) {
    OnBlockStart({BlockKind::kText, {}, {}});
    OnBlockEnd();
  }
  out_ += "],";
  frame_.AppendStop(blocks_, end, out_);
  out_ += R"(,"usage":)";
  AppendMessagesUsage(out_, end.usage(), cost_.Members(end));
  out_ += "}";
  return std::move(out_);
}

}  // namespace

std::unique_ptr<BodyEncoder> MakeMessagesBodyEncoder(const CanonicalRequest& request,
                                                     const ResponseStamp& stamp) {
  return std::make_unique<MessagesBodyEncoder>(request, stamp);
}

}  // namespace tollgate::gateway
