// One answer as a line of blocks: reasoning, text, tool calls, one after the other and never
// overlapping. The state machine behind the surfaces whose answers are made of blocks or items
// (wire.md 7.4), for streams and for single bodies alike.
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>

#include "common/json/object_scanner.h"
#include "tollgate/inference/v1/inference.pb.h"

namespace tollgate::gateway {

enum class BlockKind : uint8_t { kReasoning, kText, kRefusal, kToolCall };

struct BlockStart {
  BlockKind kind = BlockKind::kText;
  // Of a tool call, each the inside of a JSON literal. An id is made up when the engine sent none.
  std::string_view id_json;
  std::string_view name_json;
};

// What a surface makes of the blocks.
class BlockHandler {
 public:
  virtual ~BlockHandler() = default;
  virtual void OnBlockStart(const BlockStart& start) = 0;
  // A piece of the open block, never empty: the inside of a JSON literal. logprobs_json is a JSON
  // value or empty, and stands beside text only.
  virtual void OnBlockPiece(std::string_view inside, std::string_view logprobs_json) = 0;
  virtual void OnBlockEnd() = 0;
};

// Turns the deltas of choice 0 into blocks. A tool call stays open until its arguments are one
// whole JSON object: what arrives before that and belongs elsewhere (engines interleave parallel
// calls) waits for its turn. Nothing is lost or said twice.
class BlockSequencer {
 public:
  explicit BlockSequencer(BlockHandler& handler) : handler_(handler) {}

  // Deltas of other choices are ignored.
  void OnDelta(const inference::v1::Delta& delta);
  // The answer has ended: lets out what waited and ends the open block. Once.
  void Finish();

  bool called_tools() const { return next_tool_ > 0; }
  // Text, a refusal or a tool call has been shown; reasoning does not count.
  bool said_anything() const { return said_anything_; }
  // UNSPECIFIED while the engine has not said.
  inference::v1::FinishReason finish_reason() const { return finish_reason_; }
  // Inside of a JSON literal; empty when no stop string matched, or the engine does not say.
  const std::string& stop_sequence_json() const { return stop_sequence_json_; }

 private:
  // A part of a delta: tool is -1 but for calls, the rest are insides of JSON literals.
  struct Piece {
    BlockKind kind;
    int32_t tool;
    std::string_view id, name, text, logprobs;
  };
  struct Waiting {
    BlockKind kind;
    int32_t tool;
    std::string id, name, text, logprobs;
  };

  void Take(const Piece& piece);
  void Show(const Piece& piece);
  // Lets what waits out as far as it may leave, or all of it.
  void LetOut(bool all);
  void EndBlock();
  bool MayLeave() const;

  BlockHandler& handler_;
  bool open_ = false;
  BlockKind kind_ = BlockKind::kText;
  int32_t tool_ = -1;      // the open block's, or the last one's
  int32_t next_tool_ = 0;  // tools below have been shown
  json::ObjectScanner arguments_;
  std::deque<Waiting> waiting_;
  bool said_anything_ = false;
  inference::v1::FinishReason finish_reason_ = inference::v1::FINISH_REASON_UNSPECIFIED;
  std::string stop_sequence_json_;
};

}  // namespace tollgate::gateway
