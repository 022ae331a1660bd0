#include "services/inference_router/engine/context_length.h"

#include <re2/re2.h>

#include <array>
#include <charconv>
#include <memory>
#include <vector>

namespace tollgate::inference_router {
namespace {

// Only the first kilobytes are matched, because engines' messages are short.
constexpr size_t kMaxText = 8192;
constexpr int kMaxGroups = 8;

struct Compiled {
  const ContextLengthPattern* pattern;
  std::unique_ptr<RE2> regex;
  int limit = 0, prompt = 0, output = 0, total = 0;
};

int GroupOf(const RE2& regex, const char* name) {
  auto found = regex.NamedCapturingGroups().find(name);
  return found == regex.NamedCapturingGroups().end() ? 0 : found->second;
}

const std::vector<Compiled>& CompiledPatterns() {
  static const std::vector<Compiled> compiled = [] {
    std::vector<Compiled> all;
    RE2::Options options;
    options.set_case_sensitive(false);
    options.set_log_errors(false);
    for (const ContextLengthPattern& pattern : ContextLengthPatterns()) {
      auto regex = std::make_unique<RE2>(pattern.regex, options);
      if (!regex->ok() || regex->NumberOfCapturingGroups() >= kMaxGroups) continue;
      Compiled one{&pattern, std::move(regex)};
      one.limit = GroupOf(*one.regex, "limit");
      one.prompt = GroupOf(*one.regex, "prompt");
      one.output = GroupOf(*one.regex, "output");
      one.total = GroupOf(*one.regex, "total");
      all.push_back(std::move(one));
    }
    return all;
  }();
  return compiled;
}

std::optional<int64_t> Number(const re2::StringPiece& digits) {
  int64_t value = 0;
  const char* end = digits.data() + digits.size();
  auto [stop, code] = std::from_chars(digits.data(), end, value);
  if (digits.empty() || code != std::errc() || stop != end) return std::nullopt;
  return value;
}

// 0 if absent or too large to be a token count.
int64_t Plausible(std::optional<int64_t> tokens) {
  constexpr int64_t kMost = 1'000'000'000'000;
  return tokens && *tokens > 0 && *tokens <= kMost ? *tokens : 0;
}

// Whether the limit in these texts bounds the output or the batch size instead of the context
// window.
bool LimitsSomethingElse(std::string_view pattern) {
  return pattern == "tgi-output" || pattern == "llamacpp-batch";
}

}  // namespace

std::optional<ContextLength> MatchContextLength(std::string_view text, int status) {
  text = text.substr(0, kMaxText);
  const re2::StringPiece piece(text.data(), text.size());
  for (const Compiled& compiled : CompiledPatterns()) {
    if (compiled.pattern->weak && status != 400 && status != 413 && status != 422) continue;
    std::array<re2::StringPiece, kMaxGroups> groups;
    const int count = compiled.regex->NumberOfCapturingGroups() + 1;
    if (!compiled.regex->Match(piece, 0, piece.size(), RE2::UNANCHORED, groups.data(), count)) {
      continue;
    }
    auto group = [&](int index) { return index ? Number(groups[index]) : std::nullopt; };
    ContextLength found;
    found.matched_by = compiled.pattern->id;
    found.limit = group(compiled.limit);
    found.prompt = group(compiled.prompt);
    found.output = group(compiled.output);
    found.total = group(compiled.total);
    found.prompt_is_lower_bound =
        std::string_view(groups[0].data(), groups[0].size()).find("at least") !=
        std::string_view::npos;
    return found;
  }
  return std::nullopt;
}

TokenAccounting AccountTokens(const ContextLength& found, int64_t window) {
  TokenAccounting tokens;
  tokens.prompt = Plausible(found.prompt);
  tokens.output = Plausible(found.output);
  tokens.prompt_is_lower_bound = found.prompt_is_lower_bound && tokens.prompt > 0;
  const int64_t total = found.total ? Plausible(found.total) : tokens.prompt + tokens.output;
  if (!found.prompt && found.output && total > tokens.output) tokens.prompt = total - tokens.output;
  if (!found.output && found.prompt && total > tokens.prompt) tokens.output = total - tokens.prompt;
  if (Plausible(found.limit) > 0 && !LimitsSomethingElse(found.matched_by)) {
    tokens.limit = *found.limit;
  } else if (total == 0 || total > window) {
    tokens.limit = window;
  }
  return tokens;
}

std::string ContextLengthMessage(const TokenAccounting& tokens, int64_t total) {
  if (tokens.limit == 0) return "The request is longer than the model's context window.";
  const char* at_least = tokens.prompt_is_lower_bound ? "at least " : "";
  std::string text =
      "This model's maximum context length is " + std::to_string(tokens.limit) + " tokens.";
  if (tokens.prompt > 0 && tokens.output > 0) {
    text += " However, you requested " + std::string(at_least) +
            std::to_string(tokens.prompt + tokens.output) + " tokens (" + at_least +
            std::to_string(tokens.prompt) + " in the prompt, " + std::to_string(tokens.output) +
            " for the completion).";
  } else if (tokens.prompt > 0) {
    text += " However, your prompt has " + std::string(at_least) + std::to_string(tokens.prompt) +
            " tokens.";
  } else if (tokens.output > 0) {
    text +=
        " However, you requested " + std::to_string(tokens.output) + " tokens for the completion.";
  } else if (total > 0) {
    text += " However, you requested " + std::to_string(total) + " tokens.";
  }
  text += " Please shorten the prompt or ask for fewer output tokens.";
  return text;
}

}  // namespace tollgate::inference_router
