#include "services/auth/oidc/id_token.h"

#include <gtest/gtest.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/rsa.h>

#include <memory>

#include "common/base/crypto.h"

namespace tollgate::auth {
namespace {

using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

Key NewRsa() { return {EVP_RSA_gen(2048), &EVP_PKEY_free}; }
Key NewEc() { return {EVP_EC_gen("P-256"), &EVP_PKEY_free}; }

std::string Number(const Key& key, const char* name, int size) {
  BIGNUM* number = nullptr;
  EXPECT_EQ(EVP_PKEY_get_bn_param(key.get(), name, &number), 1) << name;
  std::string bytes(static_cast<size_t>(size > 0 ? size : BN_num_bytes(number)), '\0');
  BN_bn2binpad(number, reinterpret_cast<unsigned char*>(bytes.data()),
               static_cast<int>(bytes.size()));
  BN_free(number);
  return Base64Url(bytes);
}

std::string Jwk(const Key& key, const std::string& id) {
  if (EVP_PKEY_get_base_id(key.get()) == EVP_PKEY_RSA) {
    return R"({"kty":"RSA","use":"sig","kid":")" + id + R"(","n":")" + Number(key, "n", 0) +
           R"(","e":")" + Number(key, "e", 0) + "\"}";
  }
  return R"({"kty":"EC","crv":"P-256","kid":")" + id + R"(","x":")" + Number(key, "qx", 32) +
         R"(","y":")" + Number(key, "qy", 32) + "\"}";
}

std::string Signed(const Key& key, const std::string& header, const std::string& claims) {
  const std::string text = Base64Url(header) + "." + Base64Url(claims);
  EVP_MD_CTX* context = EVP_MD_CTX_new();
  size_t size = 0;
  EVP_DigestSignInit(context, nullptr, EVP_sha256(), nullptr, key.get());
  const auto* bytes = reinterpret_cast<const unsigned char*>(text.data());
  EVP_DigestSign(context, nullptr, &size, bytes, text.size());
  std::string signature(size, '\0');
  EVP_DigestSign(context, reinterpret_cast<unsigned char*>(signature.data()), &size, bytes,
                 text.size());
  signature.resize(size);
  EVP_MD_CTX_free(context);
  if (EVP_PKEY_get_base_id(key.get()) == EVP_PKEY_EC) {
    const auto* der = reinterpret_cast<const unsigned char*>(signature.data());
    ECDSA_SIG* parsed = d2i_ECDSA_SIG(nullptr, &der, static_cast<long>(signature.size()));
    std::string raw(64, '\0');
    auto* out = reinterpret_cast<unsigned char*>(raw.data());
    BN_bn2binpad(ECDSA_SIG_get0_r(parsed), out, 32);
    BN_bn2binpad(ECDSA_SIG_get0_s(parsed), out + 32, 32);
    ECDSA_SIG_free(parsed);
    signature = raw;
  }
  return text + "." + Base64Url(signature);
}

constexpr int64_t kNow = 1'800'000'000;
const IdTokenRules kRules = {.issuer = "https://id.example.com",
                             .audience = "tollgate",
                             .nonce = "n0",
                             .now_us = kNow * 1'000'000};

std::string Claims(const std::string& iss = "https://id.example.com",
                   const std::string& aud = "\"tollgate\"", const std::string& nonce = "n0",
                   int64_t exp = kNow + 600, int64_t iat = kNow, const std::string& more = "") {
  return R"({"iss":")" + iss + R"(","sub":"s1","aud":)" + aud + R"(,"nonce":")" + nonce +
         R"(","exp":)" + std::to_string(exp) + R"(,"iat":)" + std::to_string(iat) +
         R"(,"email":"anna@example.com","email_verified":true)" + more + "}";
}

std::string Keys(const std::string& first, const std::string& second = "") {
  return "{\"keys\":[" + first + (second.empty() ? "" : "," + second) + "]}";
}

TEST(IdTokenTest, BothKindsOfSignaturesAreChecked) {
  const Key rsa = NewRsa(), ec = NewEc(), other = NewRsa();
  const std::string keys = Keys(Jwk(rsa, "a"), Jwk(ec, "b"));
  for (const std::string& token : {Signed(rsa, R"({"alg":"RS256","kid":"a"})", Claims()),
                                   Signed(rsa, R"({"alg":"RS256"})", Claims()),
                                   Signed(ec, R"({"alg":"ES256","kid":"b"})", Claims())}) {
    const auto read = VerifyIdToken(token, keys, kRules);
    ASSERT_TRUE(read.ok()) << read.error();
    EXPECT_EQ(read->subject, "s1");
    EXPECT_EQ(read->email, "anna@example.com");
    EXPECT_TRUE(read->email_verified);
    // Changing any character invalidates the token.
    for (const size_t at : {token.find('.') + 3, token.size() - 10, size_t{4}}) {
      std::string changed = token;
      changed[at] = changed[at] == 'A' ? 'B' : 'A';
      EXPECT_FALSE(VerifyIdToken(changed, keys, kRules).ok()) << at;
    }
  }
  EXPECT_FALSE(
      VerifyIdToken(Signed(other, R"({"alg":"RS256","kid":"a"})", Claims()), keys, kRules).ok());
  EXPECT_FALSE(
      VerifyIdToken(Signed(rsa, R"({"alg":"RS256","kid":"c"})", Claims()), keys, kRules).ok());
}

