// The response object and its items, as they stand in bodies and in stream events. See
// docs/design/wire.md 5.2.
#pragma once

#include "tests/support/protocol/assembled.h"

namespace tollgate::test {

// Every key that the public schemas require, of the right type, and what goes with the status.
void CheckResponseObject(const Json& response, Findings& find);
// One item of `output`, whole; adds it to the choice.
void CheckResponseItem(const Json& item, AssembledChoice& choice, Findings& find);
// The items of a response that has ended.
void CheckResponseOutput(const Json& response, AssembledChoice& choice, Findings& find);
AssembledUsage CheckResponseUsage(const Json& usage, Findings& find);
// "completed", or why it is incomplete.
std::string ResponseFinish(const Json& response);

}  // namespace tollgate::test
