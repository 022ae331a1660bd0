#include <algorithm>

#include "gateway/pipeline/stages.h"

namespace tollgate::gateway {

namespace {

// Ids are echoed only when they look like one.
constexpr size_t kMaxShownId = 128;
// As long as names in the routers' journals may be.
constexpr size_t kMaxUnlistedId = 120;

std::string BrandPrefix(const RequestContext& context) {
  return context.worker.options.brand + "/";
}

bool IsLegacy(const RequestContext& context, const std::string& id) {
  return id.starts_with(BrandPrefix(context));  // decisions.md 21
}

// What an engine may be asked for unseen: it ends up in usage records and logs.
bool LooksLikeAnId(std::string_view id) {
  return !id.empty() && id.size() <= kMaxUnlistedId &&
         std::all_of(id.begin(), id.end(), [](char c) {
           return (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                  std::string_view("._-/:@+").find(c) != std::string_view::npos;
         });
}

// The operator's terms for ids outside the catalog, as a model of that id; null when there are none
// for this request (decisions.md 20).
const catalog::v1::Model* FindUnlisted(RequestContext& context) {
  const std::string& id = context.canonical.model;
  if (!context.catalog->snapshot().has_unlisted() ||
      context.canonical.kind != inference::v1::REQUEST_KIND_COMPLETION || IsLegacy(context, id) ||
      !LooksLikeAnId(id)) {
    return nullptr;
  }
  context.unlisted = context.catalog->snapshot().unlisted();
  context.unlisted.set_id(id);
  return &context.unlisted;
}

Fail<Error> Unknown(const RequestContext& context) {
  const std::string& id = context.canonical.model;
  if (IsLegacy(context, id)) {
    return FailWith(ErrorId::kModelNotFound,
                    "Ids with the prefix '" + BrandPrefix(context) +
                        "' are no longer accepted: use an id that GET /v1/models returns.");
  }
  if (id.size() > kMaxShownId) return FailWith(ErrorId::kModelNotFound);
  return FailWith(ErrorId::kModelNotFound, "The model '" + id + "' is not in the catalog.");
}

}  // namespace

Result<void> ResolveModel(RequestContext& context) {
  if (context.catalog == nullptr) return Unavailable("no catalog yet");
  const catalog::v1::Model* model = context.catalog->Find(context.canonical.model);
  if (model == nullptr) model = FindUnlisted(context);
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
