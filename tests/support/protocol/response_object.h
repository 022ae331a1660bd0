// The response object and its items, in bodies and in stream events. See
// docs/design/wire.md 5.2.
#pragma once

#include "tests/support/protocol/assembled.h"

namespace tollgate::test {

// Checks every key that the public schemas require, its type, and the members that depend on
// status.
void CheckResponseObject(const Json& response, Findings& find);
// Checks one complete item of `output` and adds it to the choice.
void CheckResponseItem(const Json& item, AssembledChoice& choice, Findings& find);
// Checks the items of a response that has ended.
void CheckResponseOutput(const Json& response, AssembledChoice& choice, Findings& find);
AssembledUsage CheckResponseUsage(const Json& usage, Findings& find);
// "completed", or why it is incomplete.
std::string ResponseFinish(const Json& response);

}  // namespace tollgate::test
