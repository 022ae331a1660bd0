#include "gateway/surfaces/messages/answer.h"
#include "gateway/surfaces/messages/parts.h"

namespace tollgate::gateway {

namespace pb = inference::v1;

namespace {

class MessagesFoldedAnswer : public FoldedAnswer, private BlockHandler {
 public:
  MessagesFoldedAnswer(const CanonicalRequest& request, const AnswerStamp& stamp)
      : frame_(request, stamp), blocks_(*this), out_(frame_.head()) {}

  void OnDelta(const pb::Delta& delta) override { blocks_.OnDelta(delta); }
  std::string Finish(const pb::End& end) override;

 private:
  void OnBlockStart(const BlockStart& start) override;
  void OnBlockPiece(std::string_view inside, std::string_view logprobs_json) override;
  void OnBlockEnd() override;

  MessageFrame frame_;
  BlockSequencer blocks_;
  int index_ = -1;  // the open block's, or the last one's
  BlockKind kind_ = BlockKind::kText;
  std::string arguments_;  // of an open tool call
  std::string out_;
};

void MessagesFoldedAnswer::OnBlockStart(const BlockStart& start) {
  frame_.Note(start.kind);
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

void MessagesFoldedAnswer::OnBlockPiece(std::string_view inside, std::string_view) {
  (kind_ == BlockKind::kToolCall ? arguments_ : out_) += inside;
}

void MessagesFoldedAnswer::OnBlockEnd() {
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

std::string MessagesFoldedAnswer::Finish(const pb::End& end) {
  blocks_.Finish();
  if (frame_.LacksText(blocks_, end)) {
    OnBlockStart({BlockKind::kText, {}, {}});
    OnBlockEnd();
  }
  out_ += "],";
  frame_.AppendStop(blocks_, end, out_);
  out_ += R"(,"usage":)";
  AppendMessagesUsage(out_, end.usage());
  out_ += "}";
  return std::move(out_);
}

}  // namespace

std::unique_ptr<FoldedAnswer> MakeMessagesFoldedAnswer(const CanonicalRequest& request,
                                                       const AnswerStamp& stamp) {
  return std::make_unique<MessagesFoldedAnswer>(request, stamp);
}

}  // namespace tollgate::gateway
