// Random JSON values, and random ways to write one and the same value.
#pragma once

#include <string>

#include "tests/fuzz/random.h"
#include "tests/support/json.h"

namespace tollgate::fuzz {

// A number of this very text.
test::Json Number(std::string_view text);
// Any unicode but NUL, which no request may hold.
test::Json RandomString(Random& random);
// Anything: nested, with nulls, empty objects, numbers beyond every machine type, unique keys.
test::Json RandomValue(Random& random, int depth = 0);
test::Json RandomObject(Random& random, int depth = 0);

// The value as text: blanks between tokens and escapes in strings and keys as chance has it.
std::string Write(Random& random, const test::Json& value);

}  // namespace tollgate::fuzz
