// Responses: the event stream and the single body. See docs/design/wire.md 1.1, 5.2, 5.3;
// decisions 23, 27.
#pragma once

#include "tests/support/protocol/assembled.h"

namespace tollgate::test {

Checked CheckResponsesStream(std::string_view bytes);
Checked CheckResponsesBody(std::string_view body);

}  // namespace tollgate::test
