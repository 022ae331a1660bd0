// A vector in the two forms that the wire knows: a JSON array of numbers, or a string of the base64
// of its little-endian 32-bit floats. spec: wire.md 4.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace tollgate::gateway {

enum class VectorForm : uint8_t { kFloats, kBase64 };

// Appends the vector in the form that is wanted. vector_json is a JSON value of either form, as
// routers hand it on (inference.proto, Delta.embedding_json); one that has the form already stays
// as it is. Floats are told by the shortest decimals that give the same 32 bits again, and numbers
// become the nearest 32-bit float, so that no form loses what the other had.
void AppendVector(std::string& out, std::string_view vector_json, VectorForm form);

}  // namespace tollgate::gateway
