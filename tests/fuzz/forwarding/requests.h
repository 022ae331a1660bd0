// Random requests, and the engine requests expected for them: the forwarding rules, written from
// the documents, independent of the product's tables. See docs/design/wire.md 2.1, 2.4, 3, 10.2;
// decisions 17, 18, 31.
#pragma once

#include <cstdint>
#include <optional>

#include "tests/fuzz/forwarding/values.h"

namespace tollgate::fuzz {

struct ForwardCase {
  test::Json request;
  // The members that the engine must get besides those that the router sets itself, in any order;
  // within each the order matters.
  test::Json expected = test::Json::Object();
  std::optional<int64_t> max_tokens;
  int choices = 1;
};

ForwardCase RandomChatRequest(Random& random);
ForwardCase RandomCompletionsRequest(Random& random);

}  // namespace tollgate::fuzz
