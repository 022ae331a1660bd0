#include "gateway/surfaces/messages/content.h"

#include <algorithm>

#include "gateway/surfaces/shared/media_url.h"

namespace tollgate::gateway {

namespace {

bool HasText(json::Value value) { return value.is_string() && !value.raw_string().empty(); }

Result<BlockContent> ReadText(json::Value block, const BlockPath& path) {
  const json::Value text = block.Find("text");
  if (!text.is_string()) return BadRequestAt(path, ".text must be a string.");
  return BlockContent{{text.raw_string()}, {}};
}

// Converts the image to a URL that engines accept: data: or https: (decision 45).
Result<BlockContent> ReadImage(json::Value block, const BlockPath& path) {
  const json::Value source = block.Find("source");
  const json::Value type = source.Find("type");
  BlockContent content;
  if (type.StringEquals("base64")) {
    const json::Value media_type = source.Find("media_type");
    const json::Value data = source.Find("data");
    if (!media_type.is_string() || !media_type.string().starts_with("image/")) {
      return BadRequestAt(path, ".source.media_type must be an image type.");
    }
    if (!HasText(data)) return BadRequestAt(path, ".source.data must be a base64 string.");
    content.image_url = "data:";
    content.image_url += media_type.raw_string();
    content.image_url += ";base64,";
    content.image_url += data.raw_string();
    if (!ParseMediaUrl(content.image_url)) {
      return BadRequestAt(path, ".source.media_type must be an image type.");
    }
    return content;
  }
  if (type.StringEquals("url")) {
    const json::Value url = source.Find("url");
    if (!url.is_string() || !ParseMediaUrl(url.raw_string())) {
      return BadRequestAt(path, ".source.url" + std::string(kBadMediaUrl));
    }
    content.image_url = url.raw_string();
    return content;
  }
  return BadRequestAt(path, ".source must be an object of type 'base64' or 'url'.");
}

Result<BlockContent> ReadDocument(json::Value block, const BlockPath& path) {
  const json::Value source = block.Find("source");
  if (!source.Find("type").StringEquals("text")) {
    return BadRequestAt(path, ".source must be of type 'text': other documents are not supported.");
  }
  const json::Value data = source.Find("data");
  if (!data.is_string()) return BadRequestAt(path, ".source.data must be a string.");
  BlockContent content;
  for (const char* name : {"title", "context"}) {
    const json::Value text = block.Find(name);
    if (HasText(text)) content.texts.push_back(text.raw_string());
  }
  content.texts.push_back(data.raw_string());
  return content;
}

Result<BlockContent> ReadSearchResult(json::Value block, const BlockPath& path) {
  BlockContent content;
  for (const char* name : {"title", "source"}) {
    const json::Value text = block.Find(name);
    if (!text.is_string()) {
      return BadRequestAt(path, " must have a string '" + std::string(name) + "'.");
    }
    if (HasText(text)) content.texts.push_back(text.raw_string());
  }
  const json::Value items = block.Find("content");
  if (!items.is_array()) return BadRequestAt(path, ".content must be an array of text blocks.");
  for (const json::Value item : items) {
    const json::Value text = item.Find("text");
    if (!item.Find("type").StringEquals("text") || !text.is_string()) {
      return BadRequestAt(path, ".content must be an array of text blocks.");
    }
    content.texts.push_back(text.raw_string());
  }
  return content;
}

// The result of a search among the client's tools. The engine has their definitions, so the name is
// sufficient.
Result<BlockContent> ReadToolReference(json::Value block, const BlockPath& path) {
  const json::Value name = block.Find("tool_name");
  if (!HasText(name)) return BadRequestAt(path, ".tool_name must be a non-empty string.");
  return BlockContent{{name.raw_string()}, {}};
}

}  // namespace

Fail<Error> BadRequestAt(const BlockPath& path, std::string_view problem) {
  std::string message(path.param);
  if (path.turn >= 0) message += "[" + std::to_string(path.turn) + "]";
  if (path.block >= 0) {
    if (path.turn >= 0) message += ".content";
    message += "[" + std::to_string(path.block) + "]";
  }
  message += problem;
  return BadRequest(std::move(message), std::string(path.param));
}

Result<BlockContent> ReadContentBlock(json::Value block, const BlockPath& path) {
  const json::Value type = block.Find("type");
  if (type.StringEquals("text")) return ReadText(block, path);
  if (type.StringEquals("image")) return ReadImage(block, path);
  if (type.StringEquals("document")) return ReadDocument(block, path);
  if (type.StringEquals("search_result")) return ReadSearchResult(block, path);
  if (type.StringEquals("tool_reference")) return ReadToolReference(block, path);
  const std::string name = type.string();
  // Text that does not look like a type may be content, and people other than the caller see
  // errors.
  const bool is_name = name.size() <= 32 && std::all_of(name.begin(), name.end(), [](char c) {
                         return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_';
                       });
  return BadRequestAt(path,
                      ".type " + (is_name ? "'" + name + "' " : "") + "is not supported here.");
}

bool IsServerBlock(json::Value type) {
  if (type.StringEquals("tool_result") || type.StringEquals("tool_use")) return false;
  const std::string name = type.string();
  return name.ends_with("_tool_use") || name.ends_with("_tool_result") || name == "compaction" ||
         name == "fallback" || name == "mcp_tool_listing";
}

}  // namespace tollgate::gateway
