#include "services/people/oidc/oidc.h"

#include <optional>
#include <utility>
#include <vector>

#include "common/base/base64.h"
#include "common/base/crypto.h"
#include "common/base/seal.h"
#include "common/base/time_units.h"
#include "common/base/try.h"
#include "common/http/http_call.h"
#include "common/json/json.h"
#include "common/json/writer.h"
#include "common/observability/log.h"
#include "services/people/oidc/id_token.h"

namespace tollgate::people {
namespace {

constexpr int64_t kFlowUs = 600 * kSecondUs;
// How far the provider's clock may be behind ours.
constexpr int64_t kSkewUs = 60 * kSecondUs;
constexpr int64_t kMetadataUs = 3600'000'000;
constexpr int kTimeoutMs = 10'000;
constexpr size_t kMaxReturnPath = 500;
constexpr char kFlowContext[] = "openid connect sign-in";

struct Metadata {
  std::string authorization, token, keys_url;
  bool sends_iss = false;
  std::string keys;  // the JSON Web Key Set
  int64_t read_us = 0;
};

Fail<admin::Failure> Unreachable(std::string internal) {
  admin::Failure failure{.code = grpc::StatusCode::UNAVAILABLE,
                         .reason = "OIDC_UNAVAILABLE",
                         .message = "the sign-in provider did not answer as it should; try again",
                         .retry_after_ms = 5000};
  failure.internal = std::move(internal);
  return Fail{std::move(failure)};
}

Fail<admin::Failure> Failed(std::string internal) {
  admin::Failure failure{.code = grpc::StatusCode::UNAUTHENTICATED,
                         .reason = "SIGN_IN_FAILED",
                         .message = "the sign-in failed: start it again"};
  failure.internal = std::move(internal);
  return Fail{std::move(failure)};
}

Fail<admin::Failure> NotFresh() {
  return Fail{admin::Failure{.code = grpc::StatusCode::UNAUTHENTICATED,
                             .reason = "OIDC_NOT_FRESH",
                             .message = "the sign-in provider did not ask again who you are"}};
}

// "https:" anywhere, "http:" to this machine only.
bool MayCall(const std::string& url) {
  return url.starts_with("https://") || url.starts_with("http://127.0.0.1:") ||
         url.starts_with("http://localhost:") || url.starts_with("http://[::1]:");
}

// Accepts paths of our own pages only: another site's address would be an open redirect.
bool IsOwnPath(const std::string& path) {
  return path.size() <= kMaxReturnPath && path.starts_with('/') && !path.starts_with("//") &&
         path.find_first_of("\\\r\n\t") == std::string::npos;
}

std::string TextOf(const json::Value& object, const char* name) {
  const json::Value value = object.Find(name);
  return value && value.is_string() ? value.string() : std::string();
}

}  // namespace

struct Oidc::State {
  State(OidcOptions given, const Clock& the_clock) : options(std::move(given)), clock(the_clock) {}
  const OidcOptions options;
  const Clock& clock;
  std::atomic<bool> stopped{false};
  std::mutex mutex;
  std::optional<Metadata> metadata;
  static constexpr int64_t kFailureUs = 10'000'000;
  std::optional<admin::Failure> failed;  // failure of the last read, at failed_us
  int64_t failed_us = 0;

  AdminResult<std::string> Get(const std::string& url) {
    if (!MayCall(url)) return Unreachable("not an https address: " + url);
    http::HttpCall call;
    call.url = url;
    call.timeout_ms = kTimeoutMs;
    call.abort = &stopped;
    const http::HttpAnswer answer = http::Send(call);
    if (answer.outcome != http::HttpAnswer::Outcome::kAnswered || answer.status != 200) {
      return Unreachable("GET " + url + ": " +
                         (answer.error.empty() ? std::to_string(answer.status) : answer.error));
    }
    return answer.body;
  }

