#include "tests/support/sim_tokenizer.h"

#include <algorithm>

#include "tests/support/sim_text.h"

namespace tollgate::test {
namespace {

// Tokens that the simulated chat template adds per message, per chat and per image.
constexpr char kBeforeMessage[] = " <|im|> role : >";
constexpr char kAfterChat[] = " <|im|> assistant :";
constexpr int64_t kTokensPerMessage = 4;
constexpr int64_t kTokensPerChat = 3;
constexpr int64_t kTokensPerImage = 85;

// Other members that the template reads; they may also be among the template's arguments.
const Json& TemplateArgument(const Json& body, const char* name) {
  const Json& own = body[name];
  return own.is_null() ? body["chat_template_kwargs"][name] : own;
}

std::string AsText(const Json& value) {
  if (value.is_null() || (!value.is_string() && value.size() == 0)) return "";
  return value.is_string() ? value.str() : value.Dump();
}

void AppendText(std::string& prompt, const std::string& text) {
  if (!text.empty()) prompt += " " + text;
}

// The prompt of a chat as text. Its tokens are those that CountPrompt counts.
std::string ApplyTemplate(const Json& body) {
  std::string prompt;
  for (const char* name : {"tools", "documents", "reasoning_effort"}) {
    AppendText(prompt, AsText(TemplateArgument(body, name)));
  }
  for (const Json& message : body["messages"].elements()) {
    prompt += kBeforeMessage;
    const Json& content = message["content"];
    if (content.is_string()) AppendText(prompt, content.str());
    for (const Json& part : content.elements()) {
      if (part.has("text")) AppendText(prompt, part["text"].str());
      for (int64_t i = 0; !part.has("text") && i < kTokensPerImage; ++i) prompt += " <img>";
    }
    AppendText(prompt, AsText(message["tool_calls"]));
  }
  return prompt + kAfterChat;
}

int64_t CountContent(const Json& content) {
  if (content.is_string()) return CountTokens(content.str());
  int64_t count = 0;
  for (const Json& part : content.elements()) {
    count += part.has("text") ? CountTokens(part["text"].str()) : kTokensPerImage;
  }
  return count;
}

SimTokenizerAnswer BadCall(const std::string& message) {
  return {400, R"({"error":{"message":)" + JsonQuoted(message) +
                   R"(,"type":"BadRequestError","param":null,"code":400}})"};
}

std::string TokenIds(int64_t count) {
  std::string ids = "[";
  for (int64_t i = 0; i < count; ++i) ids += (i == 0 ? "" : ",") + std::to_string(i + 1);
  return ids + "]";
}

SimTokenizerAnswer Counted(const EngineSimOptions& options, int64_t count) {
  return {200, "{\"count\":" + std::to_string(count) +
                   ",\"max_model_len\":" + std::to_string(options.context_window) +
                   ",\"tokens\":" + TokenIds(count) + ",\"token_strs\":null}"};
}

// vLLM: its tokenizer takes template members only as template arguments.
SimTokenizerAnswer AskVllm(const EngineSimOptions& options, const Json& body) {
  if (!body["messages"].is_array() && !body["prompt"].is_string()) return BadCall("Field required");
  Json seen = Json::Object();
  for (const Json::Member& member : body.members()) {
    if (member.first == "reasoning_effort" || member.first == "documents") continue;
    seen.Set(member.first, member.second);
  }
  return Counted(options, CountPrompt(seen));
}

SimTokenizerAnswer AskSglang(const EngineSimOptions& options, const Json& body) {
  const bool chats = body["messages"].is_array() && options.dialect != SimDialect::kSglangOld;
  if (!chats && body["prompt"].is_null()) return BadCall("prompt: Field required");
  return Counted(options, CountPrompt(body));
}

std::string TgiTokens(const std::string& text) {
  std::string list = "[";
  int64_t at = 0;
  for (const std::string& token : SplitTokens(text)) {
    if (at > 0) list += ',';
    const int64_t end = at + static_cast<int64_t>(token.size());
    list += "{\"id\":7,\"text\":" + JsonQuoted(token) + ",\"start\":" + std::to_string(at) +
            ",\"stop\":" + std::to_string(end) + "}";
    at = end;
  }
  return list + "]";
}

}  // namespace

int64_t CountPrompt(const Json& body) {
  int64_t count = 0;
  const Json& prompt = body["prompt"];
  if (prompt.is_string()) return std::max<int64_t>(1, CountTokens(prompt.str()));
  if (prompt.is_array()) {
    for (const Json& one : prompt.elements()) {
      const auto ids = static_cast<int64_t>(one.is_array() ? one.size() : 1);
      count += one.is_string() ? CountTokens(one.str()) : ids;
    }
    return std::max<int64_t>(1, count);
  }
  for (const Json& message : body["messages"].elements()) {
    count += kTokensPerMessage + CountContent(message["content"]);
    if (message["tool_calls"].size() > 0) count += CountTokens(message["tool_calls"].Dump());
  }
  for (const char* name : {"tools", "documents", "reasoning_effort"}) {
    count += CountTokens(AsText(TemplateArgument(body, name)));
  }
  return count + kTokensPerChat;
}

std::optional<SimTokenizerAnswer> AnswerTokenizer(const EngineSimOptions& options,
                                                  const std::string& path, const Json& body) {
  const bool tokenizes = path == "/tokenize";
  switch (options.dialect) {
    case SimDialect::kVllm:
      if (tokenizes) return AskVllm(options, body);
      break;
    case SimDialect::kSglang:
    case SimDialect::kSglangOld:
      if (tokenizes) return AskSglang(options, body);
      break;
    case SimDialect::kLlamaCpp:
      if (path == "/apply-template") {
        if (!body["messages"].is_array()) return BadCall("'messages' is required");
        return SimTokenizerAnswer{200, R"({"prompt":)" + JsonQuoted(ApplyTemplate(body)) + "}"};
      }
      if (tokenizes) {
        // Without special tokens the template's text differs from the model's prompt.
        if (!body["add_special"].boolean() || !body["parse_special"].boolean()) {
          return SimTokenizerAnswer{200, R"({"tokens":[]})"};
        }
        return SimTokenizerAnswer{
            200, R"({"tokens":)" + TokenIds(CountTokens(body["content"].str())) + "}"};
      }
      break;
    case SimDialect::kTgi:
      if (path == "/chat_tokenize") {
        const std::string text = ApplyTemplate(body);
        return SimTokenizerAnswer{200, R"({"tokenize_response":)" + TgiTokens(text) +
                                           R"(,"templated_text":)" + JsonQuoted(text) + "}"};
      }
      if (tokenizes) return SimTokenizerAnswer{200, TgiTokens(body["inputs"].str())};
      break;
    case SimDialect::kNone:
      break;
  }
  return std::nullopt;
}

}  // namespace tollgate::test
