#include "gateway/surfaces/completions/logprobs.h"

#include <algorithm>
#include <vector>

#include "common/json/json.h"

namespace tollgate::gateway {

namespace {

void Join(std::string& list, std::string_view elements) {
  if (elements.empty()) return;
  if (!list.empty()) list.push_back(',');
  list += elements;
}

// Returns the elements of an array without its brackets.
std::string_view Elements(json::Value array) {
  if (!array.is_array() || array.size() == 0) return {};
  return array.raw().substr(1, array.raw().size() - 2);
}

int64_t Characters(json::Value token) {
  const std::string text = token.string();
  return std::count_if(text.begin(), text.end(),
                       [](char c) { return (static_cast<unsigned char>(c) & 0xC0) != 0x80; });
}

std::string_view RawOrNull(json::Value value) {
  return value ? value.raw() : std::string_view("null");
}

// Converts the candidates of the chat format to {"token":logprob,…}. Two candidates may have the
// same text.
std::string Candidates(json::Value list) {
  std::string out = "{";
  std::vector<std::string_view> seen;
  for (const json::Value candidate : list) {
    const json::Value token = candidate.Find("token");
    if (!token.is_string()) continue;
    if (std::find(seen.begin(), seen.end(), token.raw()) != seen.end()) continue;
    seen.push_back(token.raw());
    if (out.size() > 1) out.push_back(',');
    out += token.raw();
    out.push_back(':');
    out += RawOrNull(candidate.Find("logprob"));
  }
  return out + "}";
}

}  // namespace

bool LegacyLogprobs::Add(std::string_view engine_json) {
  json::Limits limits;
  limits.allow_lone_surrogates = true;
  limits.allow_nul = true;
  const auto document = json::Document::ParseView(engine_json, limits);
  if (!document || !document->root().is_object()) return false;
  const json::Value root = document->root();
  if (const json::Value tokens = root.Find("tokens"); tokens.is_array()) {
    if (tokens.size() == 0) return false;
    any_ = true;
    Join(tokens_, Elements(tokens));
    Join(token_logprobs_, Elements(root.Find("token_logprobs")));
    Join(text_offset_, Elements(root.Find("text_offset")));
    top_ = top_ || root.Find("top_logprobs").is_array();
    Join(top_logprobs_, Elements(root.Find("top_logprobs")));
    return true;
  }
  bool added = false;
  for (const json::Value entry : root.Find("content")) {
    const json::Value token = entry.Find("token");
    if (!token.is_string()) continue;
    any_ = top_ = added = true;
    Join(tokens_, token.raw());
    Join(token_logprobs_, RawOrNull(entry.Find("logprob")));
    Join(top_logprobs_, Candidates(entry.Find("top_logprobs")));
    Join(text_offset_, std::to_string(characters_));
    characters_ += Characters(token);
  }
  return added;
}

void LegacyLogprobs::Take(std::string& out) {
  if (!any_) {
    out += "null";
    return;
  }
  const auto list = [&out](std::string_view name, std::string& elements) {
    out += name;
    out += elements;
    out.push_back(']');
    elements.clear();
  };
  list("{\"tokens\":[", tokens_);
  list(",\"token_logprobs\":[", token_logprobs_);
  if (top_) {
    list(",\"top_logprobs\":[", top_logprobs_);
  } else {
    out += ",\"top_logprobs\":null";
  }
  list(",\"text_offset\":[", text_offset_);
  out += "}";
  any_ = top_ = false;
}

}  // namespace tollgate::gateway
