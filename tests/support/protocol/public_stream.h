// The framing of the public event streams (docs/design/wire.md 1.1), stricter than what clients
// accept: LF only, one `data:` line of compact JSON per event, an `event:` line before it or none,
// comments between events.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tests/support/json.h"

namespace tollgate::test {

struct PublicEvent {
  std::string name;  // of the event line; empty when there is none
  std::string data;
  Json json;  // null for the end marker
  bool is_done() const { return data == "[DONE]"; }
};

struct PublicStream {
  std::vector<PublicEvent> events;
  size_t comments = 0;
  std::vector<std::string> violations;
};

PublicStream ReadPublicStream(std::string_view bytes);

// Whether the text is valid UTF-8: no overlong forms, no surrogates, nothing above U+10FFFF.
bool IsUtf8(std::string_view text);

}  // namespace tollgate::test
