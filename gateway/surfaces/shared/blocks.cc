#include "gateway/surfaces/shared/blocks.h"

#include <algorithm>

#include "common/base/id.h"

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

void BlockSequencer::Show(const Waiting& piece) {
  const bool same = open_ && kind_ == piece.kind && tool_ == piece.tool;
  if (!same) {
    // What belongs to a call that has ended is not JSON any more: there is no place for it.
    if (piece.kind == BlockKind::kToolCall && piece.tool < next_tool_) return;
    EndBlock();
    BlockStart start{piece.kind, piece.id, piece.name};
    std::string made_up;
    if (piece.kind == BlockKind::kToolCall) {
      next_tool_ = piece.tool + 1;
      arguments_ = json::ObjectScanner();
      if (piece.id.empty()) {
        made_up = "call_" + RandomBase62(24);
        start.id_json = made_up;
      }
    }
    open_ = true;
    kind_ = piece.kind;
    tool_ = piece.tool;
    handler_.OnBlockStart(start);
  }
  said_anything_ = said_anything_ || piece.kind != BlockKind::kReasoning;
  if (piece.kind == BlockKind::kToolCall) arguments_.Add(piece.text);
  if (!piece.text.empty()) handler_.OnBlockPiece(piece.text, piece.logprobs);
}

void BlockSequencer::LetOut(bool all) {
  while (!waiting_.empty() && (all || MayLeave())) {
    const Waiting next = std::move(waiting_.front());
    waiting_.pop_front();
    Show(next);
  }
}

void BlockSequencer::Take(Waiting piece) {
  const bool same = open_ && kind_ == piece.kind && tool_ == piece.tool;
  if (same || (waiting_.empty() && MayLeave())) {
    Show(piece);
    LetOut(false);
    return;
  }
  if (piece.kind == BlockKind::kToolCall && piece.tool < next_tool_) return;
  // Joined with what waits of the same block, so that each call is in one piece.
  const auto begin = waiting_.begin();
  auto found = waiting_.end();
  if (piece.kind == BlockKind::kToolCall) {
    found = std::find_if(begin, waiting_.end(), [&piece](const Waiting& other) {
      return other.kind == BlockKind::kToolCall && other.tool == piece.tool;
    });
  } else if (!waiting_.empty() && waiting_.back().kind == piece.kind && piece.logprobs.empty()) {
    found = waiting_.end() - 1;
  }
  if (found == waiting_.end()) {
    waiting_.push_back(std::move(piece));
  } else {
    found->text += piece.text;
  }
}

void BlockSequencer::OnDelta(const pb::Delta& delta) {
  if (delta.choice() != 0) return;
  const auto text = [&](BlockKind kind, const std::string& inside, const std::string& logprobs) {
    if (!inside.empty()) Take({kind, -1, {}, {}, inside, logprobs});
  };
  text(BlockKind::kReasoning, delta.reasoning_json(), {});
  text(BlockKind::kText, delta.content_json(), delta.logprobs_json());
  text(BlockKind::kRefusal, delta.refusal_json(), {});
  for (const pb::ToolCallDelta& call : delta.tool_calls()) {
    Take({BlockKind::kToolCall, call.index(), call.id_json(), call.name_json(),
          call.arguments_json(), {}});
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
