// Writes JSON objects and arrays member by member.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "common/json/json.h"

namespace tollgate::dashboard {

// An object: ObjectOut().Text("a", "x").Number("b", 1).Done() is {"a":"x","b":1}.
class ObjectOut {
 public:
  ObjectOut& Text(std::string_view name, std::string_view value) {
    return Raw(name, json::Quoted(value));
  }
  ObjectOut& Number(std::string_view name, int64_t value) {
    return Raw(name, std::to_string(value));
  }
  ObjectOut& Flag(std::string_view name, bool value) { return Raw(name, value ? "true" : "false"); }
  ObjectOut& Null(std::string_view name) { return Raw(name, "null"); }
  // Takes JSON text.
  ObjectOut& Raw(std::string_view name, std::string_view value) {
    if (text_.size() > 1) text_ += ',';
    json::AppendQuoted(text_, name);
    text_ += ':';
    text_ += value;
    return *this;
  }
  std::string Done() const { return text_ + '}'; }

 private:
  std::string text_ = "{";
};

// An array of what each(element) writes.
template <typename List, typename Each>
std::string ArrayOut(const List& list, Each each) {
  std::string text = "[";
  for (const auto& element : list) {
    if (text.size() > 1) text += ',';
    text += each(element);
  }
  return text + ']';
}

}  // namespace tollgate::dashboard
