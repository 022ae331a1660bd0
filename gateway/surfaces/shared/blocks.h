// Turns the deltas of a response into a sequence of blocks (reasoning, text, tool calls) that never
// overlap. Used by the stream and body encoders of the surfaces that respond with blocks or items
// (docs/design/wire.md 7.4).
#pragma once

#include <cstdint>
#include <deque>
#include <string>
#include <string_view>
#include <unordered_map>

#include "common/json/object_scanner.h"
#include "tollgate/inference/v1/inference.pb.h"

namespace tollgate::gateway {

enum class BlockKind : uint8_t { kReasoning, kText, kRefusal, kToolCall };

struct BlockStart {
  BlockKind kind = BlockKind::kText;
  // Set for tool calls only; contents of JSON strings. The id is generated if the engine sent none.
  std::string_view id_json;
  std::string_view name_json;
};

// Receives the blocks. Implemented by the encoders.
class BlockHandler {
 public:
  virtual ~BlockHandler() = default;
  virtual void OnBlockStart(const BlockStart& start) = 0;
  // Receives more text of the open block, never empty: the contents of a JSON string. logprobs_json
  // is a JSON value, or empty; used for text blocks only.
  virtual void OnBlockDelta(std::string_view escaped, std::string_view logprobs_json) = 0;
  virtual void OnBlockEnd() = 0;
};

// Puts the deltas of choice 0 into sequence. A tool call stays open until its arguments are a
// complete JSON object. Until then, deltas of other blocks are buffered, because engines interleave
// parallel calls. Nothing is lost or sent twice.
class BlockSequencer {
 public:
  explicit BlockSequencer(BlockHandler& handler) : handler_(handler) {}

  // Deltas of other choices are ignored.
  void OnDelta(const inference::v1::Delta& delta);
  // Call at the end of the response, once: flushes the buffer and ends the open block.
  void Finish();

  bool called_tools() const { return next_tool_ > 0; }
  // Whether there was text, a refusal or a tool call; reasoning does not count.
  bool has_output() const { return has_output_; }
  // UNSPECIFIED until the engine has sent one.
  inference::v1::FinishReason finish_reason() const { return finish_reason_; }
  // Contents of a JSON string; empty when no stop string matched or the engine does not report it.
  const std::string& stop_sequence_json() const { return stop_sequence_json_; }

 private:
  // A part of a delta. tool is -1 except for calls; the strings are contents of JSON strings.
  struct Piece {
    BlockKind kind;
    int32_t tool;
    std::string_view id, name, text, logprobs;
  };
  struct Buffered {
    BlockKind kind;
    int32_t tool;
    std::string id, name, text, logprobs;
  };

  // Emits the piece or buffers it.
  void Accept(const Piece& piece);
  void Emit(const Piece& piece);
  // Emits buffered pieces as far as possible, or all of them.
  void Flush(bool all);
  void EndBlock();
  bool CanStartBlock() const;

  BlockHandler& handler_;
  bool open_ = false;
  BlockKind kind_ = BlockKind::kText;
  int32_t tool_ = -1;      // call of the open block, else of the last one
  int32_t next_tool_ = 0;  // calls below this index have been emitted
  json::ObjectScanner arguments_;
  std::deque<Buffered> buffered_;
  // The calls in buffered_ by tool, because an engine may interleave many pieces. A deque does not
  // move its elements when elements are added or removed at its ends.
  std::unordered_map<int32_t, Buffered*> buffered_calls_;
  bool has_output_ = false;
  inference::v1::FinishReason finish_reason_ = inference::v1::FINISH_REASON_UNSPECIFIED;
  std::string stop_sequence_json_;
};

}  // namespace tollgate::gateway
