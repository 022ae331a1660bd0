#include "services/auth/oidc/id_token.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/param_build.h>

#include <memory>
#include <optional>

#include "common/base/base64.h"
#include "common/json/json.h"

namespace tollgate::auth {
namespace {

constexpr int64_t kLeewaySeconds = 60;
constexpr size_t kMaxToken = size_t{64} << 10;
constexpr size_t kHalfOfEs256 = 32;

template <auto Function>
struct Free {
  template <typename T>
  void operator()(T* what) const {
    Function(what);
  }
};
using Key = std::unique_ptr<EVP_PKEY, Free<EVP_PKEY_free>>;
using Number = std::unique_ptr<BIGNUM, Free<BN_free>>;
using Builder = std::unique_ptr<OSSL_PARAM_BLD, Free<OSSL_PARAM_BLD_free>>;
using Params = std::unique_ptr<OSSL_PARAM, Free<OSSL_PARAM_free>>;
using KeyContext = std::unique_ptr<EVP_PKEY_CTX, Free<EVP_PKEY_CTX_free>>;
using Digest = std::unique_ptr<EVP_MD_CTX, Free<EVP_MD_CTX_free>>;
using Signature = std::unique_ptr<ECDSA_SIG, Free<ECDSA_SIG_free>>;

const unsigned char* Bytes(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

std::optional<std::string> FromBase64Url(std::string_view text) {
  std::string standard(text);
  for (char& c : standard) {
    if (c == '+' || c == '/' || c == '=') return std::nullopt;
    if (c == '-') c = '+';
    if (c == '_') c = '/';
  }
  while (standard.size() % 4 != 0) standard += '=';
  return Base64Decode(standard);
}

Number ToNumber(std::string_view bytes) {
  return Number(BN_bin2bn(Bytes(bytes), static_cast<int>(bytes.size()), nullptr));
}

Key Build(const char* type, OSSL_PARAM_BLD* builder) {
  const Params params(OSSL_PARAM_BLD_to_param(builder));
  const KeyContext context(EVP_PKEY_CTX_new_from_name(nullptr, type, nullptr));
  EVP_PKEY* key = nullptr;
  if (!params || !context || EVP_PKEY_fromdata_init(context.get()) != 1 ||
      EVP_PKEY_fromdata(context.get(), &key, EVP_PKEY_PUBLIC_KEY, params.get()) != 1) {
    return nullptr;
  }
  return Key(key);
}

Key RsaKey(const json::Value& jwk) {
  const auto n = FromBase64Url(jwk.Find("n").string()), e = FromBase64Url(jwk.Find("e").string());
  // RFC 7518, 3.3 requires at least 2048 bits.
  if (!n || !e || n->size() < 256 || n->size() > 1024 || e->empty() || e->size() > 8) {
    return nullptr;
  }
  const Number modulus = ToNumber(*n), exponent = ToNumber(*e);
  const Builder builder(OSSL_PARAM_BLD_new());
  if (!builder ||
      OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_N, modulus.get()) != 1 ||
      OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_E, exponent.get()) != 1) {
    return nullptr;
  }
  return Build("RSA", builder.get());
}

Key EcKey(const json::Value& jwk) {
  const auto x = FromBase64Url(jwk.Find("x").string()), y = FromBase64Url(jwk.Find("y").string());
  if (!jwk.Find("crv").StringEquals("P-256") || !x || !y || x->size() != kHalfOfEs256 ||
      y->size() != kHalfOfEs256) {
    return nullptr;
  }
  const std::string point = '\x04' + *x + *y;
  const Builder builder(OSSL_PARAM_BLD_new());
  if (!builder ||
      OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0) !=
          1 ||
      OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(),
                                       point.size()) != 1) {
    return nullptr;
  }
  return Build("EC", builder.get());
}

// The signature of a JWT is r and s in 32 bytes each; OpenSSL requires DER.
std::string ToDer(std::string_view raw) {
  const Signature signature(ECDSA_SIG_new());
  if (!signature || raw.size() != 2 * kHalfOfEs256) return "";
  Number r = ToNumber(raw.substr(0, kHalfOfEs256)), s = ToNumber(raw.substr(kHalfOfEs256));
  if (!r || !s || ECDSA_SIG_set0(signature.get(), r.release(), s.release()) != 1) return "";
  unsigned char* der = nullptr;
  const int size = i2d_ECDSA_SIG(signature.get(), &der);
  if (size <= 0) return "";
  std::string out(reinterpret_cast<char*>(der), static_cast<size_t>(size));
  OPENSSL_free(der);
  return out;
}

bool SignatureHolds(const json::Value& jwk, bool rsa, std::string_view signed_text,
                    const std::string& signature) {
  const Key key = rsa ? RsaKey(jwk) : EcKey(jwk);
  const std::string bytes = rsa ? signature : ToDer(signature);
  const Digest digest(EVP_MD_CTX_new());
  return key && digest && !bytes.empty() &&
         EVP_DigestVerifyInit(digest.get(), nullptr, EVP_sha256(), nullptr, key.get()) == 1 &&
         EVP_DigestVerify(digest.get(), Bytes(bytes), bytes.size(), Bytes(signed_text),
                          signed_text.size()) == 1;
}

