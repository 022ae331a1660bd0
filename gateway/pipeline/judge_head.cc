#include "gateway/pipeline/judge_head.h"

#include <charconv>

#include "common/keys/key_format.h"
#include "gateway/pipeline/answer/refuse.h"
#include "gateway/pipeline/checks/authenticate.h"
#include "gateway/pipeline/checks/credentials.h"

namespace tollgate::gateway {
namespace {

// Some clients send "{}" with a GET. Anyone may call public endpoints, so their bodies are limited
// to about the size of a head.
constexpr uint64_t kMaxPublicBodyBytes = 4 * 1024;

bool HasShortBody(const HttpRequest& request) {
  const std::string_view text = request.header("content-length");
  uint64_t length = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), length);
  return parsed.ec == std::errc() && length <= kMaxPublicBodyBytes;
}

http::HeadVerdict JudgePublic(Worker& worker, const Endpoint& endpoint, HttpRequest& request) {
  if (HasShortBody(request)) return {.without_credential = true};
  const Error error{ErrorId::kBadRequest, "This endpoint takes no request body."};
  return {MakeRefusal(worker, request, endpoint, error), std::nullopt};
}

Task<std::optional<HttpResponse>> LookUp(Worker& worker, const Endpoint& endpoint,
                                         HttpRequest& request) {
  const StageTimer timer(TraceOf(request), Stage::kAuthenticate);
  std::optional<HttpResponse> refusal;
  const auto key = co_await AuthenticateRequest(worker, request, endpoint.credential);
  if (!key) refusal = MakeRefusal(worker, request, endpoint, key.error());
  worker.metrics.UpdateKeyCache(worker.keys->counters());
  co_return refusal;
}

}  // namespace

http::HeadVerdict JudgeHead(Worker& worker, const Endpoint& endpoint, HttpRequest& request) {
  if (endpoint.credential == CredentialRule::kOptionalBearer ||
      endpoint.credential == CredentialRule::kNone) {
    return JudgePublic(worker, endpoint, request);
  }
  // Creates an empty span, so that the trace names the stage that refused the request.
  const auto refuse = [&](const Error& error) {
    const StageTimer timer(TraceOf(request), Stage::kAuthenticate);
    return http::HeadVerdict{MakeRefusal(worker, request, endpoint, error), std::nullopt};
  };
  const auto text = FindKey(request, endpoint.credential, worker.options.brand,
                            worker.options.legacy_key_prefixes);
  if (!text) return refuse(text.error());
  const std::optional<KeyPtr> key = worker.keys->Peek(KeyDigest(*text));
  if (!key) return {std::nullopt, LookUp(worker, endpoint, request)};
  if (*key == nullptr) {
    return refuse(Error{.id = ErrorId::kInvalidApiKey, .reason = Reason::kUnknownKey});
  }
  const Result<void> state = CheckKey(**key, worker.clock.WallUs(), request.peer_address);
  if (state) return {};
  NoteCaller(request, (**key).key_id(), (**key).workspace_id());
  return refuse(state.error());
}

}  // namespace tollgate::gateway
