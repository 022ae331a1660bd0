// Access to the values of a parsed document.
#include <charconv>

#include "common/json/json.h"

namespace tollgate::json {

std::string_view Value::raw() const {
  if (!document_) return {};
  const auto& node = document_->nodes_[node_];
  return document_->text().substr(node.begin, node.end - node.begin);
}

size_t Value::offset() const { return document_ ? document_->nodes_[node_].begin : 0; }

std::string_view Value::raw_string() const {
  if (!is_string()) return {};
  const std::string_view literal = raw();
  return literal.substr(1, literal.size() - 2);
}

std::string Value::string() const {
  if (!is_string()) return {};
  return document_->nodes_[node_].escaped ? Unescape(raw_string()) : std::string(raw_string());
}

bool Value::StringEquals(std::string_view text) const {
  if (!is_string()) return false;
  return document_->nodes_[node_].escaped ? EscapedEquals(raw_string(), text)
                                          : raw_string() == text;
}

bool Value::boolean() const { return is_bool() && raw() == "true"; }

namespace {

// A number as digits without leading and trailing zeros, times a power of ten.
struct Decimal {
  bool negative = false;
  std::string digits;  // empty: zero
  int64_t exponent = 0;
};

Decimal Split(std::string_view text) {
  Decimal decimal;
  size_t i = 0;
  if (text[i] == '-') {
    decimal.negative = true;
    ++i;
  }
  bool fraction = false;
  for (; i < text.size() && (text[i] | 0x20) != 'e'; ++i) {
    if (text[i] == '.') {
      fraction = true;
      continue;
    }
    if (fraction) --decimal.exponent;
    if (text[i] != '0' || !decimal.digits.empty()) decimal.digits.push_back(text[i]);
  }
  while (!decimal.digits.empty() && decimal.digits.back() == '0') {
    decimal.digits.pop_back();
    ++decimal.exponent;
  }
  if (i < text.size()) {
    ++i;
    const bool negative = text[i] == '-';
    if (text[i] == '-' || text[i] == '+') ++i;
    int64_t exponent = 0;
    // Above the exponent of any representable value. The cap keeps the sum below from overflowing.
    constexpr int64_t kHuge = 1'000'000'000'000;
    for (; i < text.size(); ++i) exponent = std::min(kHuge, exponent * 10 + (text[i] - '0'));
    decimal.exponent += negative ? -exponent : exponent;
  }
  return decimal;
}

}  // namespace

std::optional<int64_t> Value::Integer() const {
  if (!is_number()) return std::nullopt;
  const std::string_view text = raw();
  if (text.find_first_of(".eE") == std::string_view::npos) {
    int64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc()) return std::nullopt;
    return value;
  }
  const Decimal decimal = Split(text);
  if (decimal.digits.empty()) return 0;
  if (decimal.exponent < 0) return std::nullopt;
  if (decimal.exponent + static_cast<int64_t>(decimal.digits.size()) > 19) return std::nullopt;
  const std::string digits = (decimal.negative ? "-" : "") + decimal.digits +
                             std::string(static_cast<size_t>(decimal.exponent), '0');
  int64_t value = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
  if (error != std::errc()) return std::nullopt;
  return value;
}

std::optional<double> Value::Number() const {
  if (!is_number()) return std::nullopt;
  const std::string_view text = raw();
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error == std::errc()) return value;
  // from_chars reports overflow and underflow alike; underflow is zero.
  const Decimal decimal = Split(text);
  if (decimal.exponent + static_cast<int64_t>(decimal.digits.size()) < 0) {
    return decimal.negative ? -0.0 : 0.0;
  }
  return std::nullopt;
}

size_t Value::size() const { return document_ ? document_->nodes_[node_].count : 0; }

Value Value::Find(std::string_view key) const {
  if (!is_object()) return {};
  for (const Value member : *this) {
    if (member.KeyEquals(key)) return member;
  }
  return {};
}

std::string Value::key() const {
  if (!document_) return {};
  const auto& node = document_->nodes_[node_];
  if (node.key == Document::kNoKey) return {};
  const std::string_view inside = document_->text().substr(node.key + 1, node.key_size);
  return node.key_escaped ? Unescape(inside) : std::string(inside);
}

size_t Value::key_offset() const {
  if (!document_ || document_->nodes_[node_].key == Document::kNoKey) return 0;
  return document_->nodes_[node_].key;
}

}  // namespace tollgate::json
