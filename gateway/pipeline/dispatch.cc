#include "gateway/pipeline/dispatch.h"

#include <utility>

#include "common/base/ascii.h"

namespace tollgate::gateway {

namespace {

// A larger request is not kept for another router: it would double the memory of large bodies.
constexpr size_t kMaxMovedBytes = 64 << 10;

// W3C trace context: version-traceid-parentid-flags in lower-case hexadecimal.
bool IsTraceparent(std::string_view text) {
  if (text.size() != 55) return false;
  for (size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool dash = i == 2 || i == 35 || i == 52;
    const bool hex = HexValue(c) >= 0 && !IsUpper(c);
    if (dash ? c != '-' : !hex) return false;
  }
  return true;
}

}  // namespace

void Dispatch(RequestContext& context) {
  CanonicalRequest& canonical = context.canonical;
  const HttpRequest& http = context.exchange.request();
  inference::v1::GenerateRequest request;
  request.set_request_id(context.id.ToBytes());
  request.set_x_request_id(http.x_request_id);
  request.set_workspace_id(context.key->workspace_id());
  request.set_key_id(context.key->key_id());
  request.set_model(context.model->id());
  request.set_kind(canonical.kind);
  request.set_members_json(std::move(canonical.members_json));
  request.set_cache_salt(std::move(canonical.cache_salt));
  request.set_prompt_tokens_bound(context.bounds.prompt_upper);
  request.set_max_tokens(context.bounds.max_tokens);
  request.set_choices(canonical.choices);
  request.set_samples(canonical.samples);
  request.set_prompt_tokens_estimate(context.bounds.prompt_estimate);
  request.set_prompt_media_parts(static_cast<int32_t>(canonical.prompt.media_parts));
  inference::v1::Hold& hold = *request.mutable_hold();
  hold.set_authorized_nano_usd(context.authorization.authorized_nano_usd());
  hold.set_slice_nano_usd(context.authorization.slice_nano_usd());
  *hold.mutable_price() = context.model->price();
  request.set_catalog_version(context.catalog->snapshot().version());
  if (const std::string_view trace = http.header("traceparent"); IsTraceparent(trace)) {
    request.set_traceparent(std::string(trace));
  }
  request.set_streamed(canonical.stream);
  if (request.members_json().size() <= kMaxMovedBytes) {
    context.movable = std::make_unique<inference::v1::GenerateRequest>(request);
  }
  context.generation = context.worker.clients.inference->Start(std::move(request));
}

}  // namespace tollgate::gateway
