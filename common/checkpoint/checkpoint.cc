#include "common/checkpoint/checkpoint.h"

#include <openssl/evp.h>
#include <openssl/pem.h>

#include <charconv>
#include <cstdio>
#include <cstdlib>

#include "common/base/crypto.h"
#include "common/base/try.h"

namespace tollgate {
namespace {

constexpr std::string_view kMagic = "tollgate-checkpoint-1";
constexpr size_t kSignatureBytes = 64;

BasicResult<std::shared_ptr<void>, std::string> ReadKey(const std::string& file, bool is_private) {
  std::FILE* in = std::fopen(file.c_str(), "re");
  if (in == nullptr) return Fail{"cannot read the checkpoint key " + file};
  EVP_PKEY* key = is_private ? PEM_read_PrivateKey(in, nullptr, nullptr, nullptr)
                             : PEM_read_PUBKEY(in, nullptr, nullptr, nullptr);
  std::fclose(in);
  const bool fits = key != nullptr && EVP_PKEY_get_id(key) == EVP_PKEY_ED25519;
  if (!fits) {
    EVP_PKEY_free(key);
    return Fail{file + " is not a " + (is_private ? "private" : "public") +
                " Ed25519 key in PEM form"};
  }
  return std::shared_ptr<void>(key, [](void* p) { EVP_PKEY_free(static_cast<EVP_PKEY*>(p)); });
}

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

// Takes the next word and the space after it.
std::string_view Word(std::string_view& rest) {
  const size_t space = rest.find(' ');
  const std::string_view word = rest.substr(0, space);
  rest = space == std::string_view::npos ? std::string_view() : rest.substr(space + 1);
  return word;
}

bool ReadInt(std::string_view text, int64_t& value) {
  const auto end = text.data() + text.size();
  const auto read = std::from_chars(text.data(), end, value);
  return read.ec == std::errc() && read.ptr == end;
}

bool ReadDigest(std::string_view text, std::string& digest) {
  const auto bytes = HexDecode(text);
  if (!bytes || bytes->size() != 32) return false;
  digest = *bytes;
  return true;
}

}  // namespace

BasicResult<SigningKey, std::string> SigningKey::ReadPrivate(const std::string& file) {
  TRY(auto key, ReadKey(file, true));
  return SigningKey(std::move(key));
}

BasicResult<SigningKey, std::string> SigningKey::ReadPublic(const std::string& file) {
  auto key = ReadKey(file, false);
  if (!key) key = ReadKey(file, true);
  if (!key) return Fail{std::move(key).error()};
  return SigningKey(std::move(*key));
}

std::string SigningKey::Sign(std::string_view text) const {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  std::string signature(kSignatureBytes, '\0');
  size_t size = signature.size();
  const bool done = context != nullptr &&
                    EVP_DigestSignInit(context, nullptr, nullptr, nullptr,
                                       static_cast<EVP_PKEY*>(key_.get())) == 1 &&
                    EVP_DigestSign(context, reinterpret_cast<unsigned char*>(signature.data()),
                                   &size, Bytes(text), text.size()) == 1;
  EVP_MD_CTX_free(context);
  if (!done) std::abort();
  return signature;
}

bool SigningKey::Verify(std::string_view text, std::string_view signature) const {
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  const bool good =
      context != nullptr &&
      EVP_DigestVerifyInit(context, nullptr, nullptr, nullptr,
                           static_cast<EVP_PKEY*>(key_.get())) == 1 &&
      EVP_DigestVerify(context, Bytes(signature), signature.size(), Bytes(text), text.size()) == 1;
  EVP_MD_CTX_free(context);
  return good;
}

std::string EncodeCheckpoint(const Checkpoint& checkpoint, const SigningKey& key) {
  std::string line(kMagic);
  line += ' ' + std::to_string(checkpoint.number) + ' ' + std::to_string(checkpoint.at_us) + ' ' +
          HexEncode(checkpoint.previous);
  for (const Anchor& anchor : checkpoint.anchors) {
    line +=
        ' ' + anchor.chain + ':' + std::to_string(anchor.sequence) + ':' + HexEncode(anchor.head);
  }
  line += ' ' + HexEncode(key.Sign(line));
  return line;
}

BasicResult<Checkpoint, std::string> DecodeCheckpoint(std::string_view line,
                                                      const SigningKey& key) {
  const Fail<std::string> malformed{"is not a whole checkpoint"};
  const size_t last = line.rfind(' ');
  if (last == std::string_view::npos || !line.starts_with(kMagic)) return malformed;
  const std::string_view body = line.substr(0, last);
  const auto signature = HexDecode(line.substr(last + 1));
  if (!signature || signature->size() != kSignatureBytes) return malformed;
  if (!key.Verify(body, *signature)) return Fail<std::string>{"is not signed by this key"};
  std::string_view rest = body;
  Checkpoint checkpoint;
  Word(rest);
  if (!ReadInt(Word(rest), checkpoint.number) || !ReadInt(Word(rest), checkpoint.at_us) ||
      !ReadDigest(Word(rest), checkpoint.previous)) {
    return malformed;
  }
  while (!rest.empty()) {
    const std::string_view word = Word(rest);
    const size_t first = word.find(':');
    const size_t second = word.find(':', first + 1);
    Anchor anchor;
    if (second == std::string_view::npos ||
        !ReadInt(word.substr(first + 1, second - first - 1), anchor.sequence) ||
        !ReadDigest(word.substr(second + 1), anchor.head)) {
      return malformed;
    }
    anchor.chain = word.substr(0, first);
    checkpoint.anchors.push_back(std::move(anchor));
  }
  return checkpoint;
}

}  // namespace tollgate
