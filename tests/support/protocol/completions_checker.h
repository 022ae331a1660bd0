// Legacy completions: the stream and the single body. See docs/design/wire.md 1.1, 3.
#pragma once

#include "tests/support/protocol/assembled.h"

namespace tollgate::test {

struct CompletionsExpectations {
  int choices = 1;  // prompts times n
  bool include_usage = false;
};

Checked CheckCompletionsStream(std::string_view bytes,
                               const CompletionsExpectations& expected = {});
Checked CheckCompletionsBody(std::string_view body, const CompletionsExpectations& expected = {});

}  // namespace tollgate::test
