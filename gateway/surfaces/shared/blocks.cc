#include "gateway/surfaces/shared/blocks.h"

#include <algorithm>

#include "gateway/surfaces/shared/function_tools.h"

namespace tollgate::gateway {

namespace pb = inference::v1;

// Whether a block of another kind may follow now.
bool BlockSequencer::MayLeave() const {
  return !open_ || kind_ != BlockKind::kToolCall || arguments_.complete();
}

void BlockSequencer::EndBlock() {
  if (!open_) return;
  open_ = false;
  handler_.OnBlockEnd();
}

void BlockSequencer::Show(const Piece& piece) {
  const bool call = piece.kind == BlockKind::kToolCall;
  if (!open_ || kind_ != piece.kind || tool_ != piece.tool) {
    // What belongs to a call that has ended is not JSON any more: there is no place for it.
    if (call && piece.tool < next_tool_) return;
    EndBlock();
    BlockStart start{piece.kind, piece.id, piece.name};
    std::string made_up;
    if (call) {
      next_tool_ = piece.tool + 1;
      arguments_ = json::ObjectScanner();
      if (piece.id.empty()) {
        made_up = MakeToolCallId();
        start.id_json = made_up;
      }
    }
    open_ = true;
    kind_ = piece.kind;
    tool_ = piece.tool;
    handler_.OnBlockStart(start);
  }
  if (piece.kind != BlockKind::kReasoning) said_anything_ = true;
  if (call) arguments_.Add(piece.text);
  if (!piece.text.empty()) handler_.OnBlockPiece(piece.text, piece.logprobs);
}

void BlockSequencer::LetOut(bool all) {
  while (!waiting_.empty() && (all || MayLeave())) {
    const Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    Show({next.kind, next.tool, next.id, next.name, next.text, next.logprobs});
  }
}

void BlockSequencer::Take(const Piece& piece) {
  const bool same = open_ && kind_ == piece.kind && tool_ == piece.tool;
  if (same || (waiting_.empty() && MayLeave())) {
    Show(piece);
    LetOut(false);
    return;
  }
  // Joined with what waits of the same block, so that each call is in one piece.
  auto found = waiting_.end();
  if (piece.kind == BlockKind::kToolCall) {
    if (piece.tool < next_tool_) return;
    found = std::find_if(waiting_.begin(), waiting_.end(), [&piece](const Waiting& other) {
      return other.kind == BlockKind::kToolCall && other.tool == piece.tool;
    });
  } else if (!waiting_.empty() && waiting_.back().kind == piece.kind && piece.logprobs.empty()) {
    found = waiting_.end() - 1;
  }
  if (found == waiting_.end()) {
    waiting_.push_back({piece.kind, piece.tool, std::string(piece.id), std::string(piece.name),
                        std::string(piece.text), std::string(piece.logprobs)});
  } else {
    found->text += piece.text;
  }
}

void BlockSequencer::OnDelta(const pb::Delta& delta) {
  if (delta.choice() != 0) return;
  const auto text = [&](BlockKind kind, std::string_view inside, std::string_view logprobs) {
    if (!inside.empty()) Take({kind, -1, {}, {}, inside, logprobs});
  };
  text(BlockKind::kReasoning, delta.reasoning_json(), {});
  text(BlockKind::kText, delta.content_json(), delta.logprobs_json());
  text(BlockKind::kRefusal, delta.refusal_json(), {});
  for (const pb::ToolCallDelta& call : delta.tool_calls()) {
    Take({BlockKind::kToolCall,
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
  LetOut(true);
  EndBlock();
}

}  // namespace tollgate::gateway
