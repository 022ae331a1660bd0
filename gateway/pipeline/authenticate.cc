#include "gateway/pipeline/authenticate.h"

#include "common/keys/key_format.h"
#include "gateway/pipeline/credentials.h"

namespace tollgate::gateway {

Result<void> CheckKeyState(const auth::v1::Key& key, int64_t now_us) {
  switch (key.state()) {
    case auth::v1::KEY_STATE_ACTIVE:
      break;
    case auth::v1::KEY_STATE_DISABLED:
      return FailWith(ErrorId::kVirtualKeyBlocked);
    default:  // revoked, or a state that this version does not know
      return FailWith(ErrorId::kInvalidApiKey);
  }
  if (key.expires_at_us() != 0 && now_us >= key.expires_at_us()) {
    return FailWith(ErrorId::kInvalidApiKey, "The API key has expired.");  // decision 11
  }
  return {};
}

Task<Result<KeyPtr>> AuthenticateRequest(Worker& worker, const HttpRequest& request,
                                         CredentialRule rule) {
  const auto text =
      FindKey(request, rule, worker.options.brand, worker.options.legacy_key_prefixes);
  if (!text) co_return Fail{text.error()};
  auto key = co_await worker.keys->Get(KeyDigest(*text), request.peer_address,
                                       PublicIdOf(*text, worker.options.brand));
  if (!key) co_return Fail{key.error()};
  if (*key == nullptr) co_return FailWith(ErrorId::kInvalidApiKey);
  if (auto state = CheckKeyState(**key, worker.clock.WallUs()); !state)
    co_return Fail{state.error()};
  co_return std::move(*key);
}

Task<Result<void>> Authenticate(RequestContext& context) {
  auto key = co_await AuthenticateRequest(context.worker, context.exchange.request(),
                                          context.endpoint.credential);
  if (!key) co_return Fail{key.error()};
  context.key = std::move(*key);
  co_return Result<void>();
}

}  // namespace tollgate::gateway
