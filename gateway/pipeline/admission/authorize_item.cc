#include "gateway/pipeline/admission/authorize_item.h"

#include <algorithm>
#include <string_view>

namespace tollgate::gateway {

namespace {

namespace billing_pb = billing::v1;

billing_pb::Surface SurfaceOf(std::string_view endpoint) {
  if (endpoint == "chat_completions") return billing_pb::SURFACE_CHAT_COMPLETIONS;
  if (endpoint == "completions") return billing_pb::SURFACE_COMPLETIONS;
  if (endpoint == "embeddings") return billing_pb::SURFACE_EMBEDDINGS;
  if (endpoint == "messages") return billing_pb::SURFACE_MESSAGES;
  if (endpoint == "responses") return billing_pb::SURFACE_RESPONSES;
  return billing_pb::SURFACE_UNSPECIFIED;
}

// to: an AuthorizeItem or a FallbackModel.
template <typename To>
void SetModel(const RequestContext& context, const catalog::v1::Model& model,
              const TokenBounds& bounds, To& to) {
  to.set_model(model.id());
  *to.mutable_price() = model.price();
  to.set_prompt_tokens_bound(bounds.prompt_upper);
  // The hold of a generation covers at least one output token, that of an embedding only the input.
  const bool generates = context.canonical.kind != inference::v1::REQUEST_KIND_EMBEDDING;
  to.set_output_tokens_bound(std::max<int64_t>(bounds.output_upper, generates ? 1 : 0));
}

}  // namespace

billing_pb::AuthorizeItem MakeAuthorizeItem(const RequestContext& context) {
  const auth::v1::Key& key = *context.key;
  billing_pb::AuthorizeItem item;
  item.set_request_id(context.id.ToBytes());
  item.set_workspace_id(key.workspace_id());
  item.set_key_id(key.key_id());
  item.set_attempt(context.attempt);
  if (context.candidates.empty()) {
    SetModel(context, *context.model, context.bounds, item);
  } else {
    SetModel(context, *context.candidates[0].model, context.candidates[0].bounds, item);
    for (size_t i = 1; i < context.candidates.size(); ++i) {
      SetModel(context, *context.candidates[i].model, context.candidates[i].bounds,
               *item.add_fallbacks());
    }
    item.set_candidate(static_cast<int32_t>(context.candidate));
  }
  const HttpRequest& http = context.exchange.request();
  // An id that the server made is left out, because it contains the request id (decision 65).
  if (!http.x_request_id.ends_with(context.id.ToBase62())) {
    item.set_client_request_id(http.x_request_id);
  }
  item.set_surface(SurfaceOf(context.endpoint.name));
  item.set_streamed(context.canonical.stream);
  if (key.has_monthly_quota_nano_usd()) {
    item.set_key_quota_nano_usd(key.monthly_quota_nano_usd());
    for (const std::string& id : key.lineage()) {
      if (id != key.key_id()) item.add_quota_keys(id);
    }
  }
  if (!context.idempotency_key_digest.empty()) {
    item.set_idempotency_key_digest(context.idempotency_key_digest);
    item.set_idempotency_body_digest(context.canonical.body_digest);
  }
  // No engine gets the request, so nothing needs to be held or voided (decision 30).
  item.set_check_only(context.canonical.max_tokens == 0);
  item.set_traceparent(TraceparentOf(context.trace, Stage::kAuthorize));
  return item;
}

}  // namespace tollgate::gateway
