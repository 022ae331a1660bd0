#include "services/people/oidc/id_token.h"

#include <gtest/gtest.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include <algorithm>
#include <memory>

#include "common/base/base64.h"
#include "common/base/crypto.h"

namespace tollgate::people {
namespace {

using Key = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;

Key NewRsa(size_t bits = 2048) { return {EVP_RSA_gen(bits), &EVP_PKEY_free}; }
Key NewEc(const char* curve = "P-256") { return {EVP_EC_gen(curve), &EVP_PKEY_free}; }

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

// A public key is known to everyone, so it must never be the secret of an HMAC.
TEST(IdTokenTest, APublicKeyIsNoSecretOfAnHmac) {
  const Key rsa = NewRsa();
  BIO* memory = BIO_new(BIO_s_mem());
  ASSERT_EQ(PEM_write_bio_PUBKEY(memory, rsa.get()), 1);
  char* start = nullptr;
  const auto size = static_cast<size_t>(BIO_get_mem_data(memory, &start));
  const std::string pem(start, size);
  const std::string modulus = Number(rsa, "n", 0);
  const std::string oct = R"({"kty":"oct","kid":"a","alg":"HS256","k":")" + Base64Url(pem) + "\"}";
  for (const std::string& keys :
       {Keys(Jwk(rsa, "a")), Keys(oct), Keys(oct, Jwk(rsa, "a")), Keys(Jwk(rsa, "a"), oct)}) {
    for (const std::string& secret : {pem, modulus, Jwk(rsa, "a"), std::string()}) {
      const std::string text =
          Base64Url(R"({"alg":"HS256","kid":"a"})") + "." + Base64Url(Claims());
      const auto read =
          VerifyIdToken(text + "." + Base64Url(HmacSha256(secret, text)), keys, kRules);
      ASSERT_FALSE(read.ok());
      EXPECT_EQ(read.error(), "the ID token is not signed with RS256 or ES256");
    }
  }
  BIO_free(memory);
}

TEST(IdTokenTest, TheAlgorithmsAreTheTwoExactly) {
  const Key rsa = NewRsa(), ec = NewEc();
  const std::string keys = Keys(Jwk(rsa, "a"), Jwk(ec, "b"));
  for (const char* alg : {R"("none")", R"("None")", R"("")", R"("rs256")", R"("RS384")",
                          R"("PS256")", R"("ES384")", R"("HS256")", "null", "1", R"(["RS256"])"}) {
    const std::string header = R"({"alg":)" + std::string(alg) + "}";
    for (const Key* key : {&rsa, &ec}) {
      EXPECT_FALSE(VerifyIdToken(Signed(*key, header, Claims()), keys, kRules).ok()) << alg;
    }
    const std::string text = Base64Url(header) + "." + Base64Url(Claims()) + ".";
    EXPECT_FALSE(VerifyIdToken(text, keys, kRules).ok()) << alg;
  }
  for (const char* header : {"{}", "[]", R"("RS256")", R"({"alg":"RS256","alg":"RS256"})",
                             R"({"alg":"none","alg":"RS256"})", R"({"alg":"RS256","crit":null})"}) {
    EXPECT_FALSE(VerifyIdToken(Signed(rsa, header, Claims()), keys, kRules).ok()) << header;
  }
  // The kind of the key must be that of the algorithm.
  EXPECT_FALSE(VerifyIdToken(Signed(ec, R"({"alg":"RS256"})", Claims()), keys, kRules).ok());
  EXPECT_FALSE(VerifyIdToken(Signed(rsa, R"({"alg":"ES256"})", Claims()), keys, kRules).ok());
}

TEST(IdTokenTest, TheKeyIdSelectsTheKey) {
  const Key first = NewRsa(), second = NewRsa();
  const std::string keys = Keys(Jwk(first, "a"), Jwk(second, "b"));
  const auto holds = [&](const Key& key, const std::string& header) {
    return VerifyIdToken(Signed(key, header, Claims()), keys, kRules).ok();
  };
  EXPECT_TRUE(holds(second, R"({"alg":"RS256","kid":"b"})"));
  EXPECT_FALSE(holds(second, R"({"alg":"RS256","kid":"a"})"));
  EXPECT_FALSE(holds(second, R"({"alg":"RS256","kid":""})"));
  EXPECT_FALSE(holds(second, R"({"alg":"RS256","kid":"B"})"));
}

TEST(IdTokenTest, AnEllipticKeyMustBeOnP256) {
  const Key p384 = NewEc("P-384"), p256 = NewEc(), other = NewEc();
  const auto jwk = [](const std::string& curve, const std::string& x, const std::string& y) {
    return Keys(R"({"kty":"EC","crv":")" + curve + R"(","x":")" + x + R"(","y":")" + y + "\"}");
  };
  const auto refused = [](const Key& key, const std::string& keys) {
    return !VerifyIdToken(Signed(key, R"({"alg":"ES256"})", Claims()), keys, kRules).ok();
  };
  const std::string x = Number(p256, "qx", 32), y = Number(p256, "qy", 32);
  ASSERT_FALSE(refused(p256, jwk("P-256", x, y)));
  const std::string long_x = Number(p384, "qx", 48), long_y = Number(p384, "qy", 48);
  EXPECT_TRUE(refused(p384, jwk("P-384", long_x, long_y)));
  EXPECT_TRUE(refused(p384, jwk("P-256", long_x, long_y)));
  EXPECT_TRUE(refused(p256, jwk("P-384", x, y)));
  EXPECT_TRUE(refused(p256, jwk("P-256", x, Number(other, "qy", 32)))) << "not on the curve";
  EXPECT_TRUE(refused(p256, jwk("P-256", x, "")));
  EXPECT_TRUE(refused(p256, jwk("P-256", Number(p256, "qx", 33), y)));
}

