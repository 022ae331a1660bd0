// Random JSON values, and random ways to write the same value.
#pragma once

#include <string>

#include "tests/fuzz/random.h"
#include "tests/support/json.h"

namespace tollgate::fuzz {

// A number with exactly this text.
test::Json Number(std::string_view text);
// Any Unicode, including NUL.
test::Json RandomString(Random& random);
// Any JSON value: nested, with nulls, empty objects, numbers beyond every machine type, unique
// keys.
test::Json RandomValue(Random& random, int depth = 0);
test::Json RandomJsonObject(Random& random, int depth = 0);

// The value as text, with random white space between tokens and random escapes.
std::string Write(Random& random, const test::Json& value);

}  // namespace tollgate::fuzz
