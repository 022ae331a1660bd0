#include "tests/fuzz/translation/chunk_writer.h"

#include "tests/fuzz/random_text.h"
#include "tests/fuzz/translation/engine_bytes.h"

namespace tollgate::fuzz {

ChunkWriter::ChunkWriter(Random& random, const Answer& answer, bool chat)
    : random_(random), answer_(answer), chat_(chat) {
  roles_ = random.Pick({Roles_::kNever, Roles_::kFirst, Roles_::kFirst, Roles_::kAlways});
  style_ = static_cast<ToolStyle>(random.Below(static_cast<size_t>(ToolStyle::kObject) + 1));
  reasoning_names_ = random.Pick({1, 1, 2, 2, 3});
  escaped_percent_ = random.Pick<size_t>({0, 0, 5, 100});
  empty_percent_ = random.Pick<size_t>({0, 0, 15});
  null_content_ = random.Percent(30);
  null_usage_ = random.Percent(40);
  extras_ = random.Percent(40);
  shuffle_ = random.Percent(20);
  lines_ = random.Percent(15);
  matched_stop_ = random.Percent(50);
  no_finish_ = static_cast<int>(random.Below(3));
  for (const Choice& choice : answer.choices) {
    std::vector<std::string>& ids = ids_.emplace_back();
    std::vector<std::string>& names = names_.emplace_back();
    for (const Call& call : choice.calls) {
      ids.push_back(Text(call.id));
      names.push_back(Text(call.name));
    }
  }
}

std::string ChunkWriter::Text(std::u16string_view text) {
  return "\"" + Escape(random_, text, escaped_percent_) + "\"";
}

std::string ChunkWriter::Object(Members members, bool may_break) {
  if (shuffle_) {
    for (size_t i = members.size(); i > 1; --i)
      std::swap(members[i - 1], members[random_.Below(i)]);
  }
  std::string out = "{";
  for (const auto& [key, value] : members) {
    if (out.size() > 1) out += ',';
    if (may_break && lines_ && random_.Percent(30)) out += '\n';
    out += "\"" + key + "\":" + value;
  }
  return out + "}";
}

std::string ChunkWriter::Envelope(const std::string& choices, const std::string& usage) {
  Members members = {{"id", "\"chatcmpl-engine\""},
                     {"object", "\"chat.completion.chunk\""},
                     {"created", "1700000000"},
                     {"model", "\"" + std::string(kSecret) + "\""},
                     {"choices", choices}};
  if (!usage.empty()) {
    members.emplace_back("usage", usage);
  } else if (null_usage_) {
    members.emplace_back("usage", "null");
  }
  if (extras_) {
    const std::string secret = "\"" + std::string(kSecret) + "\"";
    members.emplace_back("system_fingerprint", secret);
    members.emplace_back("kv_transfer_params", "{\"a\":" + secret + "}");
    members.emplace_back("prompt_logprobs", "null");
    members.emplace_back("timings", "{\"prompt_n\":1}");
    members.emplace_back("error", "null");
  }
  return Object(std::move(members), true);
}

std::string ChunkWriter::Usage(int64_t completion_tokens, int64_t reasoning_tokens) {
  Members usage = {{"prompt_tokens", std::to_string(answer_.prompt_tokens)},
                   {"completion_tokens", std::to_string(completion_tokens)},
                   {"total_tokens", std::to_string(answer_.prompt_tokens + completion_tokens)}};
  if (answer_.cached_tokens + answer_.cache_write_tokens > 0) {
    usage.emplace_back("prompt_tokens_details",
                       "{\"cached_tokens\":" + std::to_string(answer_.cached_tokens) +
                           ",\"cache_write_tokens\":" + std::to_string(answer_.cache_write_tokens) +
                           "}");
  } else if (random_.Percent(50)) {
    usage.emplace_back("prompt_tokens_details", "null");
  }
  if (reasoning_tokens > 0) {
    usage.emplace_back("completion_tokens_details",
                       "{\"reasoning_tokens\":" + std::to_string(reasoning_tokens) + "}");
  }
  return Object(std::move(usage));
}

// Dialects that cannot interleave calls fall back to the plain one for an answer that does.
ToolStyle ChunkWriter::StyleOf(const Step& step) const {
  const Choice& choice = answer_.choices[static_cast<size_t>(step.choice)];
  bool orderly = !choice.interleaved;
  for (const Call& call : choice.calls) orderly = orderly && !call.arguments.empty();
  const bool picky = style_ == ToolStyle::kNoIndex || style_ == ToolStyle::kBare ||
                     style_ == ToolStyle::kAllZero || style_ == ToolStyle::kFresh;
  if (picky && !orderly) return ToolStyle::kPlain;
  // A call appears with its name, and calls are numbered as they appear.
  if (style_ == ToolStyle::kLateName && choice.interleaved) return ToolStyle::kPlain;
  if (style_ == ToolStyle::kObject && (!step.first || !step.last || step.text.empty())) {
    return ToolStyle::kPlain;
  }
  return style_;
}

std::string ChunkWriter::IndexOf(const Step& step, ToolStyle style) {
  if (style == ToolStyle::kAllZero) return "0";
  if (style_ == ToolStyle::kSparse) return std::to_string(step.call * 3 + 1);
  return std::to_string(step.call);
}

std::string ChunkWriter::ToolDelta(const Step& step) {
  const ToolStyle style = StyleOf(step);
  const auto choice = static_cast<size_t>(step.choice);
  const bool every = style == ToolStyle::kRepeat || style == ToolStyle::kFresh;
  bool name = step.first || every;
  if (style == ToolStyle::kLateName && step.first && !step.last) name = false;
  // Sent with each later delta, since the second one is not distinguished here.
  if (style == ToolStyle::kLateName && !step.first) name = true;
  Members function;
  if (name) function.emplace_back("name", names_[choice][step.call]);
  if (style == ToolStyle::kObject) {
    function.emplace_back("arguments", ToUtf8(step.text));
  } else if (!step.text.empty()) {
    function.emplace_back("arguments", Text(step.text));
  } else if (random_.Percent(70)) {
    function.emplace_back("arguments", random_.Percent(70) ? "\"\"" : "null");
  }
  Members call;
  if (style != ToolStyle::kNoIndex && style != ToolStyle::kBare)
    call.emplace_back("index", IndexOf(step, style));
  if (style == ToolStyle::kFresh && !step.first) {
    call.emplace_back("id", "\"fresh_" + std::to_string(fresh_++) + "\"");
  } else if (ids_are_made_up()) {
    if (random_.Percent(30)) call.emplace_back("id", random_.Percent(50) ? "null" : "\"\"");
  } else if (step.first || every) {
    call.emplace_back("id", ids_[choice][step.call]);
  }
  if (step.first || random_.Percent(20)) call.emplace_back("type", "\"function\"");
  call.emplace_back("function", Object(std::move(function)));
  return Object(std::move(call));
}

std::string ChunkWriter::Logprobs(const std::vector<const Step*>& steps) {
  std::string tokens, values, tops, offsets, rich;
  for (const Step* step : steps) {
    if (!step->logprob) continue;
    const std::string token = Text(step->text);
    const char* comma = tokens.empty() ? "" : ",";
    tokens += comma + token;
    values += comma + std::string("-0.25");
    tops += comma + std::string("{\"a\":-0.25}");
    offsets += comma + std::string("3");
    rich += comma + Object({{"token", token},
                            {"logprob", "-0.25"},
                            {"bytes", random_.Percent(50) ? "null" : "[97]"},
                            {"top_logprobs", "[]"}});
  }
  if (tokens.empty()) return "";
  if (chat_) {
    return random_.Percent(50) ? "{\"content\":[" + rich + "]}"
                               : "{\"refusal\":null,\"content\":[" + rich + "]}";
  }
  return Object({{"tokens", "[" + tokens + "]"},
                 {"token_logprobs", "[" + values + "]"},
                 {"top_logprobs", "[" + tops + "]"},
                 {"text_offset", "[" + offsets + "]"}});
}

void ChunkWriter::AddFinish(int index, Members& members) {
  const Choice& choice = answer_.choices[static_cast<size_t>(index)];
  std::string reason = "stop";
  if (choice.finish == Finish::kLength) reason = "length";
  if (choice.finish == Finish::kFilter) reason = "content_filter";
  if (choice.finish == Finish::kStop && !choice.calls.empty()) {
    reason = random_.Pick<const char*>({"tool_calls", "stop", "function_call"});
  }
  members.emplace_back("finish_reason", "\"" + reason + "\"");
  const std::string member = matched_stop_ ? "matched_stop" : "stop_reason";
  if (!choice.stop_sequence.empty()) {
    members.emplace_back(member, Text(choice.stop_sequence));
  } else if (random_.Percent(40)) {
    members.emplace_back(member, random_.Percent(50) ? "null" : "128009");
  }
}

void ChunkWriter::AddTexts(const Part& part, Members& delta) {
  bool content = false;
  size_t count = 0;
  std::string calls;
  for (const Step* step : part.steps) {
    if (step->kind == Kind::kReasoning) {
      const std::string text = Text(step->text);
      if ((reasoning_names_ & 1) != 0) delta.emplace_back("reasoning_content", text);
      if ((reasoning_names_ & 2) != 0) delta.emplace_back("reasoning", text);
    } else if (step->kind == Kind::kText) {
      delta.emplace_back("content", Text(step->text));
      content = true;
    } else if (step->kind == Kind::kRefusal) {
      delta.emplace_back("refusal", Text(step->text));
    } else if (step->kind == Kind::kCall) {
      calls += (calls.empty() ? "" : ",") + ToolDelta(*step);
      ++count;
    }
  }
  if (!content && null_content_)
    delta.emplace_back("content", random_.Percent(50) ? "null" : "\"\"");
  if (!calls.empty()) {
    const bool bare = style_ == ToolStyle::kSingle && count == 1;
    delta.emplace_back("tool_calls", bare ? calls : "[" + calls + "]");
  } else if (random_.Percent(10)) {
    delta.emplace_back("tool_calls", random_.Percent(50) ? "[]" : "null");
  }
}

std::string ChunkWriter::ChoiceObject(const Part& part) {
  Members members = {{"index", std::to_string(part.choice)}};
  if (chat_) {
    Members delta;
    if (roles_ == Roles_::kAlways) delta.emplace_back("role", "\"assistant\"");
    AddTexts(part, delta);
    members.emplace_back("delta", Object(std::move(delta), true));
  } else {
    std::string text = "\"\"";
    for (const Step* step : part.steps) {
      if (step->kind == Kind::kText) text = Text(step->text);
    }
    members.emplace_back("text", text);
  }
  if (const std::string logprobs = Logprobs(part.steps); !logprobs.empty()) {
    members.emplace_back("logprobs", logprobs);
  } else if (random_.Percent(30)) {
    members.emplace_back("logprobs", "null");
  }
  if (part.steps.back()->kind == Kind::kFinish) {
    AddFinish(part.choice, members);
  } else if (no_finish_ != 1) {
    members.emplace_back("finish_reason", no_finish_ == 0 ? "null" : "\"\"");
  }
  if (extras_) members.emplace_back("token_ids", "[1,2]");
  return Object(std::move(members), true);
}

std::string ChunkWriter::Write(const Chunk& chunk, const std::string& usage) {
  std::string choices;
  for (const Part& part : chunk) {
    choices += (choices.empty() ? "" : ",") + ChoiceObject(part);
  }
  return Envelope("[" + choices + "]", usage);
}

std::string ChunkWriter::Empty(const std::string& usage) { return Envelope("[]", usage); }

std::string ChunkWriter::Roles() {
  std::string choices;
  for (size_t i = 0; i < answer_.choices.size(); ++i) {
    choices += (choices.empty() ? "" : ",") +
               Object({{"index", std::to_string(i)},
                       {"delta", null_content_ ? R"({"role":"assistant","content":null})"
                                               : R"({"role":"assistant","content":""})"}});
  }
  return Envelope("[" + choices + "]", "");
}

std::string ChunkWriter::Nothing(size_t steps) {
  const std::string text = "\"" + std::string(kSecret) + "\"";
  const std::string body = chat_ ? R"("delta":{"content":)" + text + "}" : R"("text":)" + text;
  // A choice that has its finish reason, if there is one yet.
  std::string finished = "77";
  for (size_t i = 0; i < steps && i < answer_.steps.size(); ++i) {
    if (answer_.steps[i].kind == Kind::kFinish) finished = std::to_string(answer_.steps[i].choice);
  }
  switch (random_.Below(6)) {
    case 0:
      return Envelope(R"([{"index":0,"delta":{}}])", "");
    case 1:
      return Envelope(R"([{"index":0,"delta":{"content":"","role":null},"finish_reason":null}])",
                      "");
    case 2:
      return Envelope("[]", "");
    case 3:
      return R"({"object":"ping"})";
    case 4:  // a choice that was not requested
      return Envelope(R"([{"index":130,)" + body + "}]", "");
    default:
      return Envelope(R"([{"index":)" + finished + "," + body + "}]", "");
  }
}

std::string ChunkWriter::Abort(int choice) {
  const char* reason = random_.Percent(50) ? "abort" : "error";
  return Envelope(R"([{"index":)" + std::to_string(choice) + R"(,"delta":{},"finish_reason":")" +
                      reason + "\"}]",
                  "");
}

