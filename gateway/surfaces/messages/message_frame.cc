#include "gateway/surfaces/messages/message_frame.h"

#include <algorithm>

#include "common/json/json.h"
#include "gateway/surfaces/messages/request.h"

namespace tollgate::gateway {

namespace pb = inference::v1;

namespace {

pb::FinishReason FinishReasonOf(const BlockSequencer& blocks, const pb::End& end) {
  if (blocks.finish_reason() != pb::FINISH_REASON_UNSPECIFIED) return blocks.finish_reason();
  return end.cut_by_credit() ? pb::FINISH_REASON_LENGTH : pb::FINISH_REASON_STOP;
}

// Engines also report stop strings of their own, for example a template's end marker.
bool IsRequestedStop(const SurfaceState* state, const std::string& stop) {
  if (state == nullptr || stop.empty()) return false;
  const auto& requested = static_cast<const MessagesState*>(state)->stop_sequences;
  return std::find(requested.begin(), requested.end(), json::Unescape(stop)) != requested.end();
}

}  // namespace

MessageFrame::MessageFrame(const CanonicalRequest& request, const ResponseStamp& stamp)
    : id_(stamp.id), state_(request.state), max_tokens_is_zero_(request.max_tokens == 0) {
  head_ = R"({"id":"msg_)" + id_ + R"(","type":"message","role":"assistant","model":)" +
          json::Quoted(request.model) + R"(,"content":[)";
}

std::string MessageFrame::Signature(int block) const {
  return "sig_" + id_ + "_" + std::to_string(block);
}

void MessageFrame::RecordBlock(BlockKind kind) {
  if (kind == BlockKind::kReasoning) reasoned_ = true;
  if (kind == BlockKind::kRefusal) refused_ = true;
}

void MessageFrame::AppendStop(const BlockSequencer& blocks, const pb::End& end,
                              std::string& out) const {
  const pb::FinishReason finish = FinishReasonOf(blocks, end);
  const std::string& stop = blocks.stop_sequence_json();
  out += R"("stop_reason":")";
  if (finish == pb::FINISH_REASON_LENGTH) {
    out += "max_tokens";
  } else if (finish == pb::FINISH_REASON_CONTENT_FILTER || refused_) {
    out += "refusal";
  } else if (blocks.called_tools()) {
    out += "tool_use";
  } else if (IsRequestedStop(state_.get(), stop)) {
    out += R"(stop_sequence","stop_sequence":")";
    out += stop;
    out += "\"";
    return;
  } else {
    out += "end_turn";
  }
  out += R"(","stop_sequence":null)";
}

bool MessageFrame::NeedsEmptyText(const BlockSequencer& blocks, const pb::End& end) const {
  if (blocks.has_output() || max_tokens_is_zero_) return false;
  return !(reasoned_ && FinishReasonOf(blocks, end) == pb::FINISH_REASON_LENGTH);
}

void AppendMessagesUsage(std::string& out, const tollgate::common::v1::Usage& usage,
                         std::string_view more) {
  const int64_t input = usage.prompt_tokens() - usage.cached_tokens() - usage.cache_write_tokens();
  out += R"({"input_tokens":)" + std::to_string(std::max<int64_t>(input, 0));
  out += R"(,"cache_creation_input_tokens":)" + std::to_string(usage.cache_write_tokens());
  out += R"(,"cache_read_input_tokens":)" + std::to_string(usage.cached_tokens());
  out += R"(,"output_tokens":)" + std::to_string(usage.completion_tokens());
  // Many engines do not report the count, and 0 would contradict the reasoning that was sent.
  if (usage.reasoning_tokens() > 0) {
    out += R"(,"output_tokens_details":{"thinking_tokens":)" +
           std::to_string(usage.reasoning_tokens()) + "}";
  }
  out += more;
  out += "}";
}

}  // namespace tollgate::gateway
