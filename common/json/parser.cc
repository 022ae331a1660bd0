// The parser: one pass, no recursion, a flat list of nodes in document order.
#include <algorithm>
#include <array>
#include <cstring>

#include "common/base/crypto.h"
#include "common/base/utf8.h"
#include "common/json/json.h"
#include "common/json/scan.h"
#include "common/json/work.h"

namespace tollgate::json {

using internal::Byte;

namespace {

// Up to this size of an object, duplicate keys are found by pairwise comparison. Larger objects,
// and those with escaped keys, use hashing, so that each key is decoded once.
constexpr uint32_t kPairwiseMembers = 16;

// Keyed with a random secret: a client must not be able to choose colliding keys, which would make
// the check quadratic.
uint64_t KeyedHash(std::string_view bytes) {
  static const auto secret = [] {
    std::array<uint64_t, 2> words;
    const std::string random = RandomBytes(sizeof(words));
    std::memcpy(words.data(), random.data(), sizeof(words));
    return words;
  }();
  const auto mix = [](uint64_t a, uint64_t b) {
    __extension__ typedef unsigned __int128 Wide;
    const Wide product = static_cast<Wide>(a) * b;
    return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
  };
  uint64_t hash = secret[0] ^ bytes.size();
  const char* p = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; left -= 8, p += 8) {
    uint64_t word;
    std::memcpy(&word, p, 8);
    hash = mix(hash ^ word, secret[1] | 1) ^ secret[0];
  }
  uint64_t word = 0;
  std::memcpy(&word, p, left);
  return mix(hash ^ word, secret[1] | 1);
}

bool IsSpace(Byte c) { return c == ' ' || c == '\n' || c == '\r' || c == '\t'; }
bool IsDigit(Byte c) { return c >= '0' && c <= '9'; }

}  // namespace

class Parser {
 public:
  // owned: the bytes of the document's text if it may change, else null.
  Parser(Document& document, const Limits& limits, char* owned)
      : nodes_(document.nodes_),
        limits_(limits),
        owned_(limits.replace_lone_surrogates ? owned : nullptr),
        text_(document.text()),
        begin_(reinterpret_cast<const Byte*>(text_.data())),
        p_(begin_),
        end_(begin_ + text_.size()) {}

  bool Run();
  ParseError error() const { return {message_ + " at byte " + std::to_string(offset_), offset_}; }

 private:
  using Node = Document::Node;

  struct Key {
    uint32_t begin = Document::kNoKey;
    uint32_t size = 0;
    bool escaped = false;
  };

  bool Fail(std::string message, const Byte* at) {
    message_ = std::move(message);
    offset_ = static_cast<size_t>(at - begin_);
    return false;
  }
  bool FailHere() {
    return p_ == end_ ? Fail("unexpected end", p_) : Fail("unexpected character", p_);
  }

  void SkipSpace() {
    while (p_ != end_ && IsSpace(*p_)) ++p_;
  }
  uint32_t At(const Byte* p) const { return static_cast<uint32_t>(p - begin_); }

  bool AddNode(Type type, const Byte* from);
  bool ReadValue(bool& opened);
  bool ReadKey();
  // Reads the literal whose opening quote is at p_.
  bool ReadString(bool& escaped);
  bool ReadEscape();
  // Handles the escape at `from`, which is half of a surrogate pair.
  bool OnLoneSurrogate(const Byte* from);
  bool ReadNumber();
  bool ReadKeyword(std::string_view keyword, Type type);
  // Continues after a value: closes the containers that end here and moves to the next value, or to
  // the end of the document.
  bool AfterValue(bool& done);
  bool Close();
  bool CheckKeys(uint32_t object);
  bool CheckKeysByHash(uint32_t object);
  bool FailDuplicate(const Node& node);
  std::string_view KeyInside(const Node& node) const {
    return text_.substr(node.key + 1, node.key_size);
  }
  bool SameKey(const Node& a, const Node& b) const;

  std::vector<Node>& nodes_;
  const Limits& limits_;
  char* const owned_;
  const std::string_view text_;
  const Byte* const begin_;
  const Byte* p_;
  const Byte* const end_;
  std::vector<uint32_t> open_;  // the open containers, outermost first
  Key key_;                     // key of the next value
  std::string message_;
  size_t offset_ = 0;
};

bool Parser::Run() {
  internal::parsed_bytes += text_.size();
  if (text_.size() >= Document::kNoKey) return Fail("text too large", begin_);
  if (text_.starts_with("\xEF\xBB\xBF")) return Fail("byte order mark", begin_);
  nodes_.reserve(64);
  open_.reserve(16);
  SkipSpace();
  for (;;) {
    bool opened = false;
    if (!ReadValue(opened)) return false;
    if (opened) continue;  // p_ is at the first value inside
    bool done = false;
    if (!AfterValue(done)) return false;
    if (done) return true;
  }
}

