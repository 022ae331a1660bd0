// Virtual keys: a well-formed key has its parts, and every change of one character is detected.
#include <string>

#include "common/keys/key_format.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace tollgate;
  const std::string_view text = fuzz::Text(data, size);
  static const std::string kLegacy[] = {"old-", "sk-"};
  const auto key = ParseKey(text, "fuzz", kLegacy);
  IsBrand(text);
  if (!key) return 0;
  FUZZ_CHECK(KeyDigest(text).size() == 32);
  if (key->legacy) {
    FUZZ_CHECK(key->key_id.empty() && !text.starts_with("sk-fuzz-"));
    FUZZ_CHECK(size >= kMinLegacyKeyLength && size <= kMaxLegacyKeyLength);
    return 0;
  }
  FUZZ_CHECK(IsKeyId(key->key_id));
  FUZZ_CHECK(text.size() == 8 + kKeyIdLength + kKeySecretLength + kKeyChecksumLength);
  std::string other(text);
  for (size_t i = 0; i < other.size(); ++i) {
    const char was = other[i];
    other[i] = was == 'x' ? 'y' : 'x';
    const auto changed = ParseKey(other, "fuzz", {});
    FUZZ_CHECK(!changed);
    other[i] = was;
  }
  FUZZ_CHECK(!ParseKey(other, "other", {}));
  return 0;
}
