// Random conversations in the formats of the Messages and the Responses surface, and the messages
// that an engine must get for them. See docs/design/wire.md 7.1, 7.3.
#pragma once

#include "tests/fuzz/forwarding/requests.h"

namespace tollgate::fuzz {

// `expected` has the form that Plain returns.
ForwardCase RandomMessagesRequest(Random& random);
ForwardCase RandomResponsesRequest(Random& random);

// Normalizes an engine request, so that equivalent bodies compare equal: each message as
// {role, texts, reasoning, calls, id}, each tool as {name, description, parameters, strict}.
test::Json Plain(const test::Json& engine_body);

}  // namespace tollgate::fuzz
