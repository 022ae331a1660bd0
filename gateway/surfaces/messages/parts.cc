#include "gateway/surfaces/messages/parts.h"

#include <algorithm>

#include "common/json/json.h"
#include "gateway/surfaces/messages/request.h"

namespace tollgate::gateway {

namespace pb = inference::v1;

namespace {

// Deeper than what callers may send: models write it, and it is only handed on.
constexpr int kMaxInputDepth = 1000;

constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::string_view kWrapped = R"({"INVALID_JSON":")";
constexpr std::string_view kWrappedEnd = R"("})";

pb::FinishReason FinishReasonOf(const BlockSequencer& blocks, const pb::End& end) {
  if (blocks.finish_reason() != pb::FINISH_REASON_UNSPECIFIED) return blocks.finish_reason();
  return end.cut_by_credit() ? pb::FINISH_REASON_LENGTH : pb::FINISH_REASON_STOP;
}

// Engines also name strings of their own, for example a template's end mark.
bool WasAskedFor(const SurfaceState* state, const std::string& stop) {
  if (state == nullptr || stop.empty()) return false;
  const auto& asked = static_cast<const MessagesState*>(state)->stop_sequences;
  return std::find(asked.begin(), asked.end(), json::Unescape(stop)) != asked.end();
}

}  // namespace

MessageFrame::MessageFrame(const CanonicalRequest& request, const AnswerStamp& stamp)
    : id_(stamp.id), state_(request.state), nothing_asked_(request.max_tokens == 0) {
  head_ = R"({"id":"msg_)" + id_ + R"(","type":"message","role":"assistant","model":)" +
          json::Quoted(request.model) + R"(,"content":[)";
}

std::string MessageFrame::Signature(int block) const {
  return "sig_" + id_ + "_" + std::to_string(block);
}

void MessageFrame::Note(BlockKind kind) {
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
  } else if (WasAskedFor(state_.get(), stop)) {
    out += R"(stop_sequence","stop_sequence":")";
    out += stop;
    out += "\"";
    return;
  } else {
    out += "end_turn";
  }
  out += R"(","stop_sequence":null)";
}

bool MessageFrame::LacksText(const BlockSequencer& blocks, const pb::End& end) const {
  if (blocks.said_anything() || nothing_asked_) return false;
  return !(reasoned_ && FinishReasonOf(blocks, end) == pb::FINISH_REASON_LENGTH);
}

void AppendMessagesUsage(std::string& out, const tollgate::common::v1::Usage& usage) {
  const int64_t input = usage.prompt_tokens() - usage.cached_tokens() - usage.cache_write_tokens();
  out += R"({"input_tokens":)" + std::to_string(std::max<int64_t>(input, 0));
  out += R"(,"cache_creation_input_tokens":)" + std::to_string(usage.cache_write_tokens());
  out += R"(,"cache_read_input_tokens":)" + std::to_string(usage.cached_tokens());
  out += R"(,"output_tokens":)" + std::to_string(usage.completion_tokens());
  // Many engines do not tell; a zero would deny reasoning that the caller may have seen.
  if (usage.reasoning_tokens() > 0) {
    out += R"(,"output_tokens_details":{"thinking_tokens":)" +
           std::to_string(usage.reasoning_tokens()) + "}";
  }
  out += "}";
}

std::string ToolInput(std::string_view arguments) {
  std::string text = json::Unescape(arguments);
  if (text.find_first_not_of(kBlanks) == std::string::npos) return "{}";
  json::Limits limits;
  limits.max_depth = kMaxInputDepth;
  limits.allow_lone_surrogates = true;
  limits.allow_nul = true;
  const auto document = json::Document::ParseView(text, limits);
  if (document && document->root().is_object()) return text;
  std::string wrapped(kWrapped);
  wrapped += arguments;
  wrapped += kWrappedEnd;
  return wrapped;
}

void ToolInputPieces::Add(std::string_view piece, std::string& out) {
  std::string joined;
  if (form_ == Form::kUnknown) {
    blanks_ += piece;
    const std::string text = json::Unescape(blanks_);
    const size_t first = text.find_first_not_of(kBlanks);
    if (first == std::string::npos) return;
    form_ = text[first] == '{' ? Form::kObject : Form::kOther;
    if (form_ == Form::kOther) json::AppendEscaped(out, kWrapped);
    joined.swap(blanks_);
    piece = joined;
  }
  if (form_ == Form::kObject) {
    out += piece;
  } else {
    json::AppendEscaped(out, piece);
  }
}

void ToolInputPieces::End(std::string& out) {
  if (form_ == Form::kOther) json::AppendEscaped(out, kWrappedEnd);
}

}  // namespace tollgate::gateway
