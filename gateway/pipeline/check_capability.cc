#include "gateway/pipeline/stages.h"

namespace tollgate::gateway {

namespace {

using catalog::v1::Capability;

// A chat model answers completions only when it says so, and the other way round.
Capability Needed(inference::v1::RequestKind kind) {
  switch (kind) {
    case inference::v1::REQUEST_KIND_COMPLETION:
      return catalog::v1::CAPABILITY_COMPLETION;
    case inference::v1::REQUEST_KIND_EMBEDDING:
      return catalog::v1::CAPABILITY_EMBEDDING;
    default:
      return catalog::v1::CAPABILITY_CHAT;
  }
}

std::string WrongEndpoint(inference::v1::RequestKind kind, const catalog::v1::Model& model) {
  const std::string subject = "The model '" + model.id() + "' ";
  switch (kind) {
    case inference::v1::REQUEST_KIND_COMPLETION:
      if (!HasCapability(model, catalog::v1::CAPABILITY_CHAT)) {
        return subject +
               "makes embeddings only: use /v1/embeddings, or /v1/chat/completions with a chat "
               "model.";
      }
      return subject + "does not do text completions: use /v1/chat/completions.";
    case inference::v1::REQUEST_KIND_EMBEDDING:
      return subject + "is not an embedding model.";
    default:
      return subject + "does not chat.";
  }
}

}  // namespace

Result<void> CheckCapability(RequestContext& context) {
  const CanonicalRequest& request = context.canonical;
  if (!HasCapability(*context.model, Needed(request.kind))) {
    return BadRequest(WrongEndpoint(request.kind, *context.model), "model");
  }
  if (request.prompt.media_parts > 0 &&
      !HasCapability(*context.model, catalog::v1::CAPABILITY_VISION)) {
    return BadRequest("The model '" + context.model->id() + "' takes text only, but '" +
                          std::string(request.prompt_field) + "' holds an image or another medium.",
                      std::string(request.prompt_field));
  }
  return {};
}

}  // namespace tollgate::gateway
