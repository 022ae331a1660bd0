#include "tests/fuzz/forwarding/requests.h"

#include <string>
#include <utility>
#include <vector>

namespace tollgate::fuzz {
namespace {

using test::Json;

struct Spelled {
  const char* text;  // in the request
  int64_t value;
};

class Builder {
 public:
  explicit Builder(Random& random) : random_(random) {}

  // The member unchanged.
  void Same(std::string name, Json value) {
    if (!value.is_null()) made_.expected.Set(name, value);
    members_.emplace_back(std::move(name), std::move(value));
  }
  void Becomes(std::string name, Json value, Json expected) {
    made_.expected.Set(name, std::move(expected));
    members_.emplace_back(std::move(name), std::move(value));
  }
  void Dropped(std::string name, Json value) {
    members_.emplace_back(std::move(name), std::move(value));
  }
  // An integer of any legal spelling reaches the engine in its plain form.
  int64_t Integer(const std::string& name, std::initializer_list<Spelled> list) {
    const Spelled chosen = random_.Pick(list);
    // A plain integer is not rewritten, not even -0.
    Becomes(name, Number(chosen.text), Json(chosen.value));
    return chosen.value;
  }
  void Common();

  ForwardCase Take() {
    Json request = Json::Object();
    for (size_t i = members_.size(); i > 1; --i) {
      std::swap(members_[i - 1], members_[random_.Below(i)]);
    }
    for (auto& [name, value] : members_) request.Set(std::move(name), std::move(value));
    made_.request = std::move(request);
    return std::move(made_);
  }
  bool Has(const std::string& name) const {
    for (const auto& [other, value] : members_) {
      if (other == name) return true;
    }
    return false;
  }

