// The texts of a prompt, without a tokenizer. Pure. See docs/design/wire.md 10.3.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tollgate/inference/v1/inference.pb.h"

namespace tollgate::inference_router {

// The members of a chat with no parts but texts in its messages; empty if they are no chat.
std::optional<std::string> TextOnly(std::string_view members);

// The fewest tokens that the longest prompt can have with any known tokenizer and chat template; 0:
// nothing is known. Of a chat the last message of the user is looked at, since templates may leave
// out others: a token for each 8 words. Tokens end at white space in nearly all vocabularies; the 8
// are the margin for those whose tokens have several words.
int64_t LeastTokens(inference::v1::RequestKind kind, std::string_view members);

}  // namespace tollgate::inference_router
