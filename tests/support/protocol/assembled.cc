#include "tests/support/protocol/assembled.h"

#include <algorithm>

namespace tollgate::test {

bool Findings::Expect(bool holds, std::string_view rule) {
  if (!holds) violations_.push_back("event " + std::to_string(event_) + ": " + std::string(rule));
  return holds;
}

// Messages are built only for violations: fuzzing checks millions of objects.
bool Findings::Keys(const Json& object, std::string_view what,
                    const std::vector<std::string_view>& required,
                    const std::vector<std::string_view>& optional) {
  const auto wrong = [&](std::string_view verb, std::string_view key) {
    return Expect(false, std::string(what) + std::string(verb) + std::string(key));
  };
  if (!object.is_object()) return wrong(" is an object", "");
  bool good = true;
  for (const std::string_view key : required) {
    if (!object.has(key)) good = wrong(" has ", key);
  }
  const std::vector<Json::Member>& members = object.members();
  for (size_t i = 0; i < members.size(); ++i) {
    const std::string& key = members[i].first;
    if (!OneOf(key, required) && !OneOf(key, optional)) good = wrong(" has no ", key);
    for (size_t k = 0; k < i; ++k) {
      if (members[k].first == key) good = wrong(" has once ", key);
    }
  }
  return good;
}

bool Findings::String(const Json& value, std::string_view what) {
  return value.is_string() || Expect(false, std::string(what) + " is a string");
}

bool Findings::NonEmptyString(const Json& value, std::string_view what) {
  return !value.str().empty() ||
         Expect(false, std::string(what) + " is a string that is not empty");
}

bool Findings::Integer(const Json& value, std::string_view what, int64_t low) {
  return (IsInteger(value) && value.integer() >= low) ||
         Expect(false, std::string(what) + " is an integer of at least " + std::to_string(low));
}

void ForEachEvent(std::string_view bytes, Checked& checked, Findings& find,
                  const std::function<void(const PublicEvent&)>& event) {
  const PublicStream stream = ReadPublicStream(bytes);
  checked.violations = stream.violations;
  size_t number = 0;
  for (const PublicEvent& next : stream.events) {
    find.At(number++);
    event(next);
  }
}

void ChunkStamp::Check(const Json& answer, std::string_view object, std::string_view id_prefix,
                       Checked& checked, Findings& find) {
  const std::string& id = answer["id"].str();
  find.Expect(answer["object"].str() == object, "object is " + std::string(object));
  find.Expect(id.starts_with(id_prefix) && id.size() > id_prefix.size(),
              "id is " + std::string(id_prefix) + "…");
  find.Integer(answer["created"], "created", 1);
  find.NonEmptyString(answer["model"], "model");
  const std::string stamp = answer["id"].Dump() + answer["created"].Dump() + answer["model"].Dump();
  if (first_.empty()) first_ = stamp;
  find.Expect(stamp == first_, "id, created and model stay the same");
  checked.id = id;
  checked.model = answer["model"].str();
}

bool IsInteger(const Json& value) {
  return value.is_number() && value.number_text().find_first_of(".eE") == std::string::npos;
}

bool OneOf(std::string_view text, const std::vector<std::string_view>& allowed) {
  return std::find(allowed.begin(), allowed.end(), text) != allowed.end();
}

AssembledUsage CheckChatUsage(const Json& usage, Findings& find) {
  find.Keys(usage, "usage", {"prompt_tokens", "completion_tokens", "total_tokens"},
            {"prompt_tokens_details", "completion_tokens_details"});
  for (const char* name : {"prompt_tokens", "completion_tokens", "total_tokens"}) {
    find.Integer(usage[name], name);
  }
  AssembledUsage read;
  read.prompt = usage["prompt_tokens"].integer();
  read.completion = usage["completion_tokens"].integer();
  find.Expect(usage["total_tokens"].integer() == read.prompt + read.completion,
              "total_tokens is the sum");
  if (usage.has("prompt_tokens_details")) {
    const Json& details = usage["prompt_tokens_details"];
    find.Keys(details, "prompt_tokens_details", {}, {"cached_tokens", "cache_write_tokens"});
    read.cached = details["cached_tokens"].integer();
    read.cache_write = details["cache_write_tokens"].integer();
  }
  if (usage.has("completion_tokens_details")) {
    const Json& details = usage["completion_tokens_details"];
    find.Keys(details, "completion_tokens_details", {}, {"reasoning_tokens"});
    read.reasoning = details["reasoning_tokens"].integer();
  }
  find.Expect(
      read.cached >= 0 && read.cache_write >= 0 && read.cached + read.cache_write <= read.prompt,
      "cached tokens are part of the prompt");
  find.Expect(read.reasoning >= 0 && read.reasoning <= read.completion,
              "reasoning tokens are part of the completion");
  return read;
}

std::string CheckOpenAiError(const Json& event, Findings& find) {
  find.Keys(event, "the error event", {"error"});
  const Json& error = event["error"];
  find.Keys(error, "error", {"message", "type", "code"}, {"param"});
  for (const char* name : {"message", "type", "code"}) find.NonEmptyString(error[name], name);
  find.Expect(!error.has("param") || error["type"].str() == "invalid_request_error",
              "only invalid_request_error has a param");
  return error["code"].str();
}

}  // namespace tollgate::test