// RFC 8725, 3.1: the token must not choose how it is verified.
TEST(IdTokenTest, UnsignedAndKeyedTokensAreRefused) {
  const Key rsa = NewRsa();
  const std::string keys = Keys(Jwk(rsa, "a"));
  const std::string body = Base64Url(Claims());
  EXPECT_FALSE(VerifyIdToken(Base64Url(R"({"alg":"none"})") + "." + body + ".", keys, kRules).ok());
  const std::string text = Base64Url(R"({"alg":"HS256"})") + "." + body;
  EXPECT_FALSE(VerifyIdToken(text + "." + Base64Url(HmacSha256(keys, text)), keys, kRules).ok());
  for (const char* bad : {"", "a", "a.b", "a.b.c", "a.b.c.d", "..", "\xff.\xff.\xff"}) {
    EXPECT_FALSE(VerifyIdToken(bad, keys, kRules).ok()) << bad;
  }
  const std::string good = Signed(rsa, R"({"alg":"RS256"})", Claims());
  for (const char* bad : {"", "{}", "[]", R"({"keys":{}})", R"({"keys":[1,{"kty":"RSA"}]})"}) {
    EXPECT_FALSE(VerifyIdToken(good, bad, kRules).ok()) << bad;
  }
  EXPECT_FALSE(
      VerifyIdToken(Signed(rsa, R"({"alg":"RS256","crit":["b64"]})", Claims()), keys, kRules).ok());
}

TEST(IdTokenTest, TheClaimsMustBeForThisSignIn) {
  const Key rsa = NewRsa();
  const std::string keys = Keys(Jwk(rsa, "a"));
  const auto check = [&](const std::string& claims) {
    const auto read = VerifyIdToken(Signed(rsa, R"({"alg":"RS256"})", claims), keys, kRules);
    return read.ok() ? "" : read.error();
  };
  const std::string iss = "https://id.example.com", aud = "\"tollgate\"";
  EXPECT_EQ(check(Claims()), "");
  EXPECT_EQ(check(Claims("https://evil.example.com")), "the ID token is from another issuer");
  EXPECT_EQ(check(Claims(iss + "/")), "the ID token is from another issuer");
  EXPECT_EQ(check(Claims(iss, "\"other\"")), "the ID token is for another client");
  EXPECT_EQ(check(Claims(iss, R"(["tollgate","other"])")), "the ID token is for another party");
  EXPECT_EQ(
      check(Claims(iss, R"(["tollgate","other"])", "n0", kNow + 600, kNow, R"(,"azp":"tollgate")")),
      "");
  EXPECT_EQ(check(Claims(iss, aud, "n0", kNow + 600, kNow, R"(,"azp":"other")")),
            "the ID token is for another party");
  EXPECT_EQ(check(Claims(iss, aud, "n1")), "the ID token answers another sign-in");
  EXPECT_EQ(check(Claims(iss, aud, "n0", kNow - 60)), "the ID token has expired");
  EXPECT_EQ(check(Claims(iss, aud, "n0", kNow - 59)), "") << "clocks differ";
  EXPECT_EQ(check(Claims(iss, aud, "n0", kNow + 600, kNow + 61)),
            "the ID token was issued in the future");
  EXPECT_EQ(check("[]"), "the ID token has no claims");
}

// Only auth_time says when the person signed in at the provider.
TEST(IdTokenTest, TheTimeOfTheSignInIsRead) {
  const Key rsa = NewRsa();
  const std::string keys = Keys(Jwk(rsa, "a"));
  const auto read = [&](const std::string& more) {
    const std::string claims =
        Claims("https://id.example.com", "\"tollgate\"", "n0", kNow + 600, kNow, more);
    return VerifyIdToken(Signed(rsa, R"({"alg":"RS256"})", claims), keys, kRules);
  };
  EXPECT_EQ(read(R"(,"auth_time":1799999990)")->auth_time, kNow - 10);
  EXPECT_FALSE(read("")->auth_time.has_value());
  for (const char* bad : {R"(,"auth_time":"1799999990")", R"(,"auth_time":-1)",
                          R"(,"auth_time":-9223372036854775807)", R"(,"auth_time":null)"}) {
    EXPECT_FALSE(read(bad)->auth_time.has_value()) << bad;
  }
  EXPECT_TRUE(read(R"(,"auth_time":1800000060)").ok()) << "clocks differ";
  EXPECT_FALSE(read(R"(,"auth_time":1800000061)").ok());
}

}  // namespace
}  // namespace tollgate::auth
