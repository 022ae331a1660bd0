#include "tests/support/sim_plan.h"

#include <algorithm>

#include "tests/support/sim_completions.h"
#include "tests/support/sim_embeddings.h"
#include "tests/support/sim_text.h"
#include "tests/support/sim_tokenizer.h"

namespace tollgate::test {
namespace {

SimError Bad(std::string message, std::string param = "") {
  return {400, "BadRequestError", std::move(message), std::move(param)};
}

std::string TextOfContent(const Json& content) {
  if (content.is_string()) return content.str();
  std::string text;
  for (const Json& part : content.elements()) text += part["text"].str();
  return text;
}

// The script in a request: its member "x_sim", or, for surfaces that forward no unknown member to
// the engine, the JSON after "x_sim:" in its last message.
Json OwnScript(const Json& body) {
  if (body.has("x_sim")) return body["x_sim"];
  constexpr std::string_view kMark = "x_sim:";
  const Json& messages = body["messages"];
  if (messages.size() == 0) return Json();
  const std::string text = TextOfContent(messages[messages.size() - 1]["content"]);
  if (text.rfind(kMark, 0) != 0) return Json();
  return Json::Parse(text.substr(kMark.size())).value_or(Json());
}

// The same bytes in pieces of that size, also within an event, a line or a character.
std::vector<std::string> CutEvery(size_t bytes, const std::vector<std::string>& chunks) {
  std::string all;
  for (const std::string& chunk : chunks) all += chunk;
  std::vector<std::string> pieces;
  for (size_t at = 0; at < all.size(); at += bytes) pieces.push_back(all.substr(at, bytes));
  return pieces;
}

// The request's own script over the default script, member by member.
class ScriptReader {
 public:
  ScriptReader(const Json& request, const Json& otherwise)
      : request_(request), otherwise_(otherwise) {}
  const Json& operator[](const char* key) const {
    return request_.has(key) ? request_[key] : otherwise_[key];
  }
  bool has(const char* key) const { return !(*this)[key].is_null(); }
  Json Pick(std::initializer_list<const char*> keys) const {
    Json picked = Json::Object();
    for (const char* key : keys) picked.Set(key, (*this)[key]);
    return picked;
  }
  int64_t integer(const char* key, int64_t otherwise) const {
    return (*this)[key].integer(otherwise);
  }