bool Parser::AddNode(Type type, const Byte* from) {
  if (nodes_.size() >= limits_.max_values) return Fail("too many values", from);
  if (!open_.empty()) {
    Node& parent = nodes_[open_.back()];
    ++parent.count;
    if (parent.type == Type::kObject && parent.count > limits_.max_members) {
      return Fail("too many members in an object", from);
    }
  }
  Node node{};
  node.begin = At(from);
  node.type = type;
  node.key = key_.begin;
  node.key_size = key_.size;
  node.key_escaped = key_.escaped;
  node.next = static_cast<uint32_t>(nodes_.size()) + 1;
  key_ = Key{};
  nodes_.push_back(node);
  return true;
}

bool Parser::ReadValue(bool& opened) {
  if (p_ == end_) return FailHere();
  const Byte* const from = p_;
  switch (*p_) {
    case '"': {
      bool escaped = false;
      if (!ReadString(escaped) || !AddNode(Type::kString, from)) return false;
      nodes_.back().escaped = escaped;
      break;
    }
    case '{':
    case '[': {
      const bool object = *p_ == '{';
      if (open_.size() >= static_cast<size_t>(limits_.max_depth))
        return Fail("nested too deep", p_);
      if (!AddNode(object ? Type::kObject : Type::kArray, from)) return false;
      open_.push_back(static_cast<uint32_t>(nodes_.size()) - 1);
      ++p_;
      SkipSpace();
      if (p_ != end_ && *p_ == (object ? '}' : ']')) return Close();
      opened = true;
      return object ? ReadKey() : true;
    }
    case 't':
      return ReadKeyword("true", Type::kBool);
    case 'f':
      return ReadKeyword("false", Type::kBool);
    case 'n':
      return ReadKeyword("null", Type::kNull);
    default:
      if (*p_ != '-' && !IsDigit(*p_)) return FailHere();
      if (!ReadNumber() || !AddNode(Type::kNumber, from)) return false;
  }
  nodes_.back().end = At(p_);
  return true;
}

bool Parser::AfterValue(bool& done) {
  for (;;) {
    SkipSpace();
    if (open_.empty()) {
      if (p_ != end_ && !limits_.first_value_only)
        return Fail("text after the end of the document", p_);
      done = true;
      return true;
    }
    if (p_ == end_) return FailHere();
    const bool object = nodes_[open_.back()].type == Type::kObject;
    if (*p_ == ',') {
      ++p_;
      SkipSpace();
      return object ? ReadKey() : true;
    }
    if (*p_ != (object ? '}' : ']')) return FailHere();
    if (!Close()) return false;
  }
}

bool Parser::Close() {
  const uint32_t container = open_.back();
  open_.pop_back();
  ++p_;
  Node& node = nodes_[container];
  node.end = At(p_);
  node.next = static_cast<uint32_t>(nodes_.size());
  return node.type != Type::kObject || limits_.allow_duplicate_keys || CheckKeys(container);
}

bool Parser::ReadKey() {
  if (p_ == end_ || *p_ != '"') return FailHere();
  const Byte* const from = p_;
  if (!ReadString(key_.escaped)) return false;
  key_.begin = At(from);
  key_.size = static_cast<uint32_t>(p_ - from) - 2;
  SkipSpace();
  if (p_ == end_ || *p_ != ':') return FailHere();
  ++p_;
  SkipSpace();
  return true;
}

bool Parser::ReadString(bool& escaped) {
  const Byte* const from = p_++;
  for (;;) {
    p_ = internal::FindSpecial<true>(p_, end_);
    if (p_ == end_) return Fail("unterminated string", from);
    if (*p_ == '"') {
      ++p_;
      return true;
    }
    if (*p_ == '\\') {
      escaped = true;
      if (!ReadEscape()) return false;
    } else if (*p_ < 0x20) {
      return Fail("control character in a string", p_);
    } else {
      // Consumes a whole run of multi-byte characters: FindSpecial would stop at each of them.
      const Byte* bad = nullptr;
      const Byte* const next = utf8::SkipMultiByte(p_, end_, &bad);
      if (next == nullptr) return Fail("invalid UTF-8", bad);
      p_ = next;
    }
  }
}

bool Parser::ReadEscape() {
  const Byte* const from = p_;
  if (end_ - p_ < 2) return Fail("unterminated string", from);
  switch (p_[1]) {
    case '"':
    case '\\':
    case '/':
    case 'b':
    case 'f':
    case 'n':
    case 'r':
    case 't':
      p_ += 2;
      return true;
    case 'u':
      break;
    default:
      return Fail("unknown escape", from);
  }
  const int32_t unit = end_ - p_ >= 6 ? internal::Hex4(p_ + 2) : -1;
  if (unit < 0) return Fail("broken \\u escape", from);
  p_ += 6;
  if (unit == 0 && !limits_.allow_nul) return Fail("U+0000 in a string", from);
  if (limits_.allow_lone_surrogates) return true;
  if (internal::IsLowSurrogate(unit)) return OnLoneSurrogate(from);
  if (internal::IsHighSurrogate(unit)) {
    if (end_ - p_ < 6 || p_[0] != '\\' || p_[1] != 'u' ||
        !internal::IsLowSurrogate(internal::Hex4(p_ + 2))) {
      return OnLoneSurrogate(from);
    }
    p_ += 6;
  }
  return true;
}

