#include "services/people/oidc/id_token.h"

#include <cjose/base64.h>
#include <cjose/jwk.h>
#include <cjose/jws.h>
#include <cjose/util.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <vector>

#include "common/base/ascii.h"
#include "common/base/base64.h"
#include "common/json/json.h"
#include "common/json/writer.h"

namespace tollgate::people {
namespace {

constexpr int64_t kLeewaySeconds = 60;
constexpr size_t kMaxToken = size_t{64} << 10;
// RFC 7518, 3.3 requires at least 2048 bits.
constexpr size_t kMinRsaBits = 2048, kMaxRsaBits = 8192;
constexpr size_t kMaxExponentText = 11;     // base64url of 8 bytes
constexpr size_t kEs256SignatureText = 86;  // base64url of r and s, 32 bytes each

template <auto Function>
struct Free {
  template <typename T>
  void operator()(T* what) const {
    Function(what);
  }
};
using Jwk = std::unique_ptr<cjose_jwk_t, Free<cjose_jwk_release>>;
using Jws = std::unique_ptr<cjose_jws_t, Free<cjose_jws_release>>;

// Padding is refused: the decoder of cjose asserts on some of it, which would end the process.
bool IsBase64Url(std::string_view text) {
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return IsAlnum(c) || c == '-' || c == '_'; });
}

std::string Decoded(std::string_view base64url) {
  cjose_err error;
  uint8_t* bytes = nullptr;
  size_t size = 0;
  if (!cjose_base64url_decode(base64url.data(), base64url.size(), &bytes, &size, &error)) return "";
  std::string text(reinterpret_cast<char*>(bytes), size);
  cjose_get_dealloc()(bytes);
  return text;
}

// Null if the key must not be used. Imports the public members only.
Jwk PublicKey(const json::Value& jwk, bool rsa) {
  const std::vector<const char*> names =
      rsa ? std::vector{"kty", "n", "e"} : std::vector{"kty", "crv", "x", "y"};
  json::Writer members;
  for (const char* name : names) {
    const std::string value = jwk.Find(name).string();
    if (!IsBase64Url(value)) return nullptr;
    members.Text(name, value);
  }
  const std::string text = members.Done();
  cjose_err error;
  Jwk key(cjose_jwk_import(text.data(), text.size(), &error));
  if (!key) return nullptr;
  if (!rsa) {
    return cjose_jwk_EC_get_curve(key.get(), &error) == CJOSE_JWK_EC_P_256 ? std::move(key)
                                                                           : nullptr;
  }
  const size_t bits = cjose_jwk_get_keysize(key.get(), &error);
  const bool usable = bits >= kMinRsaBits && bits <= kMaxRsaBits &&
                      jwk.Find("e").string().size() <= kMaxExponentText;
  return usable ? std::move(key) : nullptr;
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
  std::string bare(token);
  std::erase(bare, '.');
  cjose_err error;
  const Jws jws(token.size() <= kMaxToken && IsBase64Url(bare)
                    ? cjose_jws_import(token.data(), token.size(), &error)
                    : nullptr);
  if (!jws) return Bad("is not a signed token");
  auto header = json::Document::Parse(Decoded(token.substr(0, token.find('.'))));
  auto set = json::Document::Parse(std::string(keys));
  if (!header || !header->root().is_object()) return Bad("is not JSON");
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
  // cjose cuts a signature of any length into r and s.
  const bool whole = rsa || token.size() - token.rfind('.') - 1 == kEs256SignatureText;
  bool holds = false;
  for (const json::Value& jwk : set->root().Find("keys")) {
    if (holds || !jwk.is_object() || !jwk.Find("kty").StringEquals(rsa ? "RSA" : "EC")) continue;
    if (jwk.Find("use") && !jwk.Find("use").StringEquals("sig")) continue;
    if (kid && kid.is_string() && jwk.Find("kid") && jwk.Find("kid").string() != kid.string()) {
      continue;
    }
    const Jwk key = PublicKey(jwk, rsa);
    holds = whole && key && cjose_jws_verify(jws.get(), key.get(), &error);
  }
  if (!holds) return Bad("is signed with none of the provider's keys");
  uint8_t* text = nullptr;
  size_t size = 0;
  cjose_jws_get_plaintext(jws.get(), &text, &size, &error);
  auto claims = json::Document::Parse(std::string(reinterpret_cast<char*>(text), size));
  if (!claims) return Bad("is not JSON");
  return CheckClaims(claims->root(), rules);
}

}  // namespace tollgate::people
