#include "gateway/pipeline/answer/dispatch.h"

#include <algorithm>
#include <utility>

#include "gateway/pipeline/admission/authorize_item.h"
#include "gateway/pipeline/answer/debug_header.h"
#include "gateway/pipeline/answer/trace_request.h"
#include "gateway/pipeline/checks/candidates.h"

namespace tollgate::gateway {

namespace {

// Larger requests are kept up to this size when further models can be tried: a prompt may be too
// long for the first model.
constexpr size_t kMaxRetryBytes = 4 << 20;

// Sets the fields that differ between two attempts.
void SetTry(RequestContext& context, inference::v1::GenerateRequest& request) {
  request.set_request_id(context.id.ToBytes());
  request.set_model(context.model->id());
  request.set_attempt(context.attempt);
  request.set_prompt_tokens_bound(context.bounds.prompt_upper);
  request.set_max_tokens(context.bounds.max_tokens);
  request.set_output_tokens_bound(context.bounds.output_upper / std::max(request.samples(), 1));
  request.set_prompt_tokens_estimate(context.bounds.prompt_estimate);
  inference::v1::Hold& hold = *request.mutable_hold();
  if (context.admitted_by_router) {
    *request.mutable_admission() = MakeAuthorizeItem(context);
  } else {
    request.clear_admission();
    hold.set_authorized_nano_usd(context.authorization.authorized_nano_usd());
    hold.set_slice_nano_usd(context.authorization.slice_nano_usd());
  }
  *hold.mutable_price() = context.model->price();
  context.canonical.rates = {context.model->price().input_pico_usd(),
                             context.model->price().output_pico_usd()};
  request.set_keep_hold(HasNextCandidate(context));
}

// Whether a copy of the request is kept for another attempt.
bool IsKept(RequestContext& context, const inference::v1::GenerateRequest& request) {
  const size_t bytes = request.members_json().size();
  if (bytes <= kMaxMovedBytes) return true;
  return HasNextCandidate(context) && bytes <= kMaxRetryBytes &&
         context.kept_memory.TryGrow(static_cast<int64_t>(bytes));
}

}  // namespace

void Dispatch(RequestContext& context) {
  CanonicalRequest& canonical = context.canonical;
  const HttpRequest& http = context.exchange.request();
  inference::v1::GenerateRequest request;
  request.set_x_request_id(http.x_request_id);
  request.set_workspace_id(context.key->workspace_id());
  request.set_key_id(context.key->key_id());
  request.set_kind(canonical.kind);
  request.set_members_json(std::move(canonical.members_json));
  request.set_cache_salt(std::move(canonical.cache_salt));
  request.set_choices(canonical.choices);
  request.set_samples(canonical.samples);
  request.set_prompt_media_parts(static_cast<int32_t>(canonical.prompt.media_parts));
  request.set_catalog_version(context.catalog->snapshot().version());
  PassTraceOn(context, request);
  request.set_streamed(canonical.stream);
  request.set_reasoning_budget_tokens(canonical.reasoning_budget);
  request.set_session(std::move(canonical.session));
  context.explains_choice = MayExplain(context);
  request.set_explain_choice(context.explains_choice);
  if (SaysReasoning(canonical)) *request.mutable_reasoning() = canonical.reasoning;
  SetTry(context, request);
  const size_t members_bytes = request.members_json().size();
  if (IsKept(context, request)) {
    context.movable = std::make_unique<inference::v1::GenerateRequest>(request);
  } else {
    request.set_keep_hold(false);
  }
  context.generation = context.worker.clients.inference->Start(std::move(request));
  // One copy of the members is left, which the router client sends.
  context.body_memory.Shrink(static_cast<int64_t>(members_bytes));
}

void SendAgain(RequestContext& context) {
  inference::v1::GenerateRequest& kept = *context.movable;
  context.choice.clear();  // the previous attempt's
  SetTry(context, kept);
  if (HasNextCandidate(context) || (!context.moved && IsKept(context, kept))) {
    context.generation = context.worker.clients.inference->Start(kept);
    return;
  }
  context.generation = context.worker.clients.inference->Start(std::move(kept));
  ForgetRequest(context);
}

void ForgetRequest(RequestContext& context) {
  context.movable.reset();
  context.kept_memory.Shrink(0);
}

}  // namespace tollgate::gateway
