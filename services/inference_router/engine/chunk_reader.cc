#include "services/inference_router/engine/chunk_reader.h"

#include <algorithm>
#include <utility>

namespace tollgate::inference_router {
namespace {

using inference::v1::Delta;
using inference::v1::Event;
using inference::v1::FinishReason;

constexpr int kMaxChoices = 128;
// Bytes charged for a piece of another kind than the last one, and for the log probabilities of a
// piece.
constexpr size_t kPieceBytes = 64;
// JSON values in one event: log probabilities of a few thousand tokens.
constexpr size_t kMaxEventValues = 500'000;

json::Limits ChunkLimits() {
  json::Limits limits;
  limits.allow_lone_surrogates = true;  // an engine may split a pair over two chunks
  limits.allow_nul = true;
  return limits;
}

// Gives up on templates for streams whose chunks are never similar, for example those with several
// alternating choices.
constexpr int kMaxMisses = 8;

bool HasText(const json::Value& value) { return value.is_string() && !value.raw_string().empty(); }

}  // namespace

ChunkReader::ChunkReader(const Options& options)
    : options_(options), budget_(options.max_answer_bytes) {
  choices_.resize(std::clamp(options.choices, 1, kMaxChoices));
}

ChunkReader::Status ChunkReader::Fail(EngineFailure failure) {
  failure_ = std::move(failure);
  return Status::kError;
}

ChunkReader::Status ChunkReader::Read(std::string_view data, std::vector<Event>& out) {
  usage_.reset();
  if (data == "[DONE]") return Status::kDone;
  if (const auto status = ReadSimilar(data, out)) return *status;
  json::Limits limits = ChunkLimits();
  limits.max_values = kMaxEventValues;
  auto parsed = json::Document::ParseView(data, limits);
  if (!parsed.ok()) {
    // Some engines put white space around the end marker.
    const size_t begin = data.find_first_not_of(" \t\r\n");
    if (begin == std::string_view::npos) return Status::kMore;
    if (data.substr(begin).starts_with("[DONE]")) return Status::kDone;
    return Fail(BrokenResponse("chunk is not JSON"));
  }
  const size_t before = out.size();
  const Status status = ReadObject(parsed->root(), out);
  if (status == Status::kMore) Learn(data, parsed->root(), std::span(out).subspan(before));
  return status;
}

std::optional<ChunkReader::Status> ChunkReader::ReadSimilar(std::string_view data,
                                                            std::vector<Event>& out) {
  if (!template_.known()) return std::nullopt;
  Choice& choice = choices_[template_choice_];
  auto values = choice.finished ? std::nullopt : template_.Match(data);
  if (!values) {
    ++misses_;
    template_.Forget();
    return std::nullopt;
  }
  misses_ = 0;
  usage_ = values->usage;
  Event event;
  Delta& delta = *event.mutable_delta();
  if (template_piece_ == Piece::kText) {
    delta.set_content_json(TakeText(values->text, Piece::kText, choice, choice.content));
  } else {
    delta.set_reasoning_json(TakeText(values->text, Piece::kReasoning, choice, choice.reasoning));
  }
  if (budget_.exceeded()) return Fail(OverLimit(AnswerLimit::kAnswerBytes));
  if (delta.content_json().empty() && delta.reasoning_json().empty()) return Status::kMore;
  if (template_choice_ > 0) delta.set_choice(template_choice_);
  out.push_back(std::move(event));
  return Status::kMore;
}

void ChunkReader::Learn(std::string_view data, const json::Value& root,
                        std::span<const Event> events) {
  template_.Forget();
  if (!options_.templates || misses_ > kMaxMisses || events.size() != 1) return;
  const json::Value choices = root.Find("choices");
  if (choices.size() != 1) return;
  const json::Value item = *choices.begin();
  // A chunk with more than one text may change more than the text of the answer.
  if (HasText(item.Find("finish_reason")) || item.Find("logprobs").is_object()) return;
  json::Value text, reasoning;
  if (options_.kind == inference::v1::REQUEST_KIND_COMPLETION) {
    text = item.Find("text");
  } else {
    json::Value body = item.Find("delta");
    if (!body.is_object()) body = item.Find("message");
    const json::Value calls = body.Find("tool_calls");
    if (calls.is_array() || calls.is_object() || HasText(body.Find("refusal"))) return;
    text = body.Find("content");
    reasoning = body.Find("reasoning_content");
    if (!HasText(reasoning)) reasoning = body.Find("reasoning");
  }
  if (HasText(text) == HasText(reasoning)) return;
  template_choice_ = events[0].delta().choice();
  template_piece_ = HasText(text) ? Piece::kText : Piece::kReasoning;
  template_.Learn(data, HasText(text) ? text : reasoning, root.Find("usage"), usage_);
}

ChunkReader::Status ChunkReader::ReadWhole(std::string_view body, std::vector<Event>& out) {
  usage_.reset();
  auto parsed = json::Document::ParseView(body, ChunkLimits());
  if (!parsed.ok()) return Fail(BrokenResponse("response is neither a stream nor JSON"));
  const json::Value root = parsed->root();
  if (!root.is_object() || (!root.Find("choices").is_array() && !IsErrorObject(root))) {
    return Fail(BrokenResponse("response has no choices"));
  }
  const Status status = ReadObject(root, out);
  return status == Status::kMore ? Status::kDone : status;
}

ChunkReader::Status ChunkReader::ReadObject(const json::Value& root, std::vector<Event>& out) {
  // llama.cpp sends null before the answers to several prompts.
  if (root.is_null()) return Status::kMore;
  if (!root.is_object()) return Fail(BrokenResponse("chunk is not an object"));
  const json::Value choices = root.Find("choices");
  if (!choices.is_array() && IsErrorObject(root)) {
    return Fail(ClassifyInStream(root, options_.window));
  }
  ReadUsage(root, choices);
  if (!choices.is_array()) return Status::kMore;
  for (json::Value item : choices) {
    if (item.is_object() && !ReadChoice(item, out)) return Status::kError;
  }
  return Status::kMore;
}

bool ChunkReader::ReadChoice(const json::Value& item, std::vector<Event>& out) {
  int64_t index = 0;
  if (item.Find("index").is_number()) index = item.Find("index").Integer().value_or(-1);
  if (index < 0 || index >= static_cast<int64_t>(choices_.size())) return true;
  Choice& choice = choices_[index];
  choice.seen = true;
  if (choice.finished) return true;

  Event event;
  Delta& delta = *event.mutable_delta();
  if (const AnswerLimit limit = ReadBody(item, choice, delta); limit != AnswerLimit::kNone) {
    Fail(OverLimit(limit));
    return false;
  }
  if (!ReadFinish(item, choice, delta)) {
    Fail(BrokenResponse("engine aborted the generation"));
    return false;
  }
  const bool has_output = !delta.content_json().empty() || !delta.reasoning_json().empty() ||
                          !delta.refusal_json().empty() || delta.tool_calls_size() > 0 ||
                          !delta.logprobs_json().empty() || choice.finished;
  if (!has_output) return true;
  if (index > 0) delta.set_choice(static_cast<int32_t>(index));
  out.push_back(std::move(event));
  return true;
}

std::string ChunkReader::TakeText(std::string_view text, Piece kind, Choice& choice,
                                  SurrogateJoiner& joiner) {
  std::string joined = joiner.Join(text);
  budget_.Take(joined.size() + (choice.last == kind ? 0 : kPieceBytes));
  choice.last = kind;
  return joined;
}

AnswerLimit ChunkReader::ReadBody(const json::Value& item, Choice& choice, Delta& delta) {
  if (options_.kind == inference::v1::REQUEST_KIND_COMPLETION) {
    const json::Value text = item.Find("text");
    if (HasText(text)) {
      delta.set_content_json(TakeText(text.raw_string(), Piece::kText, choice, choice.content));
    }
  } else {
    json::Value body = item.Find("delta");
    if (!body.is_object()) body = item.Find("message");
    if (body.is_object()) {
      const json::Value content = body.Find("content");
      if (HasText(content)) {
        delta.set_content_json(
            TakeText(content.raw_string(), Piece::kText, choice, choice.content));
      }
      json::Value reasoning = body.Find("reasoning_content");
      if (!HasText(reasoning)) reasoning = body.Find("reasoning");
      if (HasText(reasoning)) {
        delta.set_reasoning_json(
            TakeText(reasoning.raw_string(), Piece::kReasoning, choice, choice.reasoning));
      }
      const json::Value refusal = body.Find("refusal");
      if (HasText(refusal)) {
        delta.set_refusal_json(
            TakeText(refusal.raw_string(), Piece::kRefusal, choice, choice.refusal));
      }
      const json::Value calls = body.Find("tool_calls");
      if (calls.is_array() || calls.is_object()) {
        const AnswerLimit limit = choice.tools.Read(calls, delta, budget_);
        if (limit != AnswerLimit::kNone) return limit;
        if (delta.tool_calls_size() > 0) choice.last = Piece::kCall;
      }
    }
  }
  const json::Value logprobs = item.Find("logprobs");
  if (logprobs.is_object()) {
    json::Value tokens = logprobs.Find("content");
    if (!tokens) tokens = logprobs.Find("tokens");  // completions
    const bool empty = tokens.is_array() && tokens.size() == 0;
    if (!empty && budget_.Take(logprobs.raw().size() + kPieceBytes)) {
      delta.set_logprobs_json(std::string(logprobs.raw()));
    }
  }
  return budget_.exceeded() ? AnswerLimit::kAnswerBytes : AnswerLimit::kNone;
}

bool ChunkReader::ReadFinish(const json::Value& item, Choice& choice, Delta& delta) {
  const json::Value reason = item.Find("finish_reason");
  if (!HasText(reason)) return true;
  FinishReason finish = inference::v1::FINISH_REASON_STOP;
  if (reason.StringEquals("abort") || reason.StringEquals("error")) return false;
  if (reason.StringEquals("length")) {
    finish = inference::v1::FINISH_REASON_LENGTH;
  } else if (reason.StringEquals("content_filter")) {
    finish = inference::v1::FINISH_REASON_CONTENT_FILTER;
  } else if (choice.tools.any()) {  // decision 31
    finish = inference::v1::FINISH_REASON_TOOL_CALLS;
  }
  if (finish == inference::v1::FINISH_REASON_STOP) {
    json::Value stop = item.Find("stop_reason");           // vLLM
    if (!HasText(stop)) stop = item.Find("matched_stop");  // SGLang
    if (HasText(stop) && budget_.Take(stop.raw_string().size())) {
      delta.set_stop_sequence_json(std::string(stop.raw_string()));
    }
  }
  if (choice.content.pending()) delta.mutable_content_json()->append("\\ufffd");
  if (choice.reasoning.pending()) delta.mutable_reasoning_json()->append("\\ufffd");
  if (choice.refusal.pending()) delta.mutable_refusal_json()->append("\\ufffd");
  delta.set_finish_reason(finish);
  choice.finished = true;
  last_finished_ = static_cast<int>(&choice - choices_.data());
  return true;
}

void ChunkReader::ReadUsage(const json::Value& root, const json::Value& choices) {
  const json::Value usage = root.Find("usage");
  if (!usage.is_object()) return;
  auto count = [](const json::Value& object, std::string_view name) -> int64_t {
    if (!object.is_object() || !object.Find(name).is_number()) return 0;
    return object.Find(name).Integer().value_or(-1);
  };
  EngineUsage& read = usage_.emplace();
  if (usage.Find("prompt_tokens").is_number()) {
    read.prompt_tokens = count(usage, "prompt_tokens");
  }
  if (usage.Find("completion_tokens").is_number()) {
    read.completion_tokens = count(usage, "completion_tokens");
  }
  const json::Value prompt_details = usage.Find("prompt_tokens_details");
  read.cached_tokens = count(prompt_details, "cached_tokens");
  read.cache_write_tokens = count(prompt_details, "cache_write_tokens");
  read.reasoning_tokens = count(usage.Find("completion_tokens_details"), "reasoning_tokens");
  if (read.reasoning_tokens == 0) {
    read.reasoning_tokens = count(usage, "reasoning_tokens");  // SGLang
  }
  if (choices.is_array() && choices.size() == 1) {
    const json::Value only = *choices.begin();
    read.choice = 0;
    if (only.is_object() && only.Find("index").is_number()) {
      const int64_t index = only.Find("index").Integer().value_or(-1);
      read.choice = index >= 0 && index < kMaxChoices ? static_cast<int>(index) : -1;
    }
  } else if (options_.usage_follows_choice) {
    read.choice = std::exchange(last_finished_, -1);
  }
}

bool ChunkReader::finished() const {
  return std::all_of(choices_.begin(), choices_.end(),
                     [](const Choice& choice) { return choice.finished; });
}

bool ChunkReader::seen_choices_finished() const {
  bool any = false;
  for (const Choice& choice : choices_) {
    if (choice.seen && !choice.finished) return false;
    any = any || choice.seen;
  }
  return any;
}

}  // namespace tollgate::inference_router
