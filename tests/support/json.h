// A small JSON tree for tests and the engine simulator. Independent of common/json, so that
// the product's JSON is checked by a reader that shares no code with it.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace tollgate::test {

class Json {
 public:
  enum class Type { kNull, kBool, kNumber, kString, kArray, kObject };
  struct Member;

  Json();
  Json(const Json&);
  Json(Json&&) noexcept;
  Json& operator=(const Json&);
  Json& operator=(Json&&) noexcept;
  ~Json();
  Json(bool value);              // NOLINT: implicit, like all of these
  Json(int value);               // NOLINT
  Json(int64_t value);           // NOLINT
  Json(double value);            // NOLINT
  Json(const char* value);       // NOLINT
  Json(std::string value);       // NOLINT
  Json(std::string_view value);  // NOLINT
  static Json Array();
  static Json Object();

  // Empty when the text is not one JSON value. Duplicate keys are kept; look-ups find the first.
  static std::optional<Json> Parse(std::string_view text);

  Type type() const { return type_; }
  bool is_null() const { return type_ == Type::kNull; }
  bool is_bool() const { return type_ == Type::kBool; }
  bool is_number() const { return type_ == Type::kNumber; }
  bool is_string() const { return type_ == Type::kString; }
  bool is_array() const { return type_ == Type::kArray; }
  bool is_object() const { return type_ == Type::kObject; }

  // Null for an absent member, so that look-ups can be chained.
  const Json& operator[](std::string_view key) const;
  const Json& operator[](const char* key) const { return (*this)[std::string_view(key)]; }
  const Json& operator[](size_t index) const;
  const Json& operator[](int index) const { return (*this)[static_cast<size_t>(index)]; }
  bool has(std::string_view key) const;
  size_t size() const;
  const std::vector<Json>& elements() const { return elements_; }
  const std::vector<Member>& members() const { return members_; }

  // The decoded text of a string; "" for anything else.
  const std::string& str() const;
  // The source text of a number.
  const std::string& number_text() const { return text_; }
  int64_t integer(int64_t otherwise = 0) const;
  double number(double otherwise = 0) const;
  bool boolean(bool otherwise = false) const { return is_bool() ? bool_ : otherwise; }

  Json& Set(std::string key, Json value);
  Json& Add(Json value);
  // Compact text.
  std::string Dump() const;
  void DumpTo(std::string& out) const;

  friend bool operator==(const Json& a, const Json& b) { return a.Dump() == b.Dump(); }

 private:
  friend class JsonParser;
  Type type_ = Type::kNull;
  bool bool_ = false;
  std::string text_;  // of a string, decoded; of a number, its source text
  std::vector<Json> elements_;
  std::vector<Member> members_;
};

struct Json::Member {
  std::string first;  // key
  Json second;
};

inline size_t Json::size() const { return is_object() ? members_.size() : elements_.size(); }

// Appends the text as the inside of a JSON string literal.
void AppendJsonEscaped(std::string& out, std::string_view text);
std::string JsonQuoted(std::string_view text);

}  // namespace tollgate::test
