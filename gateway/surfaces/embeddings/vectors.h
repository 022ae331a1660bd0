// Embedding vectors in their two encodings: a JSON array of numbers, or a base64 string of
// little-endian 32-bit floats. See docs/design/wire.md 4.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tollgate::gateway {

enum class VectorForm : uint8_t { kFloats, kBase64 };

// Appends the vector in the requested form. vector_json is a JSON value of either form, as sent by
// the router (inference.proto, Delta.embedding_json). If it already has the requested form, it is
// copied. Floats are printed as the shortest decimals that round-trip, and decimals become the
// nearest 32-bit float, so the conversion is lossless.
void AppendVector(std::string& out, std::string_view vector_json, VectorForm form);

}  // namespace tollgate::gateway
