#include "gateway/pipeline/checks/check_capability.h"

#include <string>

#include "gateway/pipeline/checks/media_hosts.h"

namespace tollgate::gateway {

namespace {

using catalog::v1::Capability;

// Chat and completion are separate capabilities: neither implies the other.
Capability RequiredCapability(inference::v1::RequestKind kind) {
  switch (kind) {
    case inference::v1::REQUEST_KIND_COMPLETION:
      return catalog::v1::CAPABILITY_COMPLETION;
    case inference::v1::REQUEST_KIND_EMBEDDING:
      return catalog::v1::CAPABILITY_EMBEDDING;
    default:
      return catalog::v1::CAPABILITY_CHAT;
  }
}

std::string UnsupportedMessage(inference::v1::RequestKind kind, const catalog::v1::Model& model) {
  const std::string subject = "The model '" + model.id() + "' ";
  switch (kind) {
    case inference::v1::REQUEST_KIND_COMPLETION:
      if (!HasCapability(model, catalog::v1::CAPABILITY_CHAT)) {
        return subject +
               "supports embeddings only: use /v1/embeddings, or /v1/chat/completions with a chat "
               "model.";
      }
      return subject + "does not support text completions: use /v1/chat/completions.";
    case inference::v1::REQUEST_KIND_EMBEDDING:
      return subject + "is not an embedding model.";
    default:
      return subject + "does not support chat completions.";
  }
}

}  // namespace

Result<void> CheckCapability(RequestContext& context) {
  const CanonicalRequest& request = context.canonical;
  if (!HasCapability(*context.model, RequiredCapability(request.kind))) {
    return BadRequest(UnsupportedMessage(request.kind, *context.model), "model");
  }
  if (request.prompt.media_parts > 0 &&
      !HasCapability(*context.model, catalog::v1::CAPABILITY_VISION)) {
    return BadRequest("The model '" + context.model->id() + "' accepts text only, but '" +
                          std::string(request.prompt_field) + "' contains an image or other media.",
                      std::string(request.prompt_field));
  }
  if (!request.template_member.empty() && !context.model->allow_chat_template()) {
    return BadRequest("The model '" + context.model->id() + "' accepts no template: '" +
                          std::string(request.template_member) + "' must not hold one.",
                      std::string(request.template_member));
  }
  for (const std::string& host : request.media_hosts) {
    if (!IsMediaHostAllowed(context.worker.options.media_hosts, host)) {
      return BadRequest("Media URLs must not name the host '" + host + "' here.",
                        std::string(request.prompt_field));
    }
  }
  return {};
}

}  // namespace tollgate::gateway