bool Parser::OnLoneSurrogate(const Byte* from) {
  if (owned_ == nullptr) return Fail("lone surrogate", from);
  std::memcpy(owned_ + At(from), "\\ufffd", 6);
  return true;
}

bool Parser::ReadNumber() {
  const Byte* const from = p_;
  const auto digits = [this] {
    const Byte* const first = p_;
    while (p_ != end_ && IsDigit(*p_)) ++p_;
    return p_ != first;
  };
  if (*p_ == '-') ++p_;
  if (p_ != end_ && *p_ == '0') {
    ++p_;
  } else if (!digits()) {
    return Fail("invalid number", from);
  }
  if (p_ != end_ && *p_ == '.') {
    ++p_;
    if (!digits()) return Fail("invalid number", from);
  }
  if (p_ != end_ && (*p_ | 0x20) == 'e') {
    ++p_;
    if (p_ != end_ && (*p_ == '+' || *p_ == '-')) ++p_;
    if (!digits()) return Fail("invalid number", from);
  }
  return true;
}

bool Parser::ReadKeyword(std::string_view keyword, Type type) {
  const Byte* const from = p_;
  if (text_.substr(At(p_), keyword.size()) != keyword) return FailHere();
  p_ += keyword.size();
  if (!AddNode(type, from)) return false;
  nodes_.back().end = At(p_);
  return true;
}

bool Parser::SameKey(const Node& a, const Node& b) const {
  if (!a.key_escaped && !b.key_escaped) {
    return a.key_size == b.key_size &&
           std::memcmp(text_.data() + a.key, text_.data() + b.key, a.key_size + 1) == 0;
  }
  return Unescape(KeyInside(a)) == Unescape(KeyInside(b));
}

bool Parser::FailDuplicate(const Node& node) {
  std::string_view shown = KeyInside(node);
  // More people see an error than the caller, and a key may be content. So a key is shown only if
  // it looks like a field name (letters and "_").
  const bool is_name = shown.size() <= 32 && std::all_of(shown.begin(), shown.end(), [](char c) {
                         return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
                       });
  if (!is_name) shown = "";
  return Fail("duplicate key \"" + std::string(shown) + "\"", begin_ + node.key);
}

bool Parser::CheckKeys(uint32_t object) {
  const uint32_t count = nodes_[object].count;
  if (count < 2) return true;
  if (count > kPairwiseMembers) return CheckKeysByHash(object);
  uint32_t seen[kPairwiseMembers];
  uint32_t seen_count = 0;
  for (uint32_t i = object + 1; i != nodes_[object].next; i = nodes_[i].next) {
    if (nodes_[i].key_escaped) return CheckKeysByHash(object);
    for (uint32_t j = 0; j < seen_count; ++j) {
      if (SameKey(nodes_[i], nodes_[seen[j]])) return FailDuplicate(nodes_[i]);
    }
    seen[seen_count++] = i;
  }
  return true;
}

bool Parser::CheckKeysByHash(uint32_t object) {
  struct Slot {
    uint64_t hash = 0;
    uint32_t node = 0;  // 0: free; node 0 is the root, which is not a member
  };
  size_t slots = 32;
  while (slots < 2 * size_t{nodes_[object].count}) slots *= 2;
  std::vector<Slot> table(slots);
  for (uint32_t i = object + 1; i != nodes_[object].next; i = nodes_[i].next) {
    const Node& node = nodes_[i];
    const uint64_t hash =
        node.key_escaped ? KeyedHash(Unescape(KeyInside(node))) : KeyedHash(KeyInside(node));
    size_t at = hash & (slots - 1);
    for (; table[at].node != 0; at = (at + 1) & (slots - 1)) {
      if (table[at].hash == hash && SameKey(node, nodes_[table[at].node])) {
        return FailDuplicate(node);
      }
    }
    table[at] = {hash, i};
  }
  return true;
}

BasicResult<Document, ParseError> Document::Parse(std::string text, const Limits& limits) {
  Document document;
  document.owned_ = std::move(text);
  Parser parser(document, limits, document.owned_->data());
  if (!parser.Run()) return tollgate::Fail{parser.error()};
  return document;
}

BasicResult<Document, ParseError> Document::ParseView(std::string_view text, const Limits& limits) {
  Document document;
  document.view_ = text;
  Parser parser(document, limits, nullptr);
  if (!parser.Run()) return tollgate::Fail{parser.error()};
  return document;
}

}  // namespace tollgate::json
