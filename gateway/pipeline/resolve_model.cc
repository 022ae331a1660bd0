#include <algorithm>

#include "gateway/pipeline/stages.h"

namespace tollgate::gateway {

namespace {

// Ids are echoed only when they look like one.
constexpr size_t kMaxShownId = 128;

Fail<Error> Unknown(const RequestContext& context) {
  const std::string& id = context.canonical.model;
  const std::string brand_prefix = context.worker.options.brand + "/";
  if (id.starts_with(brand_prefix)) {
    return FailWith(ErrorId::kModelNotFound,
                    "Ids with the prefix '" + brand_prefix +
                        "' are no longer accepted: use an id that GET /v1/models returns.");
  }
  if (id.size() > kMaxShownId) return FailWith(ErrorId::kModelNotFound);
  return FailWith(ErrorId::kModelNotFound, "The model '" + id + "' is not in the catalog.");
}

}  // namespace

Result<void> ResolveModel(RequestContext& context) {
  if (context.catalog == nullptr) return Unavailable("no catalog yet");
  const catalog::v1::Model* model = context.catalog->Find(context.canonical.model);
  if (model == nullptr) return Unknown(context);
  const auth::v1::Key& key = *context.key;
  if (!model->workspace_id().empty() && model->workspace_id() != key.workspace_id()) {
    return FailWith(ErrorId::kInvalidApiKey);  // decisions.md 11
  }
  const auto& allowed = key.allowed_models();
  if (!allowed.empty() && std::find(allowed.begin(), allowed.end(), model->id()) == allowed.end()) {
    return FailWith(ErrorId::kModelBlocked);
  }
  if (!model->serving()) {
    Error error{ErrorId::kModelNotServing};
    error.message = "The model '" + model->id() + "' is not serving at the moment.";
    return Fail{std::move(error)};
  }
  context.model = model;
  return {};
}

}  // namespace tollgate::gateway
