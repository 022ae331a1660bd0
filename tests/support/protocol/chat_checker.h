// Chat completions: the stream of chunks and the single body. See docs/design/wire.md 1.1, 2.2 to
// 2.5, decisions 23, 31. Reasoning may follow content: a model may reason again.
#pragma once

#include "tests/support/protocol/assembled.h"

namespace tollgate::test {

struct ChatExpectations {
  int choices = 1;  // the n of the request
  bool include_usage = false;
};

Checked CheckChatStream(std::string_view bytes, const ChatExpectations& expected = {});
Checked CheckChatBody(std::string_view body, const ChatExpectations& expected = {});

}  // namespace tollgate::test
