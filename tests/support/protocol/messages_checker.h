// Messages: the event stream and the single body. See docs/design/wire.md 1.1, 6.2, 6.3, 7.2;
// docs/contract.md "Messages-style response" and "Events"; decisions 23, 28, 33.
#pragma once

#include "tests/support/protocol/assembled.h"

namespace tollgate::test {

// Reasoning blocks are joined into `reasoning`, text blocks into `text`. A call's arguments are the
// joined pieces of its input, {} when there is none.
Checked CheckMessagesStream(std::string_view bytes);
Checked CheckMessagesBody(std::string_view body);

}  // namespace tollgate::test
