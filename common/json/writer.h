// Builds JSON objects and arrays as text, for cold paths. Code that runs once per token appends
// bytes itself.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/json/json.h"

namespace tollgate::json {

// Builds an object: json::Writer().Text("a", "x").Number("b", 1).Done() is {"a":"x","b":1}.
class Writer {
 public:
  Writer& Text(std::string_view name, std::string_view value) { return Raw(name, Quoted(value)); }
  Writer& Number(std::string_view name, int64_t value) { return Raw(name, std::to_string(value)); }
  Writer& Flag(std::string_view name, bool value) { return Raw(name, value ? "true" : "false"); }
  Writer& Null(std::string_view name) { return Raw(name, "null"); }
  // value: JSON text.
  Writer& Raw(std::string_view name, std::string_view value) {
    if (text_.size() > 1) text_ += ',';
    AppendQuoted(text_, name);
    text_ += ':';
    text_ += value;
    return *this;
  }
  std::string Done() const { return text_ + '}'; }

 private:
  std::string text_ = "{";
};

// Builds an array. each(element) returns the JSON text of an element.
template <typename List, typename Each>
std::string WriteArray(const List& list, Each each) {
  std::string text = "[";
  for (const auto& element : list) {
    if (text.size() > 1) text += ',';
    text += each(element);
  }
  return text + ']';
}

}  // namespace tollgate::json
