// A strict JSON parser: validates a whole text once (RFC 8259, UTF-8, duplicate keys, depth, size)
// and builds a flat index of it. Values are views of the text and can be forwarded as the original
// bytes without a copy (docs/design/performance.md, "Large prompts").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"

namespace tollgate::json {

enum class Type : uint8_t { kNull, kBool, kNumber, kString, kArray, kObject };

struct Limits {
  int max_depth = 64;           // H52
  size_t max_members = 10'000;  // members of one object
  size_t max_values = 1'000'000;
  // Engines may split a surrogate pair across two events.
  bool allow_lone_surrogates = false;
  // Overwrites an escaped surrogate without its other half by \ufffd, which has the same length
  // (decision 38). Needs a document that owns its text: ParseView ignores it.
  bool replace_lone_surrogates = false;
  // Whether strings may contain escaped U+0000 (H55).
  bool allow_nul = false;
  // Whether an object may have duplicate keys; the caller checks them.
  bool allow_duplicate_keys = false;
  // Ignores everything after the first value of the text.
  bool first_value_only = false;
};

class Document;

// A value of a document. Cheap to copy; valid while the document exists and is not moved. An absent
// value (`Find` of a missing member) converts to false and otherwise behaves like null.
class Value {
 public:
  Value() = default;
  explicit operator bool() const { return document_ != nullptr; }

  Type type() const;
  bool is_null() const { return type() == Type::kNull; }  // also when absent
  bool is_string() const { return type() == Type::kString; }
  bool is_object() const { return type() == Type::kObject; }
  bool is_array() const { return type() == Type::kArray; }
  bool is_number() const { return type() == Type::kNumber; }
  bool is_bool() const { return type() == Type::kBool; }

  // The exact bytes of the value in the source text.
  std::string_view raw() const;
  // Offset of raw() in the source text.
  size_t offset() const;
  // A string as written: escapes included, quotes excluded.
  std::string_view raw_string() const;
  // A decoded string.
  std::string string() const;
  // Whether the decoded string equals the text. Copies only strings with escapes.
  bool StringEquals(std::string_view text) const;
  bool boolean() const;
  // A number with an integer value (5, 5.0, 1e3) that fits into int64_t; nullopt otherwise.
  std::optional<int64_t> Integer() const;
  // A number; nullopt if it overflows a double.
  std::optional<double> Number() const;

  // The number of array elements or object members.
  size_t size() const;
  // The member with that name, or an absent value. A member with the value null is present.
  Value Find(std::string_view key) const;

  class Iterator;
  // for (Value element : value) iterates over array elements or member values. key() is the key of
  // a member.
  Iterator begin() const;
  Iterator end() const;
  // The decoded key of a member value, and the offset of the key's opening quote.
  std::string key() const;
  bool KeyEquals(std::string_view key) const;
  size_t key_offset() const;

 private:
  friend class Document;
  friend class Iterator;
  Value(const Document* document, uint32_t node) : document_(document), node_(node) {}
  const Document* document_ = nullptr;
  uint32_t node_ = 0;
};

struct ParseError {
  std::string message;  // for example "duplicate key \"model\" at byte 17"
  size_t offset = 0;
};

class Document {
 public:
  // Takes ownership of the text. Returns the first error.
  static BasicResult<Document, ParseError> Parse(std::string text, const Limits& limits = {});
  // As Parse, without ownership: the text must outlive the document.
  static BasicResult<Document, ParseError> ParseView(std::string_view text,
                                                     const Limits& limits = {});

  Value root() const { return Value(this, 0); }
  std::string_view text() const { return owned_ ? std::string_view(*owned_) : view_; }

 private:
  friend class Value;
  friend class Value::Iterator;
  friend class Parser;
  struct Node {
    uint32_t begin;     // first byte of the value
    uint32_t end;       // one past its last byte
    uint32_t next;      // node after this value and its descendants
    uint32_t key;       // first byte (the quote) of its key; kNoKey in arrays and at the root
    uint32_t key_size;  // bytes of the key as written, without its quotes
    uint32_t count;     // elements or members
    Type type;
    bool escaped;      // string: has escapes
    bool key_escaped;  // its key has escapes
  };
  static constexpr uint32_t kNoKey = ~0u;

  std::optional<std::string> owned_;
  std::string_view view_;
  std::vector<Node> nodes_;
};

class Value::Iterator {
 public:
  Value operator*() const { return Value(document_, node_); }
  Iterator& operator++();
  bool operator==(const Iterator& other) const { return node_ == other.node_; }

 private:
  friend class Value;
  Iterator(const Document* document, uint32_t node) : document_(document), node_(node) {}
  const Document* document_;
  uint32_t node_;
};

// Appends text, which must be valid UTF-8, escaped for a JSON string literal. Adds no quotes.
void AppendEscaped(std::string& out, std::string_view text);
// Appends text as a JSON string literal, with quotes.
void AppendQuoted(std::string& out, std::string_view text);
std::string Quoted(std::string_view text);
// Escapes U+0085, U+2028 and U+2029 in the strings of a JSON text, or of an event stream with JSON.
// Both allow them, but some clients split streams at every line break of Unicode.
void EscapeLineBreaks(std::string& json);
// Decodes the inside of a JSON string literal that the parser has accepted. Lone surrogates become
// U+FFFD.
std::string Unescape(std::string_view inside);
// Whether the inside of a literal decodes to text. Stops at the first difference and allocates
// nothing.
bool EscapedEquals(std::string_view inside, std::string_view text);
// text begins inside a string literal. Returns the number of bytes before its closing quote; npos
// if the literal does not end, is invalid or has \u escapes, which the caller must decode.
size_t PlainStringLength(std::string_view text);

inline Type Value::type() const { return document_ ? document_->nodes_[node_].type : Type::kNull; }

inline bool Value::KeyEquals(std::string_view key) const {
  if (!document_) return false;
  const Document::Node& node = document_->nodes_[node_];
  if (node.key == Document::kNoKey) return false;
  // Most keys differ in length from the key that is searched.
  if (!node.key_escaped && node.key_size != key.size()) return false;
  const std::string_view inside = document_->text().substr(node.key + 1, node.key_size);
  return node.key_escaped ? EscapedEquals(inside, key) : inside == key;
}

inline Value::Iterator Value::begin() const {
  return Iterator(document_, document_ ? node_ + 1 : 0);
}
inline Value::Iterator Value::end() const {
  return Iterator(document_, document_ ? document_->nodes_[node_].next : 0);
}
inline Value::Iterator& Value::Iterator::operator++() {
  node_ = document_->nodes_[node_].next;
  return *this;
}

namespace internal {
// Bytes of literals that Unescape and EscapedEquals have read on this thread. Tests use it to bound
// the work that hostile documents cause.
inline thread_local uint64_t decoded_bytes = 0;
}  // namespace internal

}  // namespace tollgate::json
