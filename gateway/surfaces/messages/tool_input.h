// The input of tool_use blocks, which must be an object whatever the engine sent as arguments: no
// arguments become {}, an object is copied, and anything else becomes {"INVALID_JSON": text}, the
// form of the public service. Arguments are contents of JSON strings.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tollgate::gateway {

// The input for complete arguments. An object that was cut off by max_tokens is not an object.
std::string ToolInput(std::string_view arguments);

// The same for a stream. Whether an object is complete is unknown at its start, so text that starts
// as an object is always copied.
class StreamedToolInput {
 public:
  // Both append what to send now, as the contents of a JSON string; possibly nothing.
  void Add(std::string_view piece, std::string& out);
  void End(std::string& out);

 private:
  enum class Form : uint8_t { kUnknown, kObject, kOther };
  Form form_ = Form::kUnknown;
  std::string pending_whitespace_;  // until the form is known
};

}  // namespace tollgate::gateway
