#include "tests/support/sim_embeddings.h"

#include <algorithm>
#include <charconv>
#include <cstring>

#include "tests/support/sim_completions.h"
#include "tests/support/sim_text.h"

namespace tollgate::test {
namespace {

constexpr int64_t kMarksPerText = 2;
constexpr int64_t kMaxDimensions = 8192;

int64_t CountOne(const Json& input) {
  return input.is_string() ? CountTokens(input.str()) + kMarksPerText
                           : static_cast<int64_t>(input.size());
}

std::string Base64(const std::string& bytes) {
  static const char kAlphabet[] =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  for (size_t at = 0; at < bytes.size(); at += 3) {
    uint32_t group = 0;
    for (size_t i = 0; i < 3; ++i) {
      group = group << 8 | (at + i < bytes.size() ? static_cast<unsigned char>(bytes[at + i]) : 0U);
    }
    for (size_t i = 0; i < 4; ++i) {
      text += at + i > bytes.size() ? '=' : kAlphabet[group >> (18 - 6 * i) & 63];
    }
  }
  return text;
}

std::string AsBase64(const std::vector<float>& vector) {
  std::string bytes(vector.size() * sizeof(float), '\0');
  std::memcpy(bytes.data(), vector.data(), bytes.size());
  return '"' + Base64(bytes) + '"';
}

// Formats like Python prints a float32: the digits of its value as a double.
std::string AsNumbers(const std::vector<float>& vector) {
  std::string text = "[";
  char digits[32];
  for (const float value : vector) {
    if (text.size() > 1) text += ',';
    const auto end = std::to_chars(digits, digits + sizeof digits, static_cast<double>(value)).ptr;
    text.append(digits, end);
  }
  return text + "]";
}

}  // namespace

std::vector<float> EmbeddingOf(const Json& input, int64_t dimensions) {
  uint64_t hash = MixHash(input.is_string() ? input.str() : input.Dump(), 3);
  std::vector<float> vector;
  for (int64_t i = 0; i < dimensions; ++i) {
    hash = MixHash(static_cast<uint64_t>(i), hash);
    vector.push_back(static_cast<float>(static_cast<int32_t>(hash >> 32)) / 2147483648.0F);
  }
  return vector;
}

int64_t CountInput(const Json& body) {
  int64_t count = 0;
  for (const Json& input : InputsOf(body["input"])) count += CountOne(input);
  return count;
}

std::optional<SimError> CheckEmbedding(const Json& body, int64_t window) {
  const int64_t dimensions = body["dimensions"].integer(kEmbeddingDimensions);
  if (dimensions < 1 || dimensions > kMaxDimensions) {
    return SimError{400, "BadRequestError", "unsupported dimensions", "dimensions"};
  }
  for (const Json& input : InputsOf(body["input"])) {
    const int64_t count = CountOne(input);
    if (count <= window) continue;
    return SimError{400, "BadRequestError",
                    "This model's maximum context length is " + std::to_string(window) +
                        " tokens. However, you requested " + std::to_string(count) +
                        " tokens in the input for embedding generation. Please reduce the length "
                        "of the input.",
                    ""};
  }
  return std::nullopt;
}

std::string EmbeddingBody(const Json& body, const Json& script, const std::string& usage) {
  const int64_t dimensions = body["dimensions"].integer(kEmbeddingDimensions);
  const Json& format =
      script["embedding_format"].is_null() ? body["encoding_format"] : script["embedding_format"];
  const std::vector<Json> inputs = InputsOf(body["input"]);
  std::vector<std::string> items;
  for (size_t i = 0; i < inputs.size(); ++i) {
    const std::vector<float> vector = EmbeddingOf(inputs[i], dimensions);
    items.push_back("{\"index\":" + std::to_string(i) + ",\"object\":\"embedding\",\"embedding\":" +
                    (format.str() == "base64" ? AsBase64(vector) : AsNumbers(vector)) + "}");
  }
  items.resize(
      items.size() -
      std::min<size_t>(items.size(), static_cast<size_t>(script["embedding_missing"].integer(0))));
  if (script["embedding_order"].str() == "reversed") std::reverse(items.begin(), items.end());
  std::string data;
  for (const std::string& item : items) data += (data.empty() ? "" : ",") + item;
  return "{\"id\":\"embd-1\",\"object\":\"list\",\"created\":1700000000,\"model\":" +
         JsonQuoted(body["model"].str()) + ",\"data\":[" + data + "]" +
         (usage.empty() ? "" : ",\"usage\":" + usage) + "}";
}

}  // namespace tollgate::test
