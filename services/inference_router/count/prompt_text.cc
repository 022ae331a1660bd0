#include "services/inference_router/count/prompt_text.h"

#include <algorithm>

#include "common/base/ascii.h"
#include "common/json/json.h"

namespace tollgate::inference_router {
namespace {

constexpr int64_t kMostWordsPerToken = 8;

json::Limits MemberLimits() {
  json::Limits limits;
  limits.allow_lone_surrogates = true;
  limits.allow_nul = true;
  return limits;
}

// Returns null for a part of another kind.
json::Value TextOf(json::Value part) {
  return part.Find("type").StringEquals("text") ? part.Find("text") : json::Value();
}

std::string WithTextsOnly(json::Value content) {
  std::string parts;
  for (const json::Value part : content) {
    if (!TextOf(part).is_string()) continue;
    if (!parts.empty()) parts += ',';
    parts += part.raw();
  }
  // Some templates fail on an empty list.
  return parts.empty() ? R"("")" : "[" + parts + "]";
}

// text: the source of the member, which contains its key.
void AppendMember(std::string& out, std::string_view text, json::Value member,
                  std::string_view value) {
  if (!out.empty() && out.back() != '{') out += ',';
  out += text.substr(member.key_offset(), member.offset() - member.key_offset());
  out += value;
}

std::string MessageWithTextsOnly(std::string_view text, json::Value message) {
  std::string out = "{";
  for (const json::Value member : message) {
    const bool parts = member.KeyEquals("content") && member.is_array();
    AppendMember(out, text, member, parts ? WithTextsOnly(member) : std::string(member.raw()));
  }
  return out + "}";
}

// Counts words with an ASCII letter or digit: every tokenizer makes at least one token of them.
int64_t CountWords(std::string_view text) {
  int64_t words = 0;
  bool counted = false;  // the current word
  for (const char c : text) {
    if (c == ' ' || c == '\n' || c == '\t' || c == '\r') {
      counted = false;
    } else if (!counted && IsAlnum(c)) {
      counted = true;
      ++words;
    }
  }
  return words;
}

int64_t WordsOf(json::Value text) { return text.is_string() ? CountWords(text.string()) : 0; }

int64_t WordsOfLastUser(json::Value messages) {
  json::Value last;
  for (const json::Value message : messages) {
    if (message.Find("role").StringEquals("user")) last = message;
  }
  const json::Value content = last.Find("content");
  if (!content.is_array()) return WordsOf(content);
  int64_t words = 0;
  for (const json::Value part : content) words += WordsOf(TextOf(part));
  return words;
}

}  // namespace

std::optional<std::string> TextOnly(std::string_view members) {
  const auto document = json::Document::Parse("{" + std::string(members) + "}", MemberLimits());
  if (!document.ok() || !document->root().Find("messages").is_array()) return std::nullopt;
  const std::string_view text = document->text();
  std::string out;
  for (const json::Value member : document->root()) {
    if (!member.KeyEquals("messages")) {
      AppendMember(out, text, member, member.raw());
      continue;
    }
    std::string messages;
    for (const json::Value message : member) {
      if (!messages.empty()) messages += ',';
      messages += MessageWithTextsOnly(text, message);
    }
    AppendMember(out, text, member, "[" + messages + "]");
  }
  return out;
}

int64_t LeastTokens(inference::v1::RequestKind kind, std::string_view members) {
  const auto document = json::Document::Parse("{" + std::string(members) + "}", MemberLimits());
  if (!document.ok()) return 0;
  const json::Value root = document->root();
  int64_t words = 0;
  if (kind == inference::v1::REQUEST_KIND_CHAT) {
    words = WordsOfLastUser(root.Find("messages"));
  } else {
    const json::Value prompt =
        root.Find(kind == inference::v1::REQUEST_KIND_EMBEDDING ? "input" : "prompt");
    words = WordsOf(prompt);
    if (prompt.is_array()) {
      for (const json::Value one : prompt) words = std::max(words, WordsOf(one));
    }
  }
  return words / kMostWordsPerToken;
}

}  // namespace tollgate::inference_router
