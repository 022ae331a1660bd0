#include "common/base/base64.h"

#include <openssl/evp.h>

#include <algorithm>
#include <cassert>
#include <climits>

#include "common/base/crypto.h"

namespace tollgate {

std::string Base64Encode(std::string_view bytes) {
  assert(bytes.size() <= INT_MAX);
  // OpenSSL terminates its output with a NUL, which lands on the string's own terminator.
  std::string out((bytes.size() + 2) / 3 * 4, '\0');
  EVP_EncodeBlock(UnsignedBytes(out), UnsignedBytes(bytes), static_cast<int>(bytes.size()));
  return out;
}

std::optional<std::string> Base64Decode(std::string_view text) {
  if (text.size() % 4 != 0 || text.size() > INT_MAX) return std::nullopt;
  if (text.empty()) return "";
  // OpenSSL decodes '=' like 'A' in any position. Only the last two may hold it.
  const size_t padding = text.size() - std::min(text.find('='), text.size());
  if (padding > 2) return std::nullopt;
  std::string out(text.size() / 4 * 3, '\0');
  const int decoded =
      EVP_DecodeBlock(UnsignedBytes(out), UnsignedBytes(text), static_cast<int>(text.size()));
  // It also skips white space around the text; then it decodes fewer bytes.
  if (decoded != static_cast<int>(out.size())) return std::nullopt;
  out.resize(out.size() - padding);
  // It ignores the unused bits of the last group. Encoding that group again shows whether they are
  // zero, and whether the padding is well-formed ("Zg=A" has a padding of two).
  const size_t last_group = text.size() / 4 * 3 - 3;
  if (padding > 0 &&
      Base64Encode(std::string_view(out).substr(last_group)) != text.substr(text.size() - 4)) {
    return std::nullopt;
  }
  return out;
}

}  // namespace tollgate
