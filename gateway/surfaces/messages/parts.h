// Pieces that the stream and the single body have in common.
#pragma once

#include <string>
#include <string_view>

#include "gateway/pipeline/surface.h"
#include "gateway/surfaces/shared/blocks.h"

namespace tollgate::gateway {

// What stands around the blocks of one answer.
class MessageFrame {
 public:
  MessageFrame(const CanonicalRequest& request, const AnswerStamp& stamp);

  // {"id":…,"type":"message","role":"assistant","model":…,"content":[
  const std::string& head() const { return head_; }
  // Stands where a vendor would prove that a block of thinking is its own. Clients send it back
  // with the block; nobody here looks at it (decisions.md 28).
  std::string Signature(int block) const;
  // Call for every block that begins.
  void Note(BlockKind kind);
  // "stop_reason":…,"stop_sequence":…
  void AppendStop(const BlockSequencer& blocks, const inference::v1::End& end,
                  std::string& out) const;
  // Whether the answer still needs an empty text block, so that clients find one: it has said
  // nothing, and neither did the budget end in the reasoning nor was nothing asked for (wire.md
  // 6.2, decisions.md 30 and 33).
  bool LacksText(const BlockSequencer& blocks, const inference::v1::End& end) const;

 private:
  std::string id_, head_;
  std::shared_ptr<SurfaceState> state_;
  bool nothing_asked_ = false;
  bool reasoned_ = false;
  bool refused_ = false;
};

// {"input_tokens":…}, always with all four counters; input_tokens is the part of the prompt that
// was neither read from nor written to a cache (decisions.md 8).
void AppendMessagesUsage(std::string& out, const tollgate::common::v1::Usage& usage);

// A tool_use block's input must be an object, whatever the engine sent for arguments: nothing is
// {}, an object is handed on as it is, and anything else becomes {"INVALID_JSON": text}, the public
// form of such a thing. Arguments are insides of JSON literals.

// Of the whole arguments. Half an object, where the budget ended in it, is no object.
std::string ToolInput(std::string_view arguments);

// The same piece by piece. Whether an object ends well is not known when it begins, so that one is
// always handed on.
class ToolInputPieces {
 public:
  // Each appends what is to go out now, as the inside of a JSON literal; perhaps nothing.
  void Add(std::string_view piece, std::string& out);
  void End(std::string& out);

 private:
  enum class Form : uint8_t { kUnknown, kObject, kOther };
  Form form_ = Form::kUnknown;
  std::string blanks_;  // until the form is known
};

}  // namespace tollgate::gateway
