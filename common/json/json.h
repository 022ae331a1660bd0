// The strict JSON reader: checks a whole text once (RFC 8259, UTF-8, duplicate keys, depth, size)
// and leaves a flat index of it. Values are looked at in place and can be handed on as the very
// bytes that came; nothing is copied or written out again (performance.md, "Large prompts").
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "common/base/result.h"
#include "common/base/text.h"

namespace tollgate::json {

enum class Type : uint8_t { kNull, kBool, kNumber, kString, kArray, kObject };

struct Limits {
  int max_depth = 64;           // H52
  size_t max_members = 10'000;  // members of one object
  size_t max_values = 1'000'000;
  // Engines' streams may cut a surrogate pair in two; callers' bodies may not hold a lone one
  // (H55).
  bool allow_lone_surrogates = false;
  // U+0000 in strings (H55).
  bool allow_nul = false;
};

class Document;

// A place in a document. Cheap to copy; valid while the document lives and is not moved. A value
// that is not there (`Find` of an absent member) is false in a condition and answers like null.
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
  // A string's inside: escaped, without the quotes.
  std::string_view raw_string() const;
  // A string's decoded text.
  std::string string() const;
  // Whether the decoded text equals this one, without making a copy.
  bool StringEquals(std::string_view text) const;
  bool boolean() const;
  // A number that is an integer in value (5, 5.0, 1e3) and fits; empty otherwise.
  std::optional<int64_t> Integer() const;
  // A number; empty when it is beyond a double's range.
  std::optional<double> Number() const;

  // Array elements and object members.
  size_t size() const;
  // The member of that name, or an absent value. Null members are found.
  Value Find(std::string_view key) const;

  class Iterator;
  // for (Value element : value) over an array, or over the member values of an object; member
  // values know their key.
  Iterator begin() const;
  Iterator end() const;
  // Of a member's value: its key, decoded, and the offset where the key's quote stands in the text.
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
  std::string message;  // for people, for example "duplicate key \"model\" at byte 17"
  size_t offset = 0;
};

class Document {
 public:
  // Takes the text over. Fails with the first thing wrong.
  static BasicResult<Document, ParseError> Parse(std::string text, const Limits& limits = {});
  // The same without taking the text over: it must outlive the document.
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

// Appends text (valid UTF-8) as the inside of a JSON string literal, without quotes.
void AppendEscaped(std::string& out, std::string_view text);
// Appends text as a JSON string literal with its quotes.
void AppendQuoted(std::string& out, std::string_view text);
std::string Quoted(std::string_view text);
// Decodes the inside of a JSON string literal that the reader has accepted. Lone surrogates become
// U+FFFD.
std::string Unescape(std::string_view inside);
using tollgate::IsValidUtf8;

}  // namespace tollgate::json
