#include "common/observability/log.h"
#include "gateway/pipeline/stages.h"

namespace tollgate::gateway {

Task<PromptCount> CountPrompt(RequestContext& context) {
  CanonicalRequest& canonical = context.canonical;
  PromptCount count{LikelyTokens(canonical.prompt), true};
  // Tokenizers see text: what an engine makes of an image, it tells after it has seen it.
  if (canonical.prompt.media_parts > 0) co_return count;
  inference::v1::CountTokensRequest request;
  request.set_x_request_id(context.exchange.request().x_request_id);
  request.set_model(context.model->id());
  request.set_kind(canonical.kind);
  request.set_members_json(std::move(canonical.members_json));
  const auto answer = co_await context.worker.clients.inference->CountTokens(std::move(request));
  if (!answer) {
    log::Debug("tokens are estimated", {{"x_request_id", context.exchange.request().x_request_id},
                                        {"reason", answer.error().ToString()}});
  } else if (answer->counted()) {
    count = {answer->prompt_tokens(), false};
  }
  co_return count;
}

}  // namespace tollgate::gateway
