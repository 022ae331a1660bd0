// The input of tool_use blocks. It must be an object, whatever arguments the engine sent: missing
// arguments become {}, an object is copied, and anything else becomes {"INVALID_JSON": text}, as in
// the public service. Arguments are contents of JSON strings.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tollgate::gateway {

// Converts complete arguments. An object that max_tokens cut off is not an object.
std::string ToolInput(std::string_view arguments);

// Converts arguments of a stream. Whether an object is complete is unknown at its start, so text
// that starts like an object is always copied.
class StreamedToolInput {
 public:
  // Add and End append what to send now, as the contents of a JSON string; this may be nothing.
  void Add(std::string_view piece, std::string& out);
  void End(std::string& out);

 private:
  enum class Form : uint8_t { kUnknown, kObject, kOther };
  Form form_ = Form::kUnknown;
  std::string pending_whitespace_;  // until the form is known
};

}  // namespace tollgate::gateway
