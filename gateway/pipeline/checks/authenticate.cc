#include "gateway/pipeline/checks/authenticate.h"

#include "common/base/try.h"
#include "common/keys/key_format.h"
#include "gateway/pipeline/checks/credentials.h"
#include "gateway/worker/key_rules.h"

namespace tollgate::gateway {

Result<void> CheckKey(const auth::v1::Key& key, int64_t now_us, std::string_view address) {
  switch (key.state()) {
    case auth::v1::KEY_STATE_ACTIVE:
      break;
    case auth::v1::KEY_STATE_DISABLED:
      return FailWith(ErrorId::kVirtualKeyBlocked, Reason::kDisabledKey);
    default:  // revoked, or a state that this version does not know
      return FailWith(ErrorId::kInvalidApiKey, Reason::kRevokedKey);
  }
  if (key.expires_at_us() != 0 && now_us >= key.expires_at_us()) {
    return FailWith(ErrorId::kInvalidApiKey, Reason::kExpiredKey,
                    "The API key has expired.");  // decision 11
  }
  if (!AllowsAddress(key, address)) {
    return FailWith(ErrorId::kVirtualKeyBlocked, Reason::kAllowedAddresses,
                    "The API key may not be used from this client address.");
  }
  return {};
}

Task<Result<KeyPtr>> AuthenticateRequest(Worker& worker, HttpRequest& request,
                                         CredentialRule rule) {
  CO_TRY(const auto text,
         FindKey(request, rule, worker.options.brand, worker.options.legacy_key_prefixes));
  CO_TRY(auto key,
         co_await worker.keys->Get(KeyDigest(text), request.peer_address,
                                   PublicIdOf(text, worker.options.brand),
                                   TraceparentOf(TraceOf(request), Stage::kAuthenticate)));
  if (key == nullptr) co_return FailWith(ErrorId::kInvalidApiKey, Reason::kUnknownKey);
  const auto usable = CheckKey(*key, worker.clock.WallUs(), request.peer_address);
  if (!usable) {
    NoteCaller(request, key->key_id(), key->workspace_id());
    co_return Fail{usable.error()};
  }
  co_return key;
}

Task<Result<void>> Authenticate(RequestContext& context) {
  const StageTimer timer(context.trace, Stage::kAuthenticate);
  CO_TRY(auto key, co_await AuthenticateRequest(context.worker, context.exchange.mutable_request(),
                                                context.endpoint.credential));
  context.key = std::move(key);
  context.worker.key_use->Count(context.key->key_id(), context.exchange.request().peer_address);
  co_return Result<void>();
}

}  // namespace tollgate::gateway
