#include "services/inference_router/engine/embedding_reader.h"

#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>

#include "common/base/base64.h"
#include "common/json/json.h"

namespace tollgate::inference_router {
namespace {

static_assert(std::endian::native == std::endian::little && sizeof(float) == 4);

// One vector: 65,536 numbers of 25 digits.
constexpr size_t kMaxElement = 2 << 20;
constexpr size_t kMaxRest = 1 << 20;
constexpr size_t kMaxKey = 16;
// Limits on the numbers of one vector and of all vectors of an answer. As decimal text, which
// clients may request, a number has up to 12 bytes.
constexpr size_t kMaxNumbers = 65'536;
constexpr size_t kMaxAllNumbers = 16 << 20;

// JSON has no infinity or NaN, and a vector with one is useless for search.
bool AreFiniteFloats(std::string_view bytes) {
  if (bytes.empty() || bytes.size() % sizeof(float) != 0) return false;
  for (size_t at = 0; at < bytes.size(); at += sizeof(float)) {
    float value = 0;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    if (!std::isfinite(value)) return false;
  }
  return true;
}

bool FitsFloat(json::Value number) {
  if (!number.is_number()) return false;
  const std::string_view text = number.raw();
  float value = 0;
  const auto read = std::from_chars(text.data(), text.data() + text.size(), value);
  if (read.ec == std::errc()) return true;
  const auto exact = number.Number();  // underflow rounds to zero
  return exact && std::abs(*exact) < 1;
}

// Converts the vector to Delta.embedding_json; empty if invalid.
std::string VectorJson(json::Value vector) {
  if (vector.is_string()) {
    const std::string base64 = vector.string();  // the slash may be escaped
    const auto bytes = Base64Decode(base64);
    return bytes && AreFiniteFloats(*bytes) ? '"' + base64 + '"' : "";
  }
  if (!vector.is_array() || vector.size() == 0) return "";
  for (const json::Value number : vector) {
    if (!FitsFloat(number)) return "";
  }
  return std::string(vector.raw());
}

}  // namespace

bool EmbeddingReader::Fail(std::string_view internal) {
  failure_ = BrokenResponse(internal);
  return false;
}

bool EmbeddingReader::FailAboveLimit() {
  failure_ = OverLimit(AnswerLimit::kAnswerBytes);
  return false;
}

bool EmbeddingReader::FailTooManyInputs() {
  failure_ = EngineFailure();
  failure_.error = {.id = ErrorId::kBadRequest,
                    .message = "The answer would be too large: send fewer inputs at a time.",
                    .param = "input",
                    .internal = "embeddings above the limit"};
  failure_.limit = AnswerLimit::kAnswerBytes;
  return false;
}

bool EmbeddingReader::CheckSize() {
  if (bytes_ > options_.max_bytes) return FailTooManyInputs();
  // Vectors of this many inputs never need more bytes, whatever the client sends.
  const auto most =
      static_cast<int64_t>(kMaxElement) * options_.inputs + static_cast<int64_t>(kMaxRest);
  return bytes_ <= most || FailAboveLimit();
}

bool EmbeddingReader::Feed(std::string_view bytes, std::vector<inference::v1::Event>& out) {
  bytes_ += static_cast<int64_t>(bytes.size());
  if (!CheckSize()) return false;
  for (size_t at = 0; at < bytes.size(); ++at) {
    at += AppendStringContent(bytes.substr(at));
    if (at == bytes.size()) break;
    const char c = bytes[at];
    if (in_string_) {
      if (depth_ == 1 && c != '"' && key_.size() < kMaxKey) key_.push_back(c);
      in_string_ = escaped_ || c != '"';
      escaped_ = !escaped_ && c == '\\';
      Append(c);
    } else if (c == '"') {
      OnQuote();
    } else if (c == '{' || c == '[') {
      OnOpen(c);
    } else if (c == '}' || c == ']') {
      if (!OnClose(c, out)) return false;
    } else if (position_ != Position::kBetween || c != ',') {
      Append(c);
    }
  }
  return (element_.size() <= kMaxElement && rest_.size() <= kMaxRest) || FailAboveLimit();
}

// Fast path for the contents of base64 strings, which make up most of a response. Appends up to the
// next quote or escape and returns the number of bytes appended.
size_t EmbeddingReader::AppendStringContent(std::string_view bytes) {
  if (!in_string_ || escaped_ || position_ != Position::kElement) return 0;
  std::string_view plain = bytes.substr(0, bytes.find('"'));
  plain = plain.substr(0, plain.find('\\'));
  element_ += plain;
  return plain.size();
}

void EmbeddingReader::OnQuote() {
  in_string_ = true;
  if (depth_ == 1) key_.clear();
  Append('"');
}

void EmbeddingReader::OnOpen(char bracket) {
  if (position_ == Position::kBetween) position_ = Position::kElement;
  Append(bracket);
  // The string before a list in the outermost object is the name of the member.
  if (++depth_ == 2 && bracket == '[' && key_ == "data") position_ = Position::kBetween;
}

bool EmbeddingReader::OnClose(char bracket, std::vector<inference::v1::Event>& out) {
  --depth_;
  if (position_ == Position::kBetween) position_ = Position::kOutside;
  Append(bracket);
  if (position_ != Position::kElement || depth_ > 2) return true;
  position_ = Position::kBetween;
  const bool read = ReadElement(out);
  element_.clear();
  return read;
}

bool EmbeddingReader::ReadElement(std::vector<inference::v1::Event>& out) {
  json::Limits limits;
  limits.max_values = 2 * kMaxNumbers;
  const auto document = json::Document::ParseView(element_, limits);
  if (!document || !document->root().is_object()) return Fail("an embedding is not an object");
  const json::Value index = document->root().Find("index");
  const int64_t input = index.is_number() ? index.Integer().value_or(-1) : next_;
  if (input < 0 || input >= options_.inputs)
    return Fail("an embedding with an index outside the inputs");
  const auto place = static_cast<size_t>(input);
  next_ = static_cast<int>(input) + 1;
  if (seen_[place]) return Fail("two embeddings for one input");
  const json::Value embedding = document->root().Find("embedding");
  const size_t numbers =
      embedding.is_string() ? embedding.raw_string().size() * 3 / 16 : embedding.size();
  numbers_ += numbers;
  if (numbers > kMaxNumbers) return FailAboveLimit();
  if (numbers_ > kMaxAllNumbers) return FailTooManyInputs();
  std::string vector = VectorJson(embedding);
  if (vector.empty()) return Fail("an embedding is not a vector of finite numbers");
  seen_[place] = true;
  ++found_;
  inference::v1::Delta& delta = *out.emplace_back().mutable_delta();
  delta.set_choice(static_cast<int32_t>(input));
  delta.set_embedding_json(std::move(vector));
  return true;
}

bool EmbeddingReader::End() {
  json::Limits limits;
  limits.allow_lone_surrogates = true;
  limits.allow_nul = true;
  const auto document = json::Document::ParseView(rest_, limits);
  if (!document || !document->root().is_object()) return Fail("response is not a JSON object");
  const json::Value root = document->root();
  if (IsErrorObject(root)) {
    failure_ = ClassifyInStream(root, options_.window);
    return false;
  }
  if (found_ != options_.inputs) {
    return Fail(std::to_string(found_) + " embeddings for " + std::to_string(options_.inputs) +
                " inputs");
  }
  const json::Value usage = root.Find("usage");
  json::Value tokens = usage.Find("prompt_tokens");
  if (!tokens.is_number()) tokens = usage.Find("total_tokens");
  if (tokens.is_number()) usage_.emplace().prompt_tokens = tokens.Integer().value_or(-1);
  return true;
}

}  // namespace tollgate::inference_router
