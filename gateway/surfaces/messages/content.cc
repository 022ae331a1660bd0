#include "gateway/surfaces/messages/content.h"

namespace tollgate::gateway {

namespace {

bool HasText(json::Value value) { return value.is_string() && !value.raw_string().empty(); }

Result<Said> ReadText(json::Value block, const Place& place) {
  const json::Value text = block.Find("text");
  if (!text.is_string()) return WrongAt(place, ".text must be a string.");
  return Said{{text.raw_string()}, {}};
}

// As the address that engines take: the data itself, or http and https, nothing else to be fetched.
Result<Said> ReadImage(json::Value block, const Place& place) {
  const json::Value source = block.Find("source");
  const json::Value type = source.Find("type");
  Said said;
  if (type.StringEquals("base64")) {
    const json::Value media_type = source.Find("media_type");
    const json::Value data = source.Find("data");
    if (!media_type.is_string() || !media_type.string().starts_with("image/")) {
      return WrongAt(place, ".source.media_type must be that of an image.");
    }
    if (!HasText(data)) return WrongAt(place, ".source.data must be a base64 string.");
    said.image_url = "data:";
    said.image_url += media_type.raw_string();
    said.image_url += ";base64,";
    said.image_url += data.raw_string();
    return said;
  }
  if (type.StringEquals("url")) {
    const json::Value url = source.Find("url");
    const std::string text = url.is_string() ? url.string() : "";
    if (!text.starts_with("https://") && !text.starts_with("http://")) {
      return WrongAt(place, ".source.url must be an http or https URL.");
    }
    said.image_url = url.raw_string();
    return said;
  }
  return WrongAt(place, ".source must be an object of type 'base64' or 'url'.");
}

Result<Said> ReadDocument(json::Value block, const Place& place) {
  const json::Value source = block.Find("source");
  if (!source.Find("type").StringEquals("text")) {
    return WrongAt(place, ".source must be of type 'text': other documents are not supported.");
  }
  const json::Value data = source.Find("data");
  if (!data.is_string()) return WrongAt(place, ".source.data must be a string.");
  Said said;
  for (const char* name : {"title", "context"}) {
    const json::Value text = block.Find(name);
    if (HasText(text)) said.texts.push_back(text.raw_string());
  }
  said.texts.push_back(data.raw_string());
  return said;
}

Result<Said> ReadSearchResult(json::Value block, const Place& place) {
  Said said;
  for (const char* name : {"title", "source"}) {
    const json::Value text = block.Find(name);
    if (!text.is_string()) {
      return WrongAt(place, " must have a string '" + std::string(name) + "'.");
    }
    if (HasText(text)) said.texts.push_back(text.raw_string());
  }
  const json::Value content = block.Find("content");
  if (!content.is_array()) return WrongAt(place, ".content must be an array of text blocks.");
  for (const json::Value item : content) {
    const json::Value text = item.Find("text");
    if (!item.Find("type").StringEquals("text") || !text.is_string()) {
      return WrongAt(place, ".content must be an array of text blocks.");
    }
    said.texts.push_back(text.raw_string());
  }
  return said;
}

// The answer of a search among the caller's own tools. Engines have been given all of them, so the
// name says which one is meant.
Result<Said> ReadToolReference(json::Value block, const Place& place) {
  const json::Value name = block.Find("tool_name");
  if (!HasText(name)) return WrongAt(place, ".tool_name must be a non-empty string.");
  return Said{{name.raw_string()}, {}};
}

}  // namespace

Fail<Error> WrongAt(const Place& place, std::string_view what) {
  std::string message(place.param);
  if (place.turn >= 0) message += "[" + std::to_string(place.turn) + "]";
  if (place.block >= 0) {
    if (place.turn >= 0) message += ".content";
    message += "[" + std::to_string(place.block) + "]";
  }
  message += what;
  return BadRequest(std::move(message), std::string(place.param));
}

Result<Said> ReadSaying(json::Value block, const Place& place) {
  const json::Value type = block.Find("type");
  if (type.StringEquals("text")) return ReadText(block, place);
  if (type.StringEquals("image")) return ReadImage(block, place);
  if (type.StringEquals("document")) return ReadDocument(block, place);
  if (type.StringEquals("search_result")) return ReadSearchResult(block, place);
  if (type.StringEquals("tool_reference")) return ReadToolReference(block, place);
  return WrongAt(place, ".type '" + type.string() + "' is not supported here.");
}

bool IsServerBlock(json::Value type) {
  if (type.StringEquals("tool_result") || type.StringEquals("tool_use")) return false;
  const std::string name = type.string();
  return name.ends_with("_tool_use") || name.ends_with("_tool_result") || name == "compaction" ||
         name == "fallback" || name == "mcp_tool_listing";
}

}  // namespace tollgate::gateway