std::string ChunkWriter::WholeMessage(int choice) {
  std::u16string content, reasoning, refusal;
  for (const Step& step : answer_.steps) {
    if (step.choice != choice) continue;
    if (step.kind == Kind::kText) content += step.text;
    if (step.kind == Kind::kReasoning) reasoning += step.text;
    if (step.kind == Kind::kRefusal) refusal += step.text;
  }
  if (!chat_) return Text(content);
  Members message = {{"role", "\"assistant\""}};
  message.emplace_back("content", content.empty() && null_content_ ? "null" : Text(content));
  if (!reasoning.empty()) {
    message.emplace_back(reasoning_names_ == 2 ? "reasoning" : "reasoning_content",
                         Text(reasoning));
  }
  message.emplace_back("refusal", refusal.empty() ? "null" : Text(refusal));
  std::string calls;
  const auto at = static_cast<size_t>(choice);
  for (size_t i = 0; i < answer_.choices[at].calls.size(); ++i) {
    Members call = {
        {"type", "\"function\""},
        {"function", Object({{"name", names_[at][i]},
                             {"arguments", Text(answer_.choices[at].calls[i].arguments)}})}};
    if (!ids_are_made_up()) call.emplace_back("id", ids_[at][i]);
    calls += (calls.empty() ? "" : ",") + Object(std::move(call));
  }
  if (!calls.empty() || random_.Percent(50)) message.emplace_back("tool_calls", "[" + calls + "]");
  return Object(std::move(message));
}

std::string ChunkWriter::Whole(const std::string& usage) {
  std::string choices;
  for (size_t i = 0; i < answer_.choices.size(); ++i) {
    const int index = static_cast<int>(i);
    std::vector<const Step*> steps;
    for (const Step& step : answer_.steps) {
      if (step.choice == index) steps.push_back(&step);
    }
    Members members = {{"index", std::to_string(i)},
                       {chat_ ? "message" : "text", WholeMessage(index)}};
    if (const std::string logprobs = Logprobs(steps); !logprobs.empty()) {
      members.emplace_back("logprobs", logprobs);
    }
    AddFinish(index, members);
    choices += (choices.empty() ? "" : ",") + Object(std::move(members));
  }
  return Envelope("[" + choices + "]", usage);
}

}  // namespace tollgate::fuzz
