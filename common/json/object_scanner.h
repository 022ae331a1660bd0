// Detects when a JSON text that arrives in escaped pieces, such as streamed tool call arguments, is
// a complete object or array.
#pragma once

#include <string_view>

namespace tollgate::json {

class ObjectScanner {
 public:
  // Adds the next piece, escaped as in a JSON string literal. It may start and end anywhere.
  void Add(std::string_view escaped);
  // Whether at least one bracket was opened and all are closed.
  bool complete() const { return opened_ && depth_ == 0; }

 private:
  void AddDecoded(char c);

  int depth_ = 0;
  bool opened_ = false;
  bool in_string_ = false;
  bool string_escape_ = false;
  bool pending_backslash_ = false;
  int hex_digits_ = 0;  // digits of \uXXXX still to come
  unsigned code_ = 0;
};

}  // namespace tollgate::json