  Random& random_;
  ForwardCase made_;
  std::vector<std::pair<std::string, Json>> members_;
};

// Members that chat and completions share.
void Builder::Common() {
  const auto number = [&](const char* name, std::initializer_list<const char*> texts) {
    if (random_.Percent(30)) Same(name, Number(random_.Pick(texts)));
  };
  number("temperature", {"0", "0.70", "1", "1.0e0", "2E0", "2", "null"});
  number("top_p", {"0.10", "1", "1.0"});
  number("frequency_penalty", {"-2", "2.0", "1e-3"});
  number("presence_penalty", {"-0.0", "0.5"});
  number("min_p", {"0.05"});
  number("repetition_penalty", {"1.1000"});
  if (random_.Percent(30)) {
    Integer("seed", {{"-5", -5},
                     {"9223372036854775807", INT64_MAX},
                     {"-9223372036854775808", INT64_MIN},
                     {"1e3", 1000},
                     {"5.0", 5}});
  }
  // Not every engine accepts zero.
  if (!Has("top_p") && random_.Percent(10)) Becomes("top_p", Number("0"), Number("1e-6"));
  if (random_.Percent(20)) {
    Integer("top_k", {{"-1", -1}, {"0", -1}, {"40", 40}, {"4e1", 40}, {"4.00e1", 40}});
  }
  if (random_.Percent(10)) {
    Same("logit_bias", *Json::Parse(R"({"123":-100,"7":1.50,"9":1e2})"));
  }
  if (random_.Percent(20)) {
    // Engines treat an empty stop string differently: it is not forwarded.
    Json stops = Json::Array(), kept = Json::Array();
    for (int i = 0; i < 2; ++i) {
      Json stop = random_.Percent(20) ? Json("") : RandomString(random_);
      if (!stop.str().empty()) kept.Add(stop);
      stops.Add(std::move(stop));
    }
    if (kept.size() == 0) {
      Dropped("stop", std::move(stops));
    } else {
      Becomes("stop", std::move(stops), std::move(kept));
    }
  }
  for (const char* name :
       {"user", "metadata", "store", "service_tier", "safety_identifier", "prompt_cache_key"}) {
    if (random_.Percent(8)) Dropped(name, RandomValue(random_));
  }
  for (const char* name : {"guided_json", "chat_template_kwargs", "top_a", "x", "\xc3\xa9", "Model",
                           "streams", "ignore_eos"}) {
    if (random_.Percent(12)) Same(name, RandomValue(random_));
  }
  if (random_.Percent(50))
    Dropped("stream", random_.Percent(20) ? Json() : Json(random_.Percent(50)));
  if (random_.Percent(30)) {
    Json options = Json::Object();
    options.Set("include_usage", random_.Percent(20) ? Json() : Json(true));
    options.Set("continuous_usage_stats", RandomValue(random_));
    Dropped("stream_options", std::move(options));
  }
}

Json Parts(Random& random) {
  Json parts = Json::Array();
  for (size_t left = random.Between(1, 3); left > 0; --left) {
    Json part = Json::Object();
    part.Set("type", "text").Set("text", RandomString(random));
    if (random.Percent(30)) part.Set("cache_control", RandomValue(random));
    parts.Add(std::move(part));
  }
  return parts;
}

Json Content(Random& random) { return random.Percent(60) ? RandomString(random) : Parts(random); }

Json ToolCalls(Random& random) {
  Json calls = Json::Array();
  for (size_t left = random.Between(1, 2); left > 0; --left) {
    Json function = Json::Object();
    function.Set("name", "f").Set("arguments", Json(RandomJsonObject(random).Dump()));
    Json call = Json::Object();
    call.Set("id", RandomString(random)).Set("type", "function").Set("function", function);
    if (random.Percent(20)) call.Set("index", RandomValue(random));
    calls.Add(std::move(call));
  }
  return calls;
}

// Reasoning is sent under both names, the copy right after the original, or in place of the other
// name's null.
Json Mirrored(const Json& message) {
  const Json& openai = message["reasoning_content"];
  const Json& vllm = message["reasoning"];
  const bool copy_openai = openai.is_string() && vllm.is_null();
  const bool copy_vllm = vllm.is_string() && openai.is_null();
  if (!copy_openai && !copy_vllm) return message;
  const std::string from = copy_openai ? "reasoning_content" : "reasoning";
  const std::string to = copy_openai ? "reasoning" : "reasoning_content";
  const bool has_null = message.has(to);
  Json out = Json::Object();
  for (const Json::Member& member : message.members()) {
    out.Set(member.first, member.first == to ? message[from] : member.second);
    if (member.first == from && !has_null) out.Set(to, member.second);
  }
  return out;
}

// Texts are joined by a blank line; with parts among them, all become parts.
Json Joined(const std::vector<Json>& contents) {
  bool texts = true;
  for (const Json& content : contents) texts = texts && content.is_string();
  std::string text;
  Json parts = Json::Array();
  for (const Json& content : contents) {
    for (const Json& part : content.elements()) parts.Add(part);
    if (!content.is_string() || content.str().empty()) continue;
    text += (text.empty() ? "" : "\n\n") + content.str();
    Json part = Json::Object();
    part.Set("type", "text").Set("text", content);
    parts.Add(std::move(part));
  }
  return texts ? Json(text) : parts;
}

// Decision 39: only the first system message stays one. Later ones directly after it are joined to
// it; the others go into the next user message, unless an answer or the end comes first: then into
// the user message just before, or a new one there.
Json Folded(const Json& messages) {
  struct Kept {
    Json message;
    std::vector<Json> contents;
    bool changed = false;
  };
  std::vector<Kept> kept;
  std::vector<Json> waiting;
  const auto settle = [&] {
    if (waiting.empty()) return;
    if (kept.back().message["role"].str() != "user") {
      Json made = Json::Object();
      kept.push_back({made.Set("role", "user"), {}});
    }
    for (Json& content : waiting) kept.back().contents.push_back(std::move(content));
    kept.back().changed = true;
    waiting.clear();
  };
  for (const Json& message : messages.elements()) {
    const std::string role = message["role"].str();
    if (role == "system" && !kept.empty()) {
      if (kept.size() == 1 && kept[0].message["role"].str() == "system") {
        kept[0].contents.push_back(message["content"]);
        kept[0].changed = true;
      } else {
        waiting.push_back(message["content"]);
      }
      continue;
    }
    if (role == "assistant") settle();
    Kept one{message, {}};
    if (role == "user" && !waiting.empty()) {
      one.contents = std::exchange(waiting, {});
      one.changed = true;
    }
    one.contents.push_back(message["content"]);
    kept.push_back(std::move(one));
  }
  settle();
  Json out = Json::Array();
  for (Kept& one : kept) {
    if (one.changed) one.message.Set("content", Joined(one.contents));
    out.Add(std::move(one.message));
  }
  return out;
}

void AddMessages(Builder& to) {
  Random& random = to.random_;
  Json messages = Json::Array(), expected = Json::Array();
  for (size_t left = random.Between(1, 4); left > 0; --left) {
    const std::string role =
        random.Pick<std::string>({"system", "developer", "user", "assistant", "tool"});
    Json message = Json::Object();
    if (random.Percent(50)) message.Set("role", Json(role));
    if (role == "assistant") {
      if (random.Percent(80)) message.Set("content", random.Percent(30) ? Json() : Content(random));
      if (random.Percent(40)) message.Set("tool_calls", ToolCalls(random));
      if (random.Percent(30)) {
        message.Set("reasoning_content", random.Percent(20) ? Json() : RandomString(random));
      }
      if (random.Percent(30)) {
        message.Set("reasoning", random.Percent(20) ? Json() : RandomString(random));
      }
      if (random.Percent(20)) message.Set("refusal", Json());
    } else {
      message.Set("content", Content(random));
    }
    if (role == "tool") message.Set("tool_call_id", RandomString(random));
    if (random.Percent(15)) message.Set("name", RandomString(random));
    if (random.Percent(15)) message.Set("x_unknown", RandomValue(random));
    if (!message.has("role")) message.Set("role", Json(role));
    Json forwarded = role == "assistant" ? Mirrored(message) : message;
    if (role == "developer") forwarded.Set("role", "system");
    messages.Add(std::move(message));
    expected.Add(std::move(forwarded));
  }
  to.Becomes("messages", std::move(messages), Folded(expected));
}

Json Tool(Random& random, const std::string& name) {
  Json function = Json::Object();
  function.Set("name", Json(name));
  if (random.Percent(50)) function.Set("description", RandomString(random));
  if (random.Percent(80)) function.Set("parameters", RandomJsonObject(random));
  if (random.Percent(30)) function.Set("strict", random.Percent(50) ? Json() : Json(true));
  if (random.Percent(20)) function.Set("x_unknown", RandomValue(random));
  Json tool = Json::Object();
  if (random.Percent(90)) tool.Set("type", "function");
  tool.Set("function", std::move(function));
  return tool;
}

Json Named(const char* type, const std::string& name) {
  Json function = Json::Object();
  function.Set("name", Json(name));
  Json choice = Json::Object();
  choice.Set("type", type).Set("function", std::move(function));
  return choice;
}

void AddTools(Builder& to) {
  Random& random = to.random_;
  const size_t count = random.Below(4);
  Json tools = Json::Array();
  for (size_t i = 0; i < count; ++i) tools.Add(Tool(random, "tool_" + std::to_string(i)));
  if (count == 0) {  // engines refuse an empty list, and a choice without one
    to.Dropped("tools", std::move(tools));
    if (random.Percent(50)) to.Dropped("tool_choice", random.Pick<const char*>({"auto", "none"}));
    return;
  }
  switch (random.Below(4)) {
    case 0:
      to.Same("tools", std::move(tools));
      return;
    case 1:
      to.Same("tools", std::move(tools));
      to.Same("tool_choice", random.Pick<const char*>({"auto", "none", "required"}));
      return;
    case 2:
      to.Same("tools", std::move(tools));
      to.Same("tool_choice", Named("function", "tool_0"));
      return;
    default: {  // allowed_tools: these tools only, and the mode as the choice
      Json kept = Json::Array(), names = Json::Array();
      for (size_t i = 0; i < count; ++i) {
        if (i > 0 && random.Percent(50)) continue;
        kept.Add(tools[i]);
        names.Add(Named("function", "tool_" + std::to_string(i)));
      }
      const Json mode(random.Pick<const char*>({"auto", "required"}));
      Json allowed = Json::Object();
      allowed.Set("mode", mode).Set("tools", std::move(names));
      Json choice = Json::Object();
      choice.Set("type", "allowed_tools").Set("allowed_tools", std::move(allowed));
      to.Becomes("tools", std::move(tools), std::move(kept));
      to.Becomes("tool_choice", std::move(choice), mode);
    }
  }
}

// max_completion_tokens wins over max_tokens, in any order.
void AddBudget(Builder& to, bool chat) {
  static constexpr std::initializer_list<Spelled> kSpellings = {
      {"1", 1}, {"7.0", 7}, {"1e1", 10}, {"250E-1", 25}, {"100000000000", 100000000000}};
  Random& random = to.random_;
  if (random.Percent(40)) {
    const Spelled chosen = random.Pick(kSpellings);
    to.Dropped("max_tokens", Number(chosen.text));
    to.made_.max_tokens = chosen.value;
  } else if (random.Percent(20)) {
    to.Dropped("max_tokens", Json());
  }
  // Completions have no max_completion_tokens.
  if (!random.Percent(30)) return;
  const Spelled chosen = random.Pick(kSpellings);
  const bool null = random.Percent(20);
  to.Dropped("max_completion_tokens", null ? Json() : Number(chosen.text));
  if (chat && !null) to.made_.max_tokens = chosen.value;
}

}  // namespace

ForwardCase RandomChatRequest(Random& random) {
  Builder to(random);
  to.Dropped("model", RandomString(random));
  AddMessages(to);
  to.Common();
  AddBudget(to, true);
  if (random.Percent(50)) AddTools(to);
  if (random.Percent(20)) {
    to.made_.choices = static_cast<int>(to.Integer("n", {{"1", 1}, {"2.0", 2}, {"1.28e2", 128}}));
  }
  if (random.Percent(20)) {
    to.Same("logprobs", true);
    to.Integer("top_logprobs", {{"0", 0}, {"20", 20}, {"2e1", 20}});
  }
  if (random.Percent(20)) to.Same("parallel_tool_calls", Json(random.Percent(50)));
  if (random.Percent(20)) to.Same("reasoning_effort", "low");
  if (random.Percent(20)) {
    Json schema = Json::Object();
    schema.Set("name", "s").Set("schema", RandomJsonObject(random)).Set("strict", Json());
    Json format = Json::Object();
    format.Set("type", "json_schema").Set("json_schema", std::move(schema));
    to.Same("response_format", std::move(format));
  }
  for (const char* name : {"verbosity", "prediction", "modalities"}) {
    if (random.Percent(8)) to.Dropped(name, RandomValue(random));
  }
  return to.Take();
}

ForwardCase RandomCompletionsRequest(Random& random) {
  Builder to(random);
  to.Dropped("model", RandomString(random));
  Json prompt;
  int prompts = 1;
  switch (random.Below(4)) {
    case 0:
      prompt = RandomString(random);
      break;
    case 1:
      prompt = Json::Array();
      prompts = static_cast<int>(random.Between(1, 3));
      for (int i = 0; i < prompts; ++i) prompt.Add(RandomString(random));
      break;
    case 2:
      prompt = *Json::Parse("[0,17,2147483647]");
      break;
    default:
      prompt = *Json::Parse("[[1],[2,3]]");
      prompts = 2;
  }
  to.Same("prompt", std::move(prompt));
  to.Common();
  to.made_.max_tokens = 16;  // the public format's default
  AddBudget(to, false);
  int n = 1;
  if (random.Percent(20))
    n = static_cast<int>(to.Integer("n", {{"1", 1}, {"2.0", 2}, {"1e1", 10}}));
  to.made_.choices = prompts * n;
  if (random.Percent(20)) to.Integer("logprobs", {{"0", 0}, {"5.0", 5}, {"5", 5}});
  if (random.Percent(20)) to.Same("echo", Json(random.Percent(50)));
  if (random.Percent(20)) to.Same("suffix", RandomString(random));
  return to.Take();
}

}  // namespace tollgate::fuzz
