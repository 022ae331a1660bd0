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
  // An escaped surrogate without its other half is overwritten by \ufffd, which is as long
  // (decision 38). Only where the document owns its text: ignored by ParseView.
  bool replace_lone_surrogates = false;
  // Whether strings may contain U+0000, escaped (H55).
  bool allow_nul = false;
  // Whether an object may have a key twice; the caller judges it.
  bool allow_duplicate_keys = false;
  // Ignores everything after the first value of the text.
  bool first_value_only = false;
};

class Document;

// A value of a document. Cheap to copy; valid as long as the document exists and is not moved. An
// absent value (`Find` of a missing member) converts to false and otherwise behaves like null.
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
  // A string as written: with its escapes, without the quotes.
  std::string_view raw_string() const;
  // A string, decoded.
  std::string string() const;
  // Whether the decoded string equals the text. Copies only strings with escapes.
  bool StringEquals(std::string_view text) const;
  bool boolean() const;
  // A number whose value is an integer (5, 5.0, 1e3) that fits into int64_t; empty otherwise.
  std::optional<int64_t> Integer() const;
  // A number; empty if it overflows a double.
  std::optional<double> Number() const;

  // The number of array elements or object members.
  size_t size() const;
  // The member of that name, or an absent value. A member whose value is null is found.
  Value Find(std::string_view key) const;

  class Iterator;
  // for (Value element : value) iterates over the elements of an array, or over the member values
  // of an object, whose keys are key().
  Iterator begin() const;
  Iterator end() const;
  // For the value of a member: its key, decoded, and the offset of the key's opening quote.
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
  // Takes ownership of the text. Fails with the first error.
  static BasicResult<Document, ParseError> Parse(std::string text, const Limits& limits = {});
  // The same without ownership: the text must outlive the document.
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
    uint32_t next;      // node after this value and everything in it
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

// Appends text, which must be valid UTF-8, escaped for a JSON string literal, without quotes.
void AppendEscaped(std::string& out, std::string_view text);
// Appends text as a JSON string literal, with quotes.
void AppendQuoted(std::string& out, std::string_view text);
std::string Quoted(std::string_view text);
// Decodes a JSON string literal, given without its quotes, that the parser has accepted. Lone
// surrogates become U+FFFD.
std::string Unescape(std::string_view inside);
// Whether such a literal decodes to text. Stops at the first difference and allocates nothing.
bool EscapedEquals(std::string_view inside, std::string_view text);
// The bytes before the quote that ends the string literal whose inside the text begins with. npos
// if it does not end, is not valid, or has \u escapes, which need a closer look.
size_t PlainStringLength(std::string_view text);

inline Type Value::type() const { return document_ ? document_->nodes_[node_].type : Type::kNull; }

inline bool Value::KeyEquals(std::string_view key) const {
  if (!document_) return false;
  const Document::Node& node = document_->nodes_[node_];
  if (node.key == Document::kNoKey) return false;
  // Most keys of a document differ in their length from the one that is looked for.
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
// Bytes of literals that Unescape and EscapedEquals have looked at on this thread. Tests bound the
// work of hostile documents by it.
inline thread_local uint64_t decoded_bytes = 0;
}  // namespace internal

}  // namespace tollgate::json
