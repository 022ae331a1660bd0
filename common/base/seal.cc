#include "common/base/seal.h"

#include <openssl/evp.h>

#include <cstdlib>
#include <fstream>
#include <memory>

#include "common/base/crypto.h"

namespace tollgate {
namespace {

constexpr size_t kNonceBytes = 12;
constexpr size_t kTagBytes = 16;

using Cipher = std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)>;

void Must(int done) {
  if (done != 1) std::abort();
}

}  // namespace

std::string Seal(std::string_view key, std::string_view context, std::string_view text) {
  if (key.size() != kSealKeyBytes) std::abort();
  const std::string nonce = RandomBytes(kNonceBytes);
  const Cipher cipher(EVP_CIPHER_CTX_new(), &EVP_CIPHER_CTX_free);
  if (!cipher) std::abort();
  int length = 0;
  Must(EVP_EncryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, UnsignedBytes(key),
                          UnsignedBytes(nonce)));
  Must(EVP_EncryptUpdate(cipher.get(), nullptr, &length, UnsignedBytes(context),
                         static_cast<int>(context.size())));
  std::string hidden(text.size(), '\0');
  Must(EVP_EncryptUpdate(cipher.get(), UnsignedBytes(hidden), &length, UnsignedBytes(text),
                         static_cast<int>(text.size())));
  Must(EVP_EncryptFinal_ex(cipher.get(), UnsignedBytes(hidden) + length, &length));
  std::string tag(kTagBytes, '\0');
  Must(EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_GET_TAG, kTagBytes, tag.data()));
  return nonce + hidden + tag;
}

std::optional<std::string> Unseal(std::string_view key, std::string_view context,
                                  std::string_view sealed) {
  if (key.size() != kSealKeyBytes) std::abort();
  if (sealed.size() < kNonceBytes + kTagBytes) return std::nullopt;
  const std::string_view nonce = sealed.substr(0, kNonceBytes);
  const std::string_view hidden =
      sealed.substr(kNonceBytes, sealed.size() - kNonceBytes - kTagBytes);
  std::string tag(sealed.substr(sealed.size() - kTagBytes));
  const Cipher cipher(EVP_CIPHER_CTX_new(), &EVP_CIPHER_CTX_free);
  if (!cipher) std::abort();
  int length = 0;
  Must(EVP_DecryptInit_ex(cipher.get(), EVP_aes_256_gcm(), nullptr, UnsignedBytes(key),
                          UnsignedBytes(nonce)));
  Must(EVP_DecryptUpdate(cipher.get(), nullptr, &length, UnsignedBytes(context),
                         static_cast<int>(context.size())));
  std::string text(hidden.size(), '\0');
  Must(EVP_DecryptUpdate(cipher.get(), UnsignedBytes(text), &length, UnsignedBytes(hidden),
                         static_cast<int>(hidden.size())));
  Must(EVP_CIPHER_CTX_ctrl(cipher.get(), EVP_CTRL_GCM_SET_TAG, kTagBytes, tag.data()));
  if (EVP_DecryptFinal_ex(cipher.get(), UnsignedBytes(text) + length, &length) != 1)
    return std::nullopt;
  return text;
}

std::vector<std::string> ReadSealKeys(const std::string& file) {
  std::ifstream in(file, std::ios::binary);
  std::vector<std::string> keys;
  for (std::string line; std::getline(in, line);) {
    if (!line.empty() && line.back() == '\r') line.pop_back();
    if (line.empty()) continue;
    auto key = HexDecode(line);
    if (!key || key->size() != kSealKeyBytes) return {};
    keys.push_back(std::move(*key));
  }
  return keys;
}

}  // namespace tollgate
