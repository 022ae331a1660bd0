// Content blocks with text or an image: text, documents, search results, tool references, images.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "common/error/error.h"
#include "common/json/json.h"

namespace tollgate::gateway {

// The path of a block for error messages: messages[3].content[1], or system[1]. Negative indexes
// are omitted.
struct BlockPath {
  std::string_view param = "messages";
  int turn = -1;
  int block = -1;
};

// Fails with 400 and the path's param. `problem` follows the path in the message.
Fail<Error> BadRequestAt(const BlockPath& path, std::string_view problem);

// The content of a block: its texts in order, or an image. All are contents of JSON strings.
struct BlockContent {
  std::vector<std::string_view> texts;  // views into the document
  std::string image_url;                // empty: no image
};

// Fails with 400 for other block types, for files stored at the vendor, and for documents that are
// not text. See docs/design/wire.md 6.1, 7.1.
Result<BlockContent> ReadContentBlock(json::Value block, const BlockPath& path);

// Whether the vendor's server-side tools produced the block. Such blocks are skipped: engines
// cannot read them, and the conversation is complete without them.
bool IsServerBlock(json::Value type);

}  // namespace tollgate::gateway
