#include "services/inference_router/count/tokenizer_call.h"

#include <algorithm>

#include "common/engines/kinds.h"
#include "common/json/json.h"
#include "services/inference_router/engine/engine_text.h"
#include "services/inference_router/engine/reasoning_members.h"

namespace tollgate::inference_router {
namespace {

using catalog::v1::EngineKind;

// The most tokens that a tokenizer adds at the beginning and end of a text.
constexpr int64_t kTokensAroundText = 16;

// Responses hold one to five values per token.
json::Limits ResponseLimits() {
  json::Limits limits;
  limits.max_values = 2'000'000;
  limits.allow_lone_surrogates = true;
  limits.allow_nul = true;
  return limits;
}

std::string Braced(std::string_view members) {
  std::string object;
  object.reserve(members.size() + 2);
  object += '{';
  object += members;
  object += '}';
  return object;
}

std::string BodyOf(std::string_view engine_model, std::string_view members) {
  std::string body;
  body.reserve(members.size() + engine_model.size() + 16);
  body += R"({"model":)";
  json::AppendQuoted(body, engine_model);
  if (!members.empty()) {
    body += ',';
    body += members;
  }
  body += '}';
  return body;
}

// The source text of a member, including its key.
std::string_view RawMember(std::string_view text, const json::Value& value) {
  return text.substr(value.key_offset(), value.offset() + value.raw().size() - value.key_offset());
}

void AppendMember(std::string& out, std::string_view member) {
  if (!out.empty() && out.back() != '{') out += ',';
  out += member;
}

// vLLM passes these members to the chat template, but its tokenizer endpoint accepts them only in
// chat_template_kwargs. They take precedence over arguments of the same name there.
constexpr std::string_view kTemplateMembers[] = {"reasoning_effort", "documents"};
constexpr std::string_view kTemplateArguments = "chat_template_kwargs";

std::string MoveTemplateMembers(std::string_view members) {
  bool may_hold = false;
  for (const std::string_view name : kTemplateMembers) {
    may_hold = may_hold || members.find(name) != std::string_view::npos;
  }
  if (!may_hold) return std::string(members);
  const auto document = json::Document::Parse(Braced(members), ResponseLimits());
  if (!document.ok()) return std::string(members);
  const json::Value root = document->root();
  const std::string_view text = document->text();
  const auto moves = [&](const json::Value& member) {
    for (const std::string_view name : kTemplateMembers) {
      if (member.KeyEquals(name) && root.Find(name)) return true;
    }
    return false;
  };
  std::string rest, arguments = "{";
  for (const json::Value argument : root.Find(kTemplateArguments)) {
    if (!moves(argument)) AppendMember(arguments, RawMember(text, argument));
  }
  for (const json::Value member : root) {
    if (moves(member)) {
      AppendMember(arguments, RawMember(text, member));
    } else if (!member.KeyEquals(kTemplateArguments)) {
      AppendMember(rest, RawMember(text, member));
    }
  }
  if (arguments.size() == 1) return rest;
  AppendMember(rest, json::Quoted(kTemplateArguments) + ":" + arguments + "}");
  return rest;
}

}  // namespace

TokenizerCall ChatCall(EngineKind kind, std::string_view engine_model, std::string_view members,
                       const inference::v1::Reasoning& reasoning) {
  const auto fitted = FitText(kind, members);
  if (fitted) members = *fitted;
  std::string all = ReasoningMembers(kind, reasoning);
  if (!all.empty()) {
    if (!members.empty()) all += ',';
    all += members;
    members = all;
  }
  const engines::Tokenizer& tokenizer = engines::Of(kind).tokenizer;
  return {std::string(tokenizer.chat_path),
          BodyOf(engine_model, tokenizer.template_members_nested ? MoveTemplateMembers(members)
                                                                 : std::string(members))};
}

TokenizerCall PromptCall(EngineKind kind, std::string_view engine_model,
                         std::string_view prompt_json) {
  const engines::Tokenizer& tokenizer = engines::Of(kind).tokenizer;
  std::string members = json::Quoted(tokenizer.prompt_member) + ":";
  const auto fitted = FitText(kind, prompt_json);
  members += fitted ? std::string_view(*fitted) : prompt_json;
  members += tokenizer.prompt_options;
  return {std::string(tokenizer.prompt_path),
          tokenizer.prompt_names_model ? BodyOf(engine_model, members) : Braced(members)};
}

std::optional<int64_t> ReadCount(EngineKind kind, std::string_view body) {
  const auto document = json::Document::ParseView(body, ResponseLimits());
  if (!document.ok()) return std::nullopt;
  json::Value tokens = document->root();
  switch (engines::Of(kind).tokenizer.count) {
    case engines::TokenCount::kTokensMember:
      tokens = tokens.Find("tokens");
      break;
    case engines::TokenCount::kArray:
      if (tokens.is_object()) tokens = tokens.Find("tokenize_response");
      break;
    case engines::TokenCount::kCountMember: {
      const std::optional<int64_t> count = tokens.Find("count").Integer();
      return count && *count >= 0 ? count : std::nullopt;
    }
  }
  if (!tokens.is_array()) return std::nullopt;
  return static_cast<int64_t>(tokens.size());
}

std::optional<std::string> ReadTemplated(std::string_view body) {
  const auto document = json::Document::ParseView(body, ResponseLimits());
  if (!document.ok() || !document->root().Find("prompt").is_string()) return std::nullopt;
  return std::string(document->root().Find("prompt").raw());
}

std::optional<Prompts> ReadPrompts(inference::v1::RequestKind kind, std::string_view members,
                                   int64_t only_above) {
  const auto document = json::Document::Parse(Braced(members), ResponseLimits());
  if (!document.ok()) return std::nullopt;
  const bool embedding = kind == inference::v1::REQUEST_KIND_EMBEDDING;
  const json::Value prompt = document->root().Find(embedding ? "input" : "prompt");
  const auto may_exceed = [only_above](json::Value text) {
    const auto bytes = static_cast<int64_t>(text.raw_string().size());
    return only_above <= 0 || bytes + kTokensAroundText > only_above;
  };
  Prompts prompts;
  if (prompt.is_string()) {
    prompts.texts.emplace_back(prompt.raw());
    return prompts;
  }
  if (!prompt.is_array()) return std::nullopt;
  for (const json::Value one : prompt) {
    if (one.is_string()) {
      if (may_exceed(one)) prompts.texts.emplace_back(one.raw());
    } else if (one.is_array()) {
      prompts.tokens += static_cast<int64_t>(one.size());
      prompts.longest_tokens = std::max(prompts.longest_tokens, static_cast<int64_t>(one.size()));
    } else if (one.is_number()) {
      prompts.longest_tokens = ++prompts.tokens;
    } else {
      return std::nullopt;
    }
  }
  return prompts;
}

}  // namespace tollgate::inference_router
