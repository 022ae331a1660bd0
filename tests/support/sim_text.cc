#include "tests/support/sim_text.h"

#include <algorithm>
#include <cstring>

namespace tollgate::test {
namespace {

bool IsSpace(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }
bool IsContinuation(char c) { return (static_cast<unsigned char>(c) & 0xC0) == 0x80; }

// Calls emit(begin, end) for each token.
template <typename Emit>
void ForEachToken(std::string_view text, Emit emit) {
  size_t begin = 0;
  size_t at = 0;
  while (at < text.size()) {
    size_t word = at;
    while (word < text.size() && IsSpace(text[word])) ++word;
    if (word == text.size()) break;
    size_t end = word;
    while (end < text.size() && !IsSpace(text[end]) && end - word < kMaxTokenBytes) ++end;
    if (end < text.size() && IsContinuation(text[end])) {
      size_t back = end;
      while (back > word + 1 && IsContinuation(text[back])) --back;
      if (back > word) end = back;
    }
    size_t next = end;
    bool trailing = true;
    for (size_t i = end; i < text.size() && trailing; ++i) trailing = IsSpace(text[i]);
    if (trailing) next = text.size();
    emit(begin, next);
    begin = at = next;
  }
  if (begin < text.size()) emit(begin, text.size());  // only white space
}

constexpr const char* kWords[] = {
    "the",     "a",       "river",  "light",   "model",   "answer", "simple",   "quick",
    "brown",   "fox",     "over",   "lazy",    "dog",     "under",  "bridge",   "city",
    "morning", "evening", "coffee", "paper",   "window",  "garden", "north",    "south",
    "market",  "number",  "letter", "story",   "between", "people", "before",   "after",
    "always",  "never",   "often",  "perhaps", "because", "though", "while",    "with",
    "without", "from",    "into",   "about",   "around",  "first",  "second",   "third",
    "small",   "large",   "green",  "silver",  "golden",  "quiet",  "loud",     "careful",
    "gentle",  "strong",  "clear",  "water",   "stone",   "forest", "mountain", "valley",
    "harbour", "engine",  "signal", "token",   "stream",  "ledger", "balance",  "price",
    "time",    "day",     "night",  "year",    "moment",  "reason", "question", "idea",
    "plan",    "keeps",   "finds",  "holds",   "makes",   "gives",  "takes",    "sees",
    "knows",   "says",    "walks",  "runs",    "turns",   "opens",  "closes",   "begins",
    "ends",    "waits",   "moves"};
constexpr const char* kRare[] = {"naïve", "café", "Grüße",       "東京", "привет",
                                 "🙂",    "🚀",   "👩‍💻", "½",    "\"so\""};
constexpr size_t kWordCount = sizeof kWords / sizeof kWords[0];
constexpr size_t kRareCount = sizeof kRare / sizeof kRare[0];

struct Vocabulary {
  // Per word: opening, plain, with a comma, with a full stop, opening a paragraph.
  std::vector<VocabularyToken> opening, plain, comma, stop, rare, paragraph;
  Vocabulary() {
    auto add = [](std::vector<VocabularyToken>& into, std::string text) {
      std::string escaped;
      AppendJsonEscaped(escaped, text);
      into.push_back({std::move(text), std::move(escaped)});
    };
    for (const char* word : kWords) {
      std::string capital = word;
      capital[0] = static_cast<char>(capital[0] - 'a' + 'A');
      add(opening, capital);
      add(plain, std::string(" ") + word);
      add(comma, std::string(" ") + word + ",");
      add(stop, std::string(" ") + word + ".");
      add(paragraph, "\n\n" + capital);
    }
    for (const char* word : kRare) add(rare, std::string(" ") + word);
  }
};

const Json& Resolve(const Json& schema, const Json& root) {
  const std::string& ref = schema["$ref"].str();
  if (ref.rfind("#/", 0) != 0) return schema;
  const Json* at = &root;
  size_t begin = 2;
  while (begin <= ref.size()) {
    const size_t slash = std::min(ref.find('/', begin), ref.size());
    at = &(*at)[std::string_view(ref).substr(begin, slash - begin)];
    begin = slash + 1;
  }
  return *at;
}

Json Instance(const Json& unresolved, const Json& root, uint64_t seed, int depth) {
  const Json& schema = Resolve(unresolved, root);
  if (depth > 16) return Json();
  if (schema.has("const")) return schema["const"];
  if (const Json& values = schema["enum"]; values.size() > 0) return values[seed % values.size()];
  for (const char* choice : {"anyOf", "oneOf", "allOf"}) {
    if (schema[choice].size() > 0) return Instance(schema[choice][0], root, seed, depth + 1);
  }
  std::string type = schema["type"].str();
  if (schema["type"].is_array()) type = schema["type"][0].str();
  if (type.empty() && schema.has("properties")) type = "object";
  if (type == "object") {
    Json object = Json::Object();
    for (const Json::Member& member : schema["properties"].members()) {
      object.Set(member.first,
                 Instance(member.second, root, MixHash(member.first, seed), depth + 1));
    }
    return object;
  }
  if (type == "array") {
    Json array = Json::Array();
    const int64_t count = std::clamp<int64_t>(schema["minItems"].integer(1), 0, 8);
    for (int64_t i = 0; i < count; ++i) {
      array.Add(
          Instance(schema["items"], root, MixHash(static_cast<uint64_t>(i), seed), depth + 1));
    }
    return array;
  }
  if (type == "integer" || type == "number") {
    const int64_t low = schema["minimum"].integer(1);
    const int64_t high = std::max(low, schema["maximum"].integer(low + 40));
    return low + static_cast<int64_t>(seed % static_cast<uint64_t>(high - low + 1));
  }
  if (type == "boolean") return (seed & 1) != 0;
  if (type == "null") return Json();
  return std::string(kWords[seed % kWordCount]);
}

}  // namespace

int64_t CountTokens(std::string_view text) {
  int64_t count = 0;
  ForEachToken(text, [&count](size_t, size_t) { ++count; });
  return count;
}

std::vector<std::string> SplitTokens(std::string_view text) {
  std::vector<std::string> tokens;
  ForEachToken(text, [&](size_t begin, size_t end) {
    tokens.emplace_back(text.substr(begin, end - begin));
  });
  return tokens;
}

const VocabularyToken& GeneratedToken(uint64_t seed, int64_t index) {
  static const Vocabulary vocabulary;
  const uint64_t hash = MixHash(static_cast<uint64_t>(index), seed);
  const size_t word = hash % kWordCount;
  if (index == 0) return vocabulary.opening[word];
  const uint64_t dice = (hash >> 32) % 256;
  if (dice < 8) return vocabulary.rare[(hash >> 40) % kRareCount];
  if (dice < 12) return vocabulary.paragraph[word];
  if (dice < 28) return vocabulary.stop[word];
  if (dice < 44) return vocabulary.comma[word];
  return vocabulary.plain[word];
}

uint64_t MixHash(uint64_t value, uint64_t seed) {
  // The finisher of splitmix64.
  uint64_t z = seed + 0x9E3779B97F4A7C15ull * (value + 1);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

uint64_t MixHash(std::string_view text, uint64_t seed) {
  uint64_t hash = MixHash(text.size(), seed);
  size_t at = 0;
  for (; at + 8 <= text.size(); at += 8) {
    uint64_t word;
    std::memcpy(&word, text.data() + at, 8);
    hash = (hash ^ word) * 0x9E3779B97F4A7C15ull;
    hash ^= hash >> 29;
  }
  uint64_t tail = 0;
  if (at < text.size()) std::memcpy(&tail, text.data() + at, text.size() - at);
  return MixHash(tail, hash);
}

Json InstanceOfSchema(const Json& schema, uint64_t seed) {
  return Instance(schema, schema, seed, 0);
}

}  // namespace tollgate::test
