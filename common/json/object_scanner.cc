#include "common/json/object_scanner.h"

#include "common/base/ascii.h"

namespace tollgate::json {

void ObjectScanner::AddDecoded(char c) {
  if (in_string_) {
    if (string_escape_) {
      string_escape_ = false;
    } else if (c == '\\') {
      string_escape_ = true;
    } else if (c == '"') {
      in_string_ = false;
    }
    return;
  }
  if (c == '"') {
    in_string_ = true;
  } else if (c == '{' || c == '[') {
    ++depth_;
    opened_ = true;
  } else if (c == '}' || c == ']') {
    --depth_;
  }
}

void ObjectScanner::Add(std::string_view escaped) {
  for (const char c : escaped) {
    if (hex_digits_ > 0) {
      code_ = code_ * 16 + static_cast<unsigned>(HexValue(c));
      if (--hex_digits_ == 0) AddDecoded(code_ < 0x80 ? static_cast<char>(code_) : 'x');
    } else if (pending_backslash_) {
      pending_backslash_ = false;
      if (c == 'u') {
        hex_digits_ = 4;
        code_ = 0;
      } else {
        AddDecoded(c == '"' || c == '\\' ? c : ' ');
      }
    } else if (c == '\\') {
      pending_backslash_ = true;
    } else {
      AddDecoded(c);
    }
  }
}

}  // namespace tollgate::json
