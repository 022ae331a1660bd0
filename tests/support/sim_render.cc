#include "tests/support/sim_render.h"

#include <charconv>

#include "tests/support/sim_completions.h"
#include "tests/support/sim_text.h"

namespace tollgate::test {
namespace {

void AppendInteger(std::string& out, int64_t value) {
  char buffer[24];
  const auto result = std::to_chars(buffer, buffer + sizeof buffer, value);
  out.append(buffer, result.ptr);
}

std::string Logprob(std::string_view token) {
  std::string bytes;
  for (const char c : token) {
    if (!bytes.empty()) bytes += ',';
    bytes += std::to_string(static_cast<unsigned char>(c));
  }
  return "{\"token\":" + JsonQuoted(token) + ",\"logprob\":-0.25,\"bytes\":[" + bytes +
         "],\"top_logprobs\":[]}";
}

// The parts of an unstreamed answer, per choice.
struct Folded {
  std::string reasoning;
  std::string content;
  std::string tool_calls;
  std::string logprobs;
};

Folded Fold(const SimChoice& choice) {
  Folded folded;
  bool in_call = false;
  auto end_call = [&] {
    if (in_call) folded.tool_calls += "\"}}";
    in_call = false;
  };
  for (SimCursor cursor(&choice); !cursor.at_end(); cursor.Advance()) {
    switch (cursor.segment().kind) {
      case SimSegment::Kind::kReasoning:
        folded.reasoning += cursor.text();
        break;
      case SimSegment::Kind::kText:
        folded.content += cursor.text();
        if (!folded.logprobs.empty()) folded.logprobs += ',';
        folded.logprobs += Logprob(cursor.text());
        break;
      case SimSegment::Kind::kTool:
        if (cursor.opens_tool()) {
          end_call();
          if (!folded.tool_calls.empty()) folded.tool_calls += ',';
          folded.tool_calls += "{\"id\":" + JsonQuoted(cursor.segment().tool_id) +
                               ",\"type\":\"function\",\"function\":{\"name\":" +
                               JsonQuoted(cursor.segment().tool_name) + ",\"arguments\":\"";
          in_call = true;
        } else {
          folded.tool_calls += cursor.escaped();
        }
        break;
    }
  }
  end_call();
  return folded;
}

// The legacy log probabilities of this token, and of the prompt before the first one.
std::string LegacyPiece(const SimCursor& cursor) {
  const std::string& echo = cursor.choice().echo;
  std::vector<std::string> prompt;
  if (cursor.emitted() == 0) prompt = SplitTokens(echo);
  std::vector<std::string_view> tokens(prompt.begin(), prompt.end());
  tokens.push_back(cursor.text());
  return LegacyLogprobs(tokens,
                        cursor.emitted() == 0 ? 0 : CountCharacters(echo) + cursor.characters());
}

std::string LegacyWhole(const SimChoice& choice) {
  const std::vector<std::string> prompt = SplitTokens(choice.echo);
  std::vector<std::string_view> tokens(prompt.begin(), prompt.end());
  for (SimCursor cursor(&choice); !cursor.at_end(); cursor.Advance()) {
    tokens.push_back(cursor.text());
  }
  return LegacyLogprobs(tokens, 0);
}

}  // namespace

std::string_view SimCursor::text() const {
  const SimSegment& at = segment();
  if (at.kind == SimSegment::Kind::kTool) {
    return offset_ == 0 ? std::string_view()
                        : std::string_view(at.pieces[static_cast<size_t>(offset_ - 1)]);
  }
  if (!at.pieces.empty()) return at.pieces[static_cast<size_t>(offset_)];
  return GeneratedToken(at.seed, offset_).text;
}

std::string_view SimCursor::escaped() {
  const SimSegment& at = segment();
  if (at.kind != SimSegment::Kind::kTool && at.pieces.empty()) {
    return GeneratedToken(at.seed, offset_).escaped;
  }
  scratch_.clear();
  AppendJsonEscaped(scratch_, text());
  return scratch_;
}

void SimCursor::Advance() {
  ++emitted_;
  characters_ += CountCharacters(text());
  if (++offset_ < segment().count) return;
  offset_ = 0;
  ++segment_;
}

SimRenderer::SimRenderer(const SimPlan* plan, const std::string& id, int64_t created_s,
                         bool usage_details)
    : plan_(plan), usage_details_(usage_details) {
  const std::string tail =
      ",\"created\":" + std::to_string(created_s) + ",\"model\":" + JsonQuoted(plan->model) + ",";
  const std::string start = "{\"id\":" + JsonQuoted(id) + ",\"object\":\"";
  head_ = "data: " + start + (plan->chat ? "chat.completion.chunk\"" : "text_completion\"") + tail;
  whole_head_ = start + (plan->chat ? "chat.completion\"" : "text_completion\"") + tail;
}

void SimRenderer::UsageMember(std::string& out, int choice, int64_t completion_tokens) const {
  if (!plan_->continuous_usage || plan_->script.no_usage) return;
  const int64_t prompt_tokens = plan_->choices[static_cast<size_t>(choice)].prompt_tokens;
  out += ",\"usage\":{\"prompt_tokens\":";
  AppendInteger(out, prompt_tokens);
  out += ",\"total_tokens\":";
  AppendInteger(out, prompt_tokens + completion_tokens);
  out += ",\"completion_tokens\":";
  AppendInteger(out, completion_tokens);
  out += '}';
}

std::string SimRenderer::Usage(int64_t completion_tokens, int64_t reasoning_tokens) const {
  const SimScript& script = plan_->script;
  if (script.usage) return *script.usage;
  completion_tokens += plan_->unseen_tokens;
  std::string out =
      "{\"prompt_tokens\":" + std::to_string(plan_->prompt_tokens) +
      ",\"total_tokens\":" + std::to_string(plan_->prompt_tokens + completion_tokens) +
      ",\"completion_tokens\":" + std::to_string(completion_tokens) + ",\"prompt_tokens_details\":";
  const bool cached = script.cached_tokens >= 0 || usage_details_;
  out +=
      cached
          ? "{\"cached_tokens\":" + std::to_string(std::max<int64_t>(script.cached_tokens, 0)) + "}"
          : "null";
  if (usage_details_) {
    out +=
        ",\"completion_tokens_details\":{\"reasoning_tokens\":" + std::to_string(reasoning_tokens) +
        "}";
  }
  return out + "}";
}

void SimRenderer::Role(std::string& out, int choice) const {
  if (!plan_->chat) return;
  out += head_;
  out += "\"choices\":[{\"index\":";
  AppendInteger(out, choice);
  out +=
      ",\"delta\":{\"role\":\"assistant\",\"content\":\"\"},\"logprobs\":null,\"finish_reason\":"
      "null}]";
  UsageMember(out, choice, 0);
  out += "}\n\n";
}

void SimRenderer::Token(std::string& out, int choice, SimCursor& cursor) const {
  out += head_;
  out += "\"choices\":[{\"index\":";
  AppendInteger(out, choice);
  const SimSegment& segment = cursor.segment();
  if (!plan_->chat) {
    out += ",\"text\":\"";
    if (cursor.emitted() == 0) AppendJsonEscaped(out, cursor.choice().echo);
    out += cursor.escaped();
    out += '"';
  } else if (segment.kind == SimSegment::Kind::kTool) {
    out += ",\"delta\":{\"tool_calls\":[{";
    if (cursor.opens_tool()) {
      out += "\"id\":" + JsonQuoted(segment.tool_id) + ",\"type\":\"function\",";
    }
    out += "\"index\":" + std::to_string(segment.tool_index) + ",\"function\":{";
    if (cursor.opens_tool()) out += "\"name\":" + JsonQuoted(segment.tool_name) + ",";
    out += "\"arguments\":\"";
    out += cursor.escaped();
    out += "\"}}]}";
  } else {
    out += ",\"delta\":{\"";
    out += segment.kind == SimSegment::Kind::kText ? "content" : plan_->reasoning_field;
    out += "\":\"";
    out += cursor.escaped();
    out += "\"}";
  }
  if (plan_->logprobs && plan_->chat && segment.kind == SimSegment::Kind::kText) {
    out += ",\"logprobs\":{\"content\":[" + Logprob(cursor.text()) + "]}";
  } else if (plan_->logprobs && !plan_->chat) {
    out += ",\"logprobs\":" + LegacyPiece(cursor);
  } else {
    out += ",\"logprobs\":null";
  }
  out += ",\"finish_reason\":null}]";
  UsageMember(out, choice, cursor.emitted() + 1);
  out += "}\n\n";
}

void SimRenderer::Finish(std::string& out, int choice, const SimCursor& cursor) const {
  out += head_;
  out += "\"choices\":[{\"index\":";
  AppendInteger(out, choice);
  out += plan_->chat ? ",\"delta\":{}" : ",\"text\":\"\"";
  out += ",\"logprobs\":null,\"finish_reason\":" + JsonQuoted(cursor.choice().finish_reason) +
         ",\"stop_reason\":null}]";
  UsageMember(out, choice, cursor.emitted());
  out += "}\n\n";
}

void SimRenderer::FinalUsage(std::string& out, int64_t completion_tokens,
                             int64_t reasoning_tokens) const {
  if (!plan_->include_usage || plan_->script.no_usage) return;
  out += head_;
  out += "\"choices\":[],\"usage\":" + Usage(completion_tokens, reasoning_tokens) + "}\n\n";
}

void SimRenderer::ErrorEvent(std::string& out) const {
  out += "data: {\"error\":" + plan_->script.error_event + "}\n\n";
}

std::string SimRenderer::Whole(int64_t completion_tokens, int64_t reasoning_tokens) const {
  std::string out = whole_head_ + "\"choices\":[";
  for (size_t i = 0; i < plan_->choices.size(); ++i) {
    const SimChoice& choice = plan_->choices[i];
    const Folded folded = Fold(choice);
    if (i != 0) out += ',';
    out += "{\"index\":" + std::to_string(i);
    if (!plan_->chat) {
      out += ",\"text\":" + JsonQuoted(choice.echo + folded.content);
    } else {
      const bool no_content =
          folded.content.empty() && (!folded.tool_calls.empty() || !folded.reasoning.empty());
      out += ",\"message\":{\"role\":\"assistant\",\"content\":" +
             (no_content ? "null" : JsonQuoted(folded.content)) + ",\"refusal\":null";
      if (!folded.tool_calls.empty()) out += ",\"tool_calls\":[" + folded.tool_calls + "]";
      out += ",\"" + plan_->reasoning_field +
             "\":" + (folded.reasoning.empty() ? "null" : JsonQuoted(folded.reasoning)) + "}";
    }
    out += ",\"logprobs\":";
    if (plan_->logprobs) {
      out += plan_->chat ? "{\"content\":[" + folded.logprobs + "]}" : LegacyWhole(choice);
    } else {
      out += "null";
    }
    out += ",\"finish_reason\":" + JsonQuoted(choice.finish_reason) + ",\"stop_reason\":null}";
  }
  out += "],\"service_tier\":null,\"system_fingerprint\":null";
  if (!plan_->script.no_usage) out += ",\"usage\":" + Usage(completion_tokens, reasoning_tokens);
  return out + ",\"prompt_logprobs\":null,\"kv_transfer_params\":null}";
}

std::string RenderError(const SimError& error, bool flat) {
  const std::string members =
      "\"message\":" + JsonQuoted(error.message) + ",\"type\":" + JsonQuoted(error.type) +
      ",\"param\":" + (error.param.empty() ? "null" : JsonQuoted(error.param)) +
      ",\"code\":" + std::to_string(error.status);
  return flat ? "{\"object\":\"error\"," + members + "}" : "{\"error\":{" + members + "}}";
}

}  // namespace tollgate::test
