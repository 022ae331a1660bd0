// The parts of a Messages response outside its content blocks.
#pragma once

#include <string>
#include <string_view>

#include "gateway/pipeline/surface.h"
#include "gateway/surfaces/shared/blocks.h"

namespace tollgate::gateway {

// The message object without its content blocks.
class MessageFrame {
 public:
  MessageFrame(const CanonicalRequest& request, const ResponseStamp& stamp);

  // {"id":…,"type":"message","role":"assistant","model":…,"content":[
  const std::string& head() const { return head_; }
  // The signature of a thinking block. The vendor authenticates its own blocks with it. Clients
  // send it back; the gateway ignores it (decision 28).
  std::string Signature(int block) const;
  // Call this for every block that starts.
  void RecordBlock(BlockKind kind);
  // Appends "stop_reason":…,"stop_sequence":….
  void AppendStop(const BlockSequencer& blocks, const inference::v1::End& end,
                  std::string& out) const;
  // Whether to add an empty text block because the message has no other output. False when
  // max_tokens was 0 or ended the reasoning (docs/design/wire.md 6.2, decisions 30 and 33).
  bool NeedsEmptyText(const BlockSequencer& blocks, const inference::v1::End& end) const;

 private:
  std::string id_, head_;
  std::shared_ptr<SurfaceState> state_;
  bool max_tokens_is_zero_ = false;
  bool reasoned_ = false;
  bool refused_ = false;
};

// Appends {"input_tokens":…} with all four counters. input_tokens is the part of the prompt that
// was neither read from nor written to a cache (decision 8). more: further members (answer_cost.h).
void AppendMessagesUsage(std::string& out, const tollgate::common::v1::Usage& usage,
                         std::string_view more = {});

}  // namespace tollgate::gateway