  // Reads the metadata at the first use, and again when it is old or has no key for a signature.
  AdminResult<Metadata> Read(bool again) {
    std::lock_guard lock(mutex);
    const int64_t now_us = clock.MonotonicUs();
    // At most every ten seconds, so that forged tokens cannot flood the provider with requests.
    const int64_t keep_us = again ? 10'000'000 : kMetadataUs;
    if (metadata && now_us - metadata->read_us < keep_us) return *metadata;
    // Callers wait for the mutex one after the other: return the last failure instead of making
    // each wait for a provider that hangs.
    if (failed && now_us - failed_us < kFailureUs) return Fail{*failed};
    auto read = ReadNow(now_us);
    failed.reset();
    if (!read) {
      failed = read.error();
      failed_us = clock.MonotonicUs();
    }
    return read;
  }

  AdminResult<Metadata> ReadNow(int64_t now_us) {
    const std::string base = options.issuer.ends_with('/')
                                 ? options.issuer.substr(0, options.issuer.size() - 1)
                                 : options.issuer;
    TRY(auto text, Get(base + "/.well-known/openid-configuration"));
    auto document = json::Document::Parse(text);
    if (!document || !document->root().is_object()) return Unreachable("metadata: not JSON");
    const json::Value root = document->root();
    if (TextOf(root, "issuer") != options.issuer) {
      return Unreachable("metadata: from another issuer: " + TextOf(root, "issuer"));
    }
    Metadata read{.authorization = TextOf(root, "authorization_endpoint"),
                  .token = TextOf(root, "token_endpoint"),
                  .keys_url = TextOf(root, "jwks_uri")};
    const json::Value iss = root.Find("authorization_response_iss_parameter_supported");
    read.sends_iss = iss && iss.is_bool() && iss.boolean();
    if (!MayCall(read.authorization) || !MayCall(read.token)) {
      return Unreachable("metadata: an endpoint is missing or not https");
    }
    TRY(auto keys, Get(read.keys_url));
    read.keys = std::move(keys);
    read.read_us = now_us;
    metadata = read;
    return read;
  }
};

Oidc::Oidc(OidcOptions options, const Clock& clock)
    : state_(std::make_unique<State>(std::move(options), clock)) {}
Oidc::~Oidc() = default;
void Oidc::Stop() { state_->stopped = true; }

AdminResult<Oidc::Started> Oidc::Start(const std::string& redirect_uri,
                                       const std::string& return_path, bool step_up) {
  TRY(auto metadata, state_->Read(false));
  const std::string state = NewSecret(), nonce = NewSecret(), verifier = NewSecret();
  const std::string flow = json::Writer()
                               .Text("state", state)
                               .Text("nonce", nonce)
                               .Text("verifier", verifier)
                               .Text("redirect_uri", redirect_uri)
                               .Text("return_path", IsOwnPath(return_path) ? return_path : "/")
                               .Flag("step_up", step_up)
                               .Number("expires_us", state_->clock.WallUs() + kFlowUs)
                               .Done();
  std::vector<std::pair<const char*, std::string>> query = {
      {"response_type", "code"},
      {"client_id", state_->options.client_id},
      {"redirect_uri", redirect_uri},
      {"scope", "openid email profile"},
      {"state", state},
      {"nonce", nonce},
      {"code_challenge", Base64Url(Sha256(verifier))},
      {"code_challenge_method", "S256"}};
  if (step_up) {
    // With max_age, the provider must return auth_time (OpenID Connect Core, 2).
    query.emplace_back("prompt", "login");
    query.emplace_back("max_age", "0");
  }
  std::string url = metadata.authorization;
  char separator = url.find('?') == std::string::npos ? '?' : '&';
  for (const auto& [name, value] : query) {
    url += separator + std::string(name) + "=" + http::PercentEncode(value);
    separator = '&';
  }
  return Started{url, Base64Url(Seal(state_->options.seal_key, kFlowContext, flow))};
}

AdminResult<Oidc::Finished> Oidc::Finish(const Answer& answer) {
  std::string sealed = answer.flow;
  for (char& c : sealed) c = c == '-' ? '+' : c == '_' ? '/' : c;
  while (sealed.size() % 4 != 0) sealed += '=';
  const auto bytes = Base64Decode(sealed);
  const auto text = bytes ? Unseal(state_->options.seal_key, kFlowContext, *bytes) : std::nullopt;
  if (!text) return Failed("OpenID Connect: the browser has no sign-in under way");
  auto flow = json::Document::Parse(*text);
  if (!flow) return Failed("OpenID Connect: the sign-in under way cannot be read");
  const json::Value root = flow->root();
  if (root.Find("expires_us").Integer().value_or(0) <= state_->clock.WallUs()) {
    return Failed("OpenID Connect: the sign-in took more than ten minutes");
  }
  if (answer.state.empty() || !ConstantTimeEquals(TextOf(root, "state"), answer.state)) {
    return Failed("OpenID Connect: the state does not match");
  }
  if (TextOf(root, "redirect_uri") != answer.redirect_uri) {
    return Failed("OpenID Connect: the redirect address does not match");
  }
  TRY(auto metadata, state_->Read(false));
  if ((metadata.sends_iss || !answer.iss.empty()) && answer.iss != state_->options.issuer) {
    return Failed("OpenID Connect: the answer is from another issuer");
  }
  if (answer.code.empty()) return Failed("OpenID Connect: the provider refused the sign-in");

  http::HttpCall call;
  call.method = "POST";
  call.url = metadata.token;
  call.timeout_ms = kTimeoutMs;
  call.abort = &state_->stopped;
  call.form = {{"grant_type", "authorization_code"},
               {"code", answer.code},
               {"redirect_uri", answer.redirect_uri},
               {"code_verifier", TextOf(root, "verifier")}};
  if (state_->options.client_secret.empty()) {
    call.form.emplace_back("client_id", state_->options.client_id);
  } else {
    // RFC 6749, 2.3.1: both parts are form-encoded.
    const std::string pair = http::PercentEncode(state_->options.client_id) + ":" +
                             http::PercentEncode(state_->options.client_secret);
    call.headers.emplace_back("Authorization", "Basic " + Base64Encode(pair));
  }
  const http::HttpAnswer response = http::Send(call);
  if (response.outcome != http::HttpAnswer::Outcome::kAnswered || response.status >= 500) {
    return Unreachable("POST " + call.url + ": " +
                       (response.error.empty() ? std::to_string(response.status) : response.error));
  }
  if (response.status != 200) {
    return Failed("OpenID Connect: the provider rejected the code: " +
                  std::to_string(response.status));
  }
  auto body = json::Document::Parse(response.body);
  const std::string id_token = body ? TextOf(body->root(), "id_token") : "";
  const IdTokenRules rules{.issuer = state_->options.issuer,
                           .audience = state_->options.client_id,
                           .nonce = TextOf(root, "nonce"),
                           .now_us = state_->clock.WallUs()};
  auto token = VerifyIdToken(id_token, metadata.keys, rules);
  if (!token) {
    // The provider may have rotated its keys.
    TRY(auto fresh, state_->Read(true));
    token = VerifyIdToken(id_token, fresh.keys, rules);
  }
  if (!token) return Failed("OpenID Connect: " + token.error());
  const bool step_up = root.Find("step_up").boolean();
  const int64_t started_us = root.Find("expires_us").Integer().value_or(0) - kFlowUs;
  const auto signed_in_us =
      token->auth_time ? std::optional<int64_t>(*token->auth_time * kSecondUs) : std::nullopt;
  if (step_up && signed_in_us.value_or(0) < started_us - kSkewUs) return NotFresh();
  return Finished{.person = {.issuer = token->issuer,
                             .subject = token->subject,
                             .email = token->email,
                             .email_verified = token->email_verified,
                             .name = token->name,
                             .signed_in_us = signed_in_us},
                  .return_path = TextOf(root, "return_path"),
                  .step_up = step_up};
}

}  // namespace tollgate::people