Fail<std::string> Bad(std::string what) { return Fail{"the ID token " + std::move(what)}; }

// "aud" is a string or a list of strings.
bool IsAudience(const json::Value& aud, const std::string& wanted) {
  if (aud.is_string()) return aud.StringEquals(wanted);
  if (!aud.is_array()) return false;
  for (const json::Value& one : aud) {
    if (one.is_string() && one.StringEquals(wanted)) return true;
  }
  return false;
}

BasicResult<IdToken, std::string> CheckClaims(const json::Value& claims,
                                              const IdTokenRules& rules) {
  if (!claims.is_object()) return Bad("has no claims");
  const auto text = [&](const char* name) {
    const json::Value value = claims.Find(name);
    return value && value.is_string() ? value.string() : std::string();
  };
  IdToken token{.issuer = text("iss"),
                .subject = text("sub"),
                .nonce = text("nonce"),
                .email = text("email"),
                .name = text("name")};
  if (token.issuer != rules.issuer) return Bad("is from another issuer");
  if (token.subject.empty() || token.subject.size() > 255) return Bad("names no subject");
  if (!claims.Find("aud") || !IsAudience(claims.Find("aud"), rules.audience)) {
    return Bad("is for another client");
  }
  const json::Value party = claims.Find("azp");
  const bool several = claims.Find("aud").is_array() && claims.Find("aud").size() > 1;
  if ((party || several) && text("azp") != rules.audience) return Bad("is for another party");
  if (rules.nonce.empty() || token.nonce != rules.nonce) return Bad("answers another sign-in");
  const int64_t now = rules.now_us / 1'000'000;
  const auto number = [&](const char* name) {
    const json::Value value = claims.Find(name);
    return value && value.is_number() ? value.Integer() : std::optional<int64_t>();
  };
  const auto expires = number("exp"), issued = number("iat");
  if (!expires || *expires <= now - kLeewaySeconds) return Bad("has expired");
  if (!issued || *issued > now + kLeewaySeconds) return Bad("was issued in the future");
  token.auth_time = number("auth_time");
  if (token.auth_time && *token.auth_time < 0) token.auth_time.reset();
  if (token.auth_time && *token.auth_time > now + kLeewaySeconds) {
    return Bad("reports a sign-in in the future");
  }
  const json::Value verified = claims.Find("email_verified");
  token.email_verified = verified && verified.is_bool() && verified.boolean();
  return token;
}

}  // namespace

std::string Base64Url(std::string_view bytes) {
  std::string text = Base64Encode(bytes);
  for (char& c : text) {
    if (c == '+') c = '-';
    if (c == '/') c = '_';
  }
  text.resize(std::min(text.find('='), text.size()));
  return text;
}

BasicResult<IdToken, std::string> VerifyIdToken(std::string_view token, std::string_view keys,
                                                const IdTokenRules& rules) {
  const size_t first = token.find('.'), last = token.rfind('.');
  if (token.size() > kMaxToken || first == last || first == std::string_view::npos ||
      token.substr(first + 1, last - first - 1).find('.') != std::string_view::npos) {
    return Bad("is not a signed token");
  }
  const auto header_text = FromBase64Url(token.substr(0, first));
  const auto claims_text = FromBase64Url(token.substr(first + 1, last - first - 1));
  const auto signature = FromBase64Url(token.substr(last + 1));
  if (!header_text || !claims_text || !signature) return Bad("is not base64url");
  auto header = json::Document::Parse(*header_text);
  auto claims = json::Document::Parse(*claims_text);
  auto set = json::Document::Parse(std::string(keys));
  if (!header || !claims || !header->root().is_object()) return Bad("is not JSON");
  if (!set || !set->root().is_object() || !set->root().Find("keys").is_array()) {
    return Fail{std::string("the provider's keys are not a JSON Web Key Set")};
  }
  // Accept these two only: with "none" or HMAC anyone could sign.
  const json::Value alg = header->root().Find("alg"), kid = header->root().Find("kid");
  const bool rsa = alg.is_string() && alg.StringEquals("RS256");
  if (!rsa && !(alg.is_string() && alg.StringEquals("ES256"))) {
    return Bad("is not signed with RS256 or ES256");
  }
  if (header->root().Find("crit")) return Bad("has critical headers that are not known");
  bool holds = false;
  for (const json::Value& jwk : set->root().Find("keys")) {
    if (holds || !jwk.is_object() || !jwk.Find("kty").StringEquals(rsa ? "RSA" : "EC")) continue;
    if (jwk.Find("use") && !jwk.Find("use").StringEquals("sig")) continue;
    if (kid && kid.is_string() && jwk.Find("kid") && jwk.Find("kid").string() != kid.string()) {
      continue;
    }
    holds = SignatureHolds(jwk, rsa, token.substr(0, last), *signature);
  }
  if (!holds) return Bad("is signed with none of the provider's keys");
  return CheckClaims(claims->root(), rules);
}

}  // namespace tollgate::auth
