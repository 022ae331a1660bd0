#include "gateway/surfaces/responses/items.h"

#include "gateway/surfaces/responses/logprobs.h"

namespace tollgate::gateway {

namespace pb = inference::v1;

namespace {

std::string_view Name(ItemStatus status) {
  switch (status) {
    case ItemStatus::kInProgress:
      return "in_progress";
    case ItemStatus::kCompleted:
      return "completed";
    case ItemStatus::kIncomplete:
      return "incomplete";
  }
  return "completed";
}

std::string_view IdPrefix(BlockKind kind) {
  switch (kind) {
    case BlockKind::kReasoning:
      return "rs_";
    case BlockKind::kToolCall:
      return "fc_";
    default:
      return "msg_";
  }
}

const ResponsesState& StateOf(const std::shared_ptr<SurfaceState>& state) {
  return static_cast<const ResponsesState&>(*state);
}

}  // namespace

std::string PartJson(BlockKind kind, std::string_view text, std::string_view logprobs) {
  std::string out;
  out.reserve(96 + text.size() + logprobs.size());
  switch (kind) {
    case BlockKind::kReasoning:
      out += R"({"type":"summary_text","text":")";
      break;
    case BlockKind::kRefusal:
      out += R"({"type":"refusal","refusal":")";
      break;
    default:
      out += R"({"type":"output_text","text":")";
      out += text;
      out += R"(","annotations":[],"logprobs":[)";
      out += logprobs;
      return out + "]}";
  }
  out += text;
  return out + "\"}";
}

std::string ItemJson(const OutputItem& item, ItemStatus status) {
  const bool begun = status == ItemStatus::kInProgress;
  std::string out;
  out.reserve(256 + item.text.size() + item.logprobs.size());
  out += "{\"id\":\"" + item.id + "\",\"type\":";
  const auto with_status = [&](std::string_view rest) {
    out += "\"status\":\"";
    out += Name(status);
    out += rest;
  };
  switch (item.kind) {
    case BlockKind::kReasoning:
      out += R"("reasoning",)";
      with_status(R"(","summary":[)");
      break;
    case BlockKind::kToolCall:
      out += R"("function_call",)";
      with_status(R"(","call_id":")");
      out += item.call_id + "\",\"name\":\"" + item.name + "\"";
      if (!item.name_space.empty()) out += ",\"namespace\":" + item.name_space;
      out += ",\"arguments\":\"";
      if (!begun) out += item.text;
      return out + "\"}";
    default:
      out += R"("message",)";
      with_status(R"(","role":"assistant","content":[)");
  }
  if (!begun) out += PartJson(item.kind, item.text, item.logprobs);
  if (item.encrypted_content.empty()) return out + "]}";
  return out + R"(],"encrypted_content":")" + item.encrypted_content + "\"}";
}

OutputItems::OutputItems(const CanonicalRequest& request, const ResponseStamp& stamp)
    : state_(request.state),
      namespaces_(StateOf(state_).namespaces),
      seal_(StateOf(state_).seal_keys, StateOf(state_).workspace, request.model),
      id_(stamp.id),
      created_s_(stamp.created_s) {}

void OutputItems::OnBlockStart(const BlockStart& start) {
  Close(ItemStatus::kCompleted);
  open_ = true;
  item_ = OutputItem();
  item_.kind = start.kind;
  item_.index = count_++;
  item_.id = std::string(IdPrefix(start.kind)) + id_ + std::to_string(item_.index);
  if (start.kind == BlockKind::kToolCall) {
    item_.call_id = start.id_json;
    item_.name = start.name_json;
    const auto found =
        namespaces_.empty() ? namespaces_.end() : namespaces_.find(json::Unescape(start.name_json));
    if (found != namespaces_.end()) item_.name_space = found->second;
  }
  OnItemAdded(item_);
}

void OutputItems::OnBlockDelta(std::string_view escaped, std::string_view logprobs_json) {
  item_.text += escaped;
  std::string logprobs;
  if (!logprobs_json.empty()) logprobs = ResponseLogprobs(logprobs_json);
  if (!logprobs.empty()) {
    if (!item_.logprobs.empty()) item_.logprobs += ",";
    item_.logprobs += logprobs;
  }
  OnItemDelta(item_, escaped, logprobs);
}

void OutputItems::Close(ItemStatus status) {
  if (!open_) return;
  // Clients parse the arguments, so a call without arguments gets an empty object.
  if (item_.kind == BlockKind::kToolCall && item_.text.empty() &&
      status == ItemStatus::kCompleted) {
    OnBlockDelta("{}", {});
  }
  open_ = false;
  if (item_.kind == BlockKind::kReasoning && seal_.enabled()) {
    item_.encrypted_content = seal_.Seal(item_.text, created_s_);
  }
  const std::string json = ItemJson(item_, status);
  if (!closed_.empty()) closed_ += ",";
  closed_ += json;
  OnItemDone(item_, json);
}

OutputItems::Outcome OutputItems::Finish(const pb::End& end) {
  Outcome outcome;
  const pb::FinishReason reason = blocks_.finish_reason();
  if (reason == pb::FINISH_REASON_LENGTH ||
      (reason == pb::FINISH_REASON_UNSPECIFIED && end.cut_by_credit())) {  // decision 4
    outcome = {false, "max_output_tokens"};
  } else if (reason == pb::FINISH_REASON_CONTENT_FILTER) {
    outcome = {false, "content_filter"};
  }
  blocks_.Finish();
  // A completed response has a message or a call, even if the model generated nothing.
  if (outcome.completed && !blocks_.has_output()) OnBlockStart({BlockKind::kText, {}, {}});
  Close(outcome.completed ? ItemStatus::kCompleted : ItemStatus::kIncomplete);
  return outcome;
}

std::string OutputItems::Array() const {
  std::string out = "[" + closed_;
  if (open_) {
    if (!closed_.empty()) out += ",";
    out += ItemJson(item_, ItemStatus::kIncomplete);
  }
  return out + "]";
}

}  // namespace tollgate::gateway
