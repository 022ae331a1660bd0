// Random conversations, asked in the words of the Messages and the Responses surface, and what an
// engine must hear of them. See docs/design/wire.md 7.1, 7.3.
#pragma once

#include "tests/fuzz/forwarding/requests.h"

namespace tollgate::fuzz {

// `expected` is in the form that Plain gives.
ForwardCase RandomMessagesRequest(Random& random);
ForwardCase RandomResponsesRequest(Random& random);

// An engine's body in a form in which two ways of saying the same thing are equal: each message as
// {role, texts, reasoning, calls, id}, each tool as {name, description, parameters, strict}.
test::Json Plain(const test::Json& engine_body);

}  // namespace tollgate::fuzz