// cjose alone would accept r and s with zeros in front.
TEST(IdTokenTest, AnEllipticSignatureHas64Bytes) {
  const Key ec = NewEc();
  const std::string good = Signed(ec, R"({"alg":"ES256"})", Claims());
  const size_t at = good.rfind('.') + 1;
  const std::string raw = Base64Decode([&] {
                            std::string text = good.substr(at) + "==";
                            std::replace(text.begin(), text.end(), '-', '+');
                            std::replace(text.begin(), text.end(), '_', '/');
                            return text;
                          }())
                              .value();
  const auto holds = [&](const std::string& signature) {
    const std::string token = good.substr(0, at) + Base64Url(signature);
    return VerifyIdToken(token, Keys(Jwk(ec, "a")), kRules).ok();
  };
  const std::string zero(1, '\0');
  ASSERT_TRUE(holds(raw));
  EXPECT_FALSE(holds(zero + raw.substr(0, 32) + zero + raw.substr(32)));
  EXPECT_FALSE(holds(raw + zero));
  EXPECT_FALSE(holds(raw.substr(0, 63)));
  EXPECT_FALSE(holds(""));
}

TEST(IdTokenTest, AnRsaKeyHasAtLeast2048Bits) {
  const Key weak = NewRsa(1024), strong = NewRsa();
  const auto jwk = [](const std::string& n, const std::string& e) {
    return Keys(R"({"kty":"RSA","n":")" + n + R"(","e":")" + e + "\"}");
  };
  const auto refused = [](const Key& key, const std::string& keys) {
    return !VerifyIdToken(Signed(key, R"({"alg":"RS256"})", Claims()), keys, kRules).ok();
  };
  const std::string n = Number(strong, "n", 0), e = Number(strong, "e", 0);
  ASSERT_FALSE(refused(strong, jwk(n, e)));
  EXPECT_TRUE(refused(weak, jwk(Number(weak, "n", 0), e)));
  EXPECT_TRUE(refused(weak, jwk(Number(weak, "n", 256), e))) << "with zeros in front";
  EXPECT_TRUE(refused(strong, jwk(Base64Url(std::string(1025, '\x81')), e)));
  EXPECT_TRUE(refused(strong, jwk(n, Number(strong, "e", 9)))) << "the exponent is too long";
  EXPECT_TRUE(refused(strong, jwk(n, "")));
  EXPECT_TRUE(refused(strong, jwk("", e)));
}

// The decoder of cjose ends the process on some padding, which RFC 7515 does not have.
TEST(IdTokenTest, PaddingIsRefused) {
  const Key rsa = NewRsa(), ec = NewEc();
  const std::string good = Signed(rsa, R"({"alg":"RS256"})", Claims());
  const std::string keys = Keys(Jwk(rsa, "a"));
  EXPECT_FALSE(VerifyIdToken(good + "=", keys, kRules).ok());
  for (const char* bad :
       {"A=B.e30.AAAA", "e30.A=B.AAAA", "e30.e30.A===", "=.=.=", "e30=.e30=.AAAA"}) {
    EXPECT_FALSE(VerifyIdToken(bad, keys, kRules).ok()) << bad;
  }
  const std::string header = good.substr(0, good.find('.'));
  EXPECT_FALSE(VerifyIdToken(header + ".A=B.AAAA", keys, kRules).ok());
  EXPECT_FALSE(VerifyIdToken(header + ".e30.A=B", keys, kRules).ok());
  for (const char* text : {"A=", "A=BC", "AQAB=", "AQ+B", "AQ/B", "AQ B", "A"}) {
    const std::string value(text);
    for (const std::string& key :
         {R"({"kty":"RSA","n":")" + value + R"(","e":"AQAB"})",
          R"({"kty":"RSA","n":")" + Number(rsa, "n", 0) + R"(","e":")" + value + "\"}"}) {
      EXPECT_FALSE(VerifyIdToken(good, Keys(key), kRules).ok()) << key;
    }
    const std::string point =
        R"({"kty":"EC","crv":"P-256","x":")" + value + R"(","y":")" + value + "\"}";
    const std::string signed_by_ec = Signed(ec, R"({"alg":"ES256"})", Claims());
    EXPECT_FALSE(VerifyIdToken(signed_by_ec, Keys(point), kRules).ok()) << point;
  }
  EXPECT_FALSE(VerifyIdToken(std::string(70'000, 'A') + "." + good, keys, kRules).ok());
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
}  // namespace tollgate::people