 private:
  const Json& request_;
  const Json& otherwise_;
};

std::string ScriptedUsage(const Json& usage) {
  if (usage.is_object()) return usage.Dump();
  if (usage.str() == "absurd") {
    return R"({"prompt_tokens":900000000,"completion_tokens":900000000,"total_tokens":1800000000})";
  }
  if (usage.str() == "negative") {
    return R"({"prompt_tokens":-7,"completion_tokens":-3,"total_tokens":-10})";
  }
  return usage.str();
}

void ReadScript(const ScriptReader& from, const EngineSimOptions& options, SimScript& script) {
  script.delay_ms = from.integer("delay_ms", options.first_token_ms);
  script.token_ms = from["token_ms"].number(options.token_ms);
  script.status = static_cast<int>(from.integer("status", 0));
  script.status_times = from.integer("status_times", -1);
  if (const Json& body = from["error_body"]; !body.is_null()) {
    script.error_body = body.is_string() ? body.str() : body.Dump();
  }
  for (const Json::Member& header : from["headers"].members()) {
    script.headers.emplace_back(
        header.first, header.second.is_string() ? header.second.str() : header.second.Dump());
  }
  script.cut_after = from.integer("cut_after_tokens", -1);
  script.ignore_max_tokens = from["ignore_max_tokens"].boolean();
  script.hang_after = from.integer("hang_after_tokens", -1);
  if (const Json& error = from["in_stream_error"]; !error.is_null()) {
    script.error_event = error.is_object()
                             ? error.Dump()
                             : R"({"message":)" + JsonQuoted(error.str()) +
                                   R"(,"type":"InternalServerError","param":null,"code":500})";
    script.error_after = from.integer("in_stream_error_after", 1'000'000'000);
  }
  script.cut_before_headers = from["cut_before_headers"].boolean();
  script.late_headers = from["late_headers"].boolean();
  script.no_done = from["no_done"].boolean();
  if (const Json& usage = from["usage"]; !usage.is_null()) {
    if (usage.str() == "none")
      script.no_usage = true;
    else
      script.usage = ScriptedUsage(usage);
  }
  script.cached_tokens = from.integer("cached_tokens", -1);
  script.tag = from["tag"].str();
  for (const Json& chunk : from["raw_chunks"].elements()) {
    script.raw_chunks.push_back(chunk.is_string() ? chunk.str() : "data: " + chunk.Dump() + "\n\n");
  }
  script.repeat_last = from.integer("repeat_last", 0);
  script.raw_type = from["raw_type"].str();
  script.marked = from["marked"].boolean();
  script.fault = from["fault"].str();
  if (from.has("raw_response")) script.raw_response = from["raw_response"].str();
  script.raw_after = from.integer("raw_after_tokens", -1);
  script.raw_end = from["raw_end"].str();
  script.cut_reset = from["cut_reset"].boolean();
  script.behind = from["behind"].str();
  if (const int64_t bytes = from.integer("split_bytes", 0); bytes > 0)
    script.raw_chunks = CutEvery(static_cast<size_t>(bytes), script.raw_chunks);
}

struct WantedCall {
  std::string name;
  std::string arguments;
};

const Json& ToolNamed(const Json& tools, std::string_view name) {
  for (const Json& tool : tools.elements()) {
    if (tool["function"]["name"].str() == name) return tool["function"];
  }
  static const Json kNone;
  return kNone;
}

WantedCall CallOf(const Json& function, uint64_t seed) {
  return {function["name"].str(), InstanceOfSchema(function["parameters"], seed).Dump()};
}

// The rule for tools: the calls of a script with calls or a text, else a forced choice, else (with
// "auto") the tools that are named in the last message, if that is the user's.
std::vector<WantedCall> WantedCalls(const Json& body, const ScriptReader& script, uint64_t seed) {
  std::vector<WantedCall> calls;
  for (const Json& call : script["tool_calls"].elements()) {
    const Json& arguments = call["arguments"];
    calls.push_back(
        {call["name"].str(), arguments.is_string() ? arguments.str() : arguments.Dump()});
  }
  const Json& tools = body["tools"];
  const Json& choice = body["tool_choice"];
  const bool scripted = !calls.empty() || script.has("text");
  if (scripted || tools.size() == 0 || choice.str() == "none") return calls;
  if (choice.is_object()) {
    calls.push_back(CallOf(ToolNamed(tools, choice["function"]["name"].str()), seed));
    return calls;
  }
  const Json& messages = body["messages"];
  const Json& last = messages[messages.size() - 1];
  if (last["role"].str() == "user") {
    const std::string text = TextOfContent(last["content"]);
    for (const Json& tool : tools.elements()) {
      const std::string& name = tool["function"]["name"].str();
      if (text.find(name) != std::string::npos) calls.push_back(CallOf(tool["function"], seed));
    }
  }
  if (calls.empty() && choice.str() == "required")
    calls.push_back(CallOf(tools[0]["function"], seed));
  return calls;
}

// The JSON that a structured-output request requires; empty when it requires none.
std::string WantedJson(const Json& body, uint64_t seed) {
  const Json& format = body["response_format"];
  if (format["type"].str() == "json_schema") {
    return InstanceOfSchema(format["json_schema"]["schema"], seed).Dump();
  }
  if (format["type"].str() == "json_object") return R"({"answer": "simulated", "ok": true})";
  if (body["guided_json"].is_object()) return InstanceOfSchema(body["guided_json"], seed).Dump();
  return "";
}

std::vector<std::string> StopStrings(const Json& stop) {
  std::vector<std::string> strings;
  if (stop.is_string() && !stop.str().empty()) strings.push_back(stop.str());
  for (const Json& one : stop.elements()) {
    if (!one.str().empty()) strings.push_back(one.str());
  }
  return strings;
}

// Cuts the segment before the first stop string; true when there was one.
bool ApplyStop(const std::vector<std::string>& stops, SimSegment& segment) {
  if (segment.pieces.empty()) {
    for (int64_t i = 0; i < segment.count; ++i) {
      segment.pieces.push_back(GeneratedToken(segment.seed, i).text);
    }
  }
  std::string text;
  for (const std::string& piece : segment.pieces) text += piece;
  size_t cut = std::string::npos;
  for (const std::string& stop : stops) cut = std::min(cut, text.find(stop));
  if (cut == std::string::npos) return false;
  segment.pieces = SplitTokens(std::string_view(text).substr(0, cut));
  segment.count = static_cast<int64_t>(segment.pieces.size());
  return true;
}

SimSegment PiecesSegment(SimSegment::Kind kind, std::string_view text) {
  SimSegment segment;
  segment.kind = kind;
  segment.pieces = SplitTokens(text);
  segment.count = static_cast<int64_t>(segment.pieces.size());
  return segment;
}

SimSegment GeneratedSegment(SimSegment::Kind kind, uint64_t seed, int64_t count) {
  SimSegment segment;
  segment.kind = kind;
  segment.seed = seed;
  segment.count = count;
  return segment;
}

SimChoice MakeChoice(const Json& body, const ScriptReader& script, const EngineSimOptions& options,
                     uint64_t seed, int64_t budget) {
  SimChoice choice;
  choice.finish_reason = "stop";
  const bool think = body["chat_template_kwargs"]["enable_thinking"].boolean(true);
  const int64_t reasoning = script.integer("reasoning_tokens", options.reasoning_tokens);
  if (reasoning > 0 && think) {
    choice.segments.push_back(
        GeneratedSegment(SimSegment::Kind::kReasoning, MixHash(7, seed), reasoning));
  }
  const std::vector<WantedCall> calls = WantedCalls(body, script, seed);
  const std::string json = WantedJson(body, seed);
  if (script.has("text")) {
    choice.segments.push_back(PiecesSegment(SimSegment::Kind::kText, script["text"].str()));
  } else if (calls.empty() && !json.empty()) {
    choice.segments.push_back(PiecesSegment(SimSegment::Kind::kText, json));
  } else if (calls.empty()) {
    choice.segments.push_back(
        GeneratedSegment(SimSegment::Kind::kText, seed, script.integer("tokens", options.tokens)));
  }
  for (size_t i = 0; i < calls.size(); ++i) {
    SimSegment segment = PiecesSegment(SimSegment::Kind::kTool, calls[i].arguments);
    segment.count += 1;  // the token that opens the call
    segment.tool_index = static_cast<int>(i);
    segment.tool_name = calls[i].name;
    segment.tool_id = "call_" + std::to_string(MixHash(i, seed));
    choice.segments.push_back(std::move(segment));
    // vLLM sends "stop" after a call forced by name.
    choice.finish_reason = body["tool_choice"].is_object() ? "stop" : "tool_calls";
  }
  const std::vector<std::string> stops = StopStrings(body["stop"]);
  for (SimSegment& segment : choice.segments) {
    if (segment.kind == SimSegment::Kind::kText && !stops.empty()) ApplyStop(stops, segment);
  }
  for (SimSegment& segment : choice.segments) {
    if (segment.count > budget) {
      segment.count = std::max<int64_t>(budget, 0);
      choice.finish_reason = "length";
    }
    budget -= segment.count;
  }
  std::erase_if(choice.segments, [](const SimSegment& segment) { return segment.count == 0; });
  if (script.has("finish_reason")) choice.finish_reason = script["finish_reason"].str();
  return choice;
}

// Only members that affect the answer count, so that the same request gets the same answer,
// streamed or not.
uint64_t SeedOf(const Json& body, uint64_t seed) {
  uint64_t hash = MixHash(static_cast<uint64_t>(body["seed"].integer(0)), seed);
  hash = MixHash(body["model"].str(), hash);
  if (body.has("suffix")) hash = MixHash(body["suffix"].str(), hash);
  for (const Json& message : body["messages"].elements()) {
    hash = MixHash(message["role"].str(), hash);
    hash = MixHash(TextOfContent(message["content"]), hash);
  }
  return hash;
}

std::optional<SimError> CheckWindow(int64_t window, int64_t prompt, const Json& wanted) {
  const int64_t output = wanted.integer(0);
  if (prompt + output <= window && prompt < window) return std::nullopt;
  const std::string limit = std::to_string(window);
  SimError error = Bad(
      "This model's maximum context length is " + limit + " tokens. However, you requested " +
          std::to_string(output) + " output tokens and your prompt contains at least " +
          std::to_string(prompt) + " input tokens, for a total of at least " +
          std::to_string(prompt + output) +
          " tokens. Please reduce the length of the input prompt or the number of requested output "
          "tokens.",
      "input_tokens");
  return error;
}

// A choice per prompt and n; as in older vLLM, candidates that best_of discards count.
void CompletePrompts(const Json& body, const ScriptReader& script, const EngineSimOptions& options,
                     int64_t budget, SimPlan& plan) {
  const int64_t n = std::clamp<int64_t>(body["n"].integer(1), 1, 128);
  const int64_t best_of = std::max(body["best_of"].integer(n), n);
  for (const Json& prompt : InputsOf(body["prompt"])) {
    const std::string text = TextOfPrompt(prompt);
    const uint64_t seed = MixHash(text, SeedOf(body, options.seed));
    for (int64_t i = 0; i < best_of; ++i) {
      SimChoice choice =
          MakeChoice(body, script, options, MixHash(static_cast<uint64_t>(i), seed), budget);
      if (i < n) {
        if (body["echo"].boolean()) choice.echo = text;
        choice.prompt_tokens = CountPrompt(Json::Object().Set("prompt", prompt));
        plan.choices.push_back(std::move(choice));
      } else {
        for (const SimSegment& segment : choice.segments) plan.unseen_tokens += segment.count;
      }
    }
  }
}

// Tokens of the longest prompt: the window applies to each.
int64_t LongestPrompt(const Json& body, int64_t all) {
  const std::vector<Json> prompts = InputsOf(body["prompt"]);
  if (prompts.size() < 2) return all;
  int64_t longest = 0;
  for (const Json& prompt : prompts) {
    longest = std::max(longest, CountPrompt(Json::Object().Set("prompt", prompt)));
  }
  return longest;
}

std::optional<SimError> CheckShape(const Json& body, SimKind kind,
                                   const EngineSimOptions& options) {
  if (!body.is_object()) return Bad("the body is not a JSON object");
  const std::string& model = body["model"].str();
  if (std::find(options.models.begin(), options.models.end(), model) == options.models.end()) {
    return SimError{404, "NotFoundError", "The model `" + model + "` does not exist.", "model"};
  }
  if (kind == SimKind::kChat && (!body["messages"].is_array() || body["messages"].size() == 0)) {
    return Bad("messages: Field required", "messages");
  }
  if (kind == SimKind::kCompletion && !body.has("prompt")) {
    return Bad("prompt: Field required", "prompt");
  }
  if (kind == SimKind::kEmbedding && !body.has("input")) {
    return Bad("input: Field required", "input");
  }
  return std::nullopt;
}

std::optional<SimError> PlanEmbedding(const Json& body, const ScriptReader& script,
                                      const EngineSimOptions& options, SimPlan& plan) {
  if (auto error = CheckEmbedding(body, options.context_window)) return error;
  const std::string tokens = std::to_string(plan.prompt_tokens);
  std::string usage = plan.script.usage.value_or(
      "{\"prompt_tokens\":" + tokens + ",\"total_tokens\":" + tokens + ",\"completion_tokens\":0}");
  if (plan.script.no_usage) usage.clear();
  plan.stream = false;
  plan.body = EmbeddingBody(
      body, script.Pick({"embedding_format", "embedding_order", "embedding_missing"}), usage);
  return std::nullopt;
}

// Each token contains its mark: "[engine.request.tag.place]".
void MarkTokens(SimPlan& plan) {
  const std::string begin = "[" + plan.mark + "." + plan.script.tag + ".";
  for (SimChoice& choice : plan.choices) {
    int64_t place = 0;
    for (SimSegment& segment : choice.segments) {
      if (segment.kind == SimSegment::Kind::kTool) continue;
      segment.pieces.clear();
      for (int64_t i = 0; i < segment.count; ++i) {
        segment.pieces.push_back(begin + std::to_string(place++) + "]");
      }
    }
  }
}

void Replace(std::string& text, std::string_view what, const std::string& by) {
  for (size_t at = 0; (at = text.find(what, at)) != std::string::npos; at += by.size()) {
    text.replace(at, what.size(), by);
  }
}

}  // namespace

std::string SimPlan::Filled(const std::string& text) const {
  constexpr size_t kFill = 5 << 20;
  std::string filled = text;
  Replace(filled, "{mark}", mark + "." + script.tag);
  if (filled.find("{fill}") != std::string::npos) {
    Replace(filled, "{fill}", std::string(kFill, 'x'));
  }
  return filled;
}

int64_t SimPlan::steps() const {
  int64_t most = 0;
  for (const SimChoice& choice : choices) {
    int64_t count = 0;
    for (const SimSegment& segment : choice.segments) count += segment.count;
    most = std::max(most, count);
  }
  return most;
}

std::optional<SimError> MakePlan(const Json& body, SimKind kind, const EngineSimOptions& options,
                                 const Json& default_script, SimPlan& plan,
                                 std::map<std::string, int64_t>* refused, const Json& fault) {
  if (auto error = CheckShape(body, kind, options)) return error;
  Json own_script = OwnScript(body);
  for (const Json::Member& member : fault.members()) own_script.Set(member.first, member.second);
  const ScriptReader script(own_script, default_script);
  const bool chat = kind == SimKind::kChat;
  plan.chat = chat;
  plan.stream = body["stream"].boolean();
  plan.include_usage = body["stream_options"]["include_usage"].boolean();
  plan.continuous_usage =
      plan.include_usage && body["stream_options"]["continuous_usage_stats"].boolean();
  plan.logprobs = chat ? body["logprobs"].boolean() : body["logprobs"].is_number();
  plan.flat_errors = options.flat_errors;
  plan.reasoning_field = options.reasoning_field;
  plan.model = body["model"].str();
  plan.prompt_tokens = kind == SimKind::kEmbedding ? CountInput(body) : CountPrompt(body);
  ReadScript(script, options, plan.script);
  if (refused != nullptr && plan.script.status_times >= 0 &&
      (*refused)[plan.script.tag]++ >= plan.script.status_times) {
    plan.script.status = 0;
  }
  if (plan.script.status != 0) return std::nullopt;
  // An engine with such a script streams every request.
  plan.stream |= !plan.script.raw_chunks.empty() || !plan.script.error_event.empty();
  if (kind == SimKind::kEmbedding) {
    auto error = PlanEmbedding(body, script, options, plan);
    plan.stream = !plan.script.raw_chunks.empty();
    return error;
  }

  const Json& wanted = body["max_completion_tokens"].is_number() ? body["max_completion_tokens"]
                                                                 : body["max_tokens"];
  if (wanted.is_number() && wanted.integer() < 1) {
    return Bad("max_tokens must be at least 1, got " + wanted.number_text() + ".", "max_tokens");
  }
  const int64_t prompt = LongestPrompt(body, plan.prompt_tokens);
  if (auto error = CheckWindow(options.context_window, prompt, wanted)) return error;
  const int64_t rest = options.context_window - prompt;
  const int64_t budget = wanted.is_number() && !plan.script.ignore_max_tokens
                             ? wanted.integer()
                             : (chat ? rest : std::min<int64_t>(rest, 16));
  if (!chat) {
    CompletePrompts(body, script, options, budget, plan);
    if (plan.script.marked) MarkTokens(plan);
    return std::nullopt;
  }
  const int64_t n = std::clamp<int64_t>(body["n"].integer(1), 1, 128);
  const uint64_t seed = SeedOf(body, options.seed);
  for (int64_t i = 0; i < n; ++i) {
    plan.choices.push_back(
        MakeChoice(body, script, options, MixHash(static_cast<uint64_t>(i), seed), budget));
    plan.choices.back().prompt_tokens = plan.prompt_tokens;
  }
  if (plan.script.marked) MarkTokens(plan);
  return std::nullopt;
}

}  // namespace tollgate::test
