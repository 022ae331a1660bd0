// Tells when the escaped pieces of a JSON text, for example a tool call's arguments on their way
// through a stream, make one whole object or array.
#pragma once

#include <string_view>

namespace tollgate::json {

class ObjectScanner {
 public:
  // The next piece, as it stands inside a JSON string literal. Cuts may be anywhere.
  void Add(std::string_view escaped);
  // Every bracket that was opened is closed, and at least one was.
  bool complete() const { return opened_ && depth_ == 0; }

 private:
  void AddDecoded(char c);

  int depth_ = 0;
  bool opened_ = false;
  bool in_string_ = false;
  bool string_escape_ = false;
  bool pending_backslash_ = false;
  int hex_digits_ = 0;  // of \uXXXX, still to come
  unsigned code_ = 0;
};

}  // namespace tollgate::json
