// Content blocks that say something: text, documents, search results, references to tools, images.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "common/error/error.h"
#include "common/json/json.h"

namespace tollgate::gateway {

// Where a block stands, for the words of an error: messages[3].content[1], or system[1]. Negative
// numbers are left out.
struct Place {
  std::string_view param = "messages";
  int turn = -1;
  int block = -1;
};

// 400 with the place's param; `what` follows the place.
Fail<Error> WrongAt(const Place& place, std::string_view what);

// What a block says, all as insides of JSON literals: texts in their order, or an image.
struct Said {
  std::vector<std::string_view> texts;  // views into the document
  std::string image_url;                // empty: no image
};

// 400 for blocks of other types, and for what stands on a server of the vendor's (files) or needs
// one to be read (documents that are no text). spec: wire.md 6.1, 7.1.
Result<Said> ReadSaying(json::Value block, const Place& place);

// What the vendor's servers have put into a conversation, or take out of it: nothing here can read
// it, and nothing is missing without it.
bool IsServerBlock(json::Value type);

}  // namespace tollgate::gateway
