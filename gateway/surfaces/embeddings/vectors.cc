#include "gateway/surfaces/embeddings/vectors.h"

#include <bit>
#include <charconv>
#include <cstring>

#include "common/base/base64.h"

namespace tollgate::gateway {

namespace {

static_assert(std::endian::native == std::endian::little && sizeof(float) == 4);

// The router has validated both forms (services/inference_router/engine/embedding_reader.h), so
// decoding cannot fail.
void AppendFloats(std::string& out, std::string_view base64) {
  const std::string bytes = Base64Decode(base64).value_or("");
  out.reserve(out.size() + bytes.size() * 4);
  char text[32];
  char separator = '[';
  for (size_t at = 0; at + sizeof(float) <= bytes.size(); at += sizeof(float)) {
    float value = 0;
    std::memcpy(&value, bytes.data() + at, sizeof value);
    const auto end = std::to_chars(text, text + sizeof text, value);
    out.push_back(separator);
    separator = ',';
    out.append(text, end.ptr);
  }
  if (separator == '[') out.push_back('[');
  out.push_back(']');
}

void AppendBase64(std::string& out, std::string_view numbers) {
  std::string bytes;
  bytes.reserve(numbers.size() / 2);
  const char* at = numbers.data();
  const char* const end = at + numbers.size();
  while (at < end) {
    float value = 0;
    const auto read = std::from_chars(at, end, value);
    if (read.ptr == at) {  // a bracket, a comma or white space
      ++at;
      continue;
    }
    // Underflow is zero; the router has refused overflow.
    if (read.ec == std::errc::result_out_of_range) value = *at == '-' ? -0.0F : 0.0F;
    at = read.ptr;
    bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
  }
  out.push_back('"');
  out += Base64Encode(bytes);
  out.push_back('"');
}

}  // namespace

void AppendVector(std::string& out, std::string_view vector_json, VectorForm form) {
  const bool is_base64 = vector_json.starts_with('"');
  if (is_base64 == (form == VectorForm::kBase64)) {
    out += vector_json;
  } else if (is_base64) {
    AppendFloats(out, vector_json.substr(1, vector_json.size() - 2));
  } else {
    AppendBase64(out, vector_json);
  }
}

}  // namespace tollgate::gateway
