// Reads the texts of a prompt without a tokenizer. Pure. See docs/design/wire.md 10.3.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "tollgate/inference/v1/inference.pb.h"

namespace tollgate::inference_router {

// The members of a chat, with all message parts removed except texts. Empty if they are not a chat.
std::optional<std::string> TextOnly(std::string_view members);

// The fewest tokens that the longest prompt can have with any known tokenizer and chat template; 0:
// unknown. For a chat only the user's last message is counted, because templates may omit the
// others: one token per 8 words. Tokens end at white space in nearly all vocabularies; the 8 is a
// margin for vocabularies with tokens of several words.
int64_t LeastTokens(inference::v1::RequestKind kind, std::string_view members);

}  // namespace tollgate::inference_router
