#include "gateway/surfaces/shared/blocks.h"

#include "gateway/surfaces/shared/function_tools.h"

namespace tollgate::gateway {

namespace pb = inference::v1;

// Whether the open block may end so that another one can start.
bool BlockSequencer::CanStartBlock() const {
  return !open_ || kind_ != BlockKind::kToolCall || arguments_.complete();
}

void BlockSequencer::EndBlock() {
  if (!open_) return;
  open_ = false;
  handler_.OnBlockEnd();
}

void BlockSequencer::Emit(const Piece& piece) {
  const bool call = piece.kind == BlockKind::kToolCall;
  if (!open_ || kind_ != piece.kind || tool_ != piece.tool) {
    // Drops more arguments for a call that has ended: they would make its JSON invalid.
    if (call && piece.tool < next_tool_) return;
    EndBlock();
    BlockStart start{piece.kind, piece.id, piece.name};
    std::string generated_id;
    if (call) {
      next_tool_ = piece.tool + 1;
      arguments_ = json::ObjectScanner();
      if (piece.id.empty()) {
        generated_id = MakeToolCallId();
        start.id_json = generated_id;
      }
    }
    open_ = true;
    kind_ = piece.kind;
    tool_ = piece.tool;
    handler_.OnBlockStart(start);
  }
  if (piece.kind != BlockKind::kReasoning) has_output_ = true;
  if (call) arguments_.Add(piece.text);
  if (!piece.text.empty()) handler_.OnBlockDelta(piece.text, piece.logprobs);
}

void BlockSequencer::Flush(bool all) {
  while (!buffered_.empty() && (all || CanStartBlock())) {
    const Buffered next = std::move(buffered_.front());
    buffered_.pop_front();
    if (next.kind == BlockKind::kToolCall) buffered_calls_.erase(next.tool);
    Emit({next.kind, next.tool, next.id, next.name, next.text, next.logprobs});
  }
}

void BlockSequencer::Accept(const Piece& piece) {
  const bool same = open_ && kind_ == piece.kind && tool_ == piece.tool;
  if (same || (buffered_.empty() && CanStartBlock())) {
    Emit(piece);
    Flush(false);
    return;
  }
  // Joins the piece with the buffered piece of the same block, so that each call stays one block.
  Buffered* same_block = nullptr;
  const bool call = piece.kind == BlockKind::kToolCall;
  if (call) {
    if (piece.tool < next_tool_) return;
    const auto found = buffered_calls_.find(piece.tool);
    if (found != buffered_calls_.end()) same_block = found->second;
  } else if (!buffered_.empty() && buffered_.back().kind == piece.kind && piece.logprobs.empty()) {
    same_block = &buffered_.back();
  }
  if (same_block != nullptr) {
    same_block->text += piece.text;
    return;
  }
  buffered_.push_back({piece.kind, piece.tool, std::string(piece.id), std::string(piece.name),
                       std::string(piece.text), std::string(piece.logprobs)});
  if (call) buffered_calls_[piece.tool] = &buffered_.back();
}

void BlockSequencer::OnDelta(const pb::Delta& delta) {
  if (delta.choice() != 0) return;
  const auto text = [&](BlockKind kind, std::string_view escaped, std::string_view logprobs) {
    if (!escaped.empty()) Accept({kind, -1, {}, {}, escaped, logprobs});
  };
  text(BlockKind::kReasoning, delta.reasoning_json(), {});
  text(BlockKind::kText, delta.content_json(), delta.logprobs_json());
  text(BlockKind::kRefusal, delta.refusal_json(), {});
  for (const pb::ToolCallDelta& call : delta.tool_calls()) {
    Accept({BlockKind::kToolCall,
            call.index(),
            call.id_json(),
            call.name_json(),
            call.arguments_json(),
            {}});
  }
  if (delta.finish_reason() != pb::FINISH_REASON_UNSPECIFIED) {
    finish_reason_ = delta.finish_reason();
  }
  if (!delta.stop_sequence_json().empty()) stop_sequence_json_ = delta.stop_sequence_json();
}

void BlockSequencer::Finish() {
  Flush(true);
  EndBlock();
}

}  // namespace tollgate::gateway
