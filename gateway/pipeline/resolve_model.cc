#include "gateway/pipeline/resolve_model.h"

#include <algorithm>
#include <string>
#include <string_view>

#include "common/base/ascii.h"
#include "gateway/worker/key_rules.h"

namespace tollgate::gateway {

namespace {

// Longer ids are not echoed in the error message.
constexpr size_t kMaxEchoedId = 128;
// The longest model name that fits a record of the routers' journals.
constexpr size_t kMaxUnlistedId = 120;

std::string BrandPrefix(const RequestContext& context) {
  return context.worker.options.brand + "/";
}

bool HasLegacyPrefix(const RequestContext& context, const std::string& id) {
  return id.starts_with(BrandPrefix(context));  // decision 21
}

// The characters that an unlisted id may have: it is stored in usage records and logged.
bool IsWellFormedId(std::string_view id) {
  return !id.empty() && id.size() <= kMaxUnlistedId &&
         std::all_of(id.begin(), id.end(), [](char c) {
           return IsAlnum(c) || std::string_view("._-/:@+").find(c) != std::string_view::npos;
         });
}

// For completions of ids outside the catalog: the operator's `unlisted` entry under the requested
// id (decision 20). Null when none is configured or the id does not qualify.
const catalog::v1::Model* FindUnlisted(RequestContext& context) {
  const std::string& id = context.canonical.model;
  if (!context.catalog->snapshot().has_unlisted() ||
      context.canonical.kind != inference::v1::REQUEST_KIND_COMPLETION ||
      HasLegacyPrefix(context, id) || !IsWellFormedId(id)) {
    return nullptr;
  }
  context.unlisted = context.catalog->snapshot().unlisted();
  context.unlisted.set_id(id);
  return &context.unlisted;
}

Fail<Error> ModelNotFound(const RequestContext& context) {
  const std::string& id = context.canonical.model;
  if (HasLegacyPrefix(context, id)) {
    return FailWith(ErrorId::kModelNotFound,
                    "Ids with the prefix '" + BrandPrefix(context) +
                        "' are no longer accepted: use an id that GET /v1/models returns.");
  }
  if (id.size() > kMaxEchoedId) return FailWith(ErrorId::kModelNotFound);
  return FailWith(ErrorId::kModelNotFound, "The model '" + id + "' is not in the catalog.");
}

}  // namespace

Result<void> ResolveModel(RequestContext& context) {
  if (context.catalog == nullptr) return Unavailable("no catalog received yet");
  const catalog::v1::Model* model = context.catalog->Find(context.canonical.model);
  if (model == nullptr) model = FindUnlisted(context);
  if (model == nullptr) return ModelNotFound(context);
  const auth::v1::Key& key = *context.key;
  if (!model->workspace_id().empty() && model->workspace_id() != key.workspace_id()) {
    return FailWith(ErrorId::kInvalidApiKey);  // decision 11
  }
  if (!AllowsModel(key, model->id())) return FailWith(ErrorId::kModelBlocked);
  if (!model->serving()) {
    Error error{ErrorId::kModelNotServing};
    error.message = "The model '" + model->id() + "' is not serving at the moment.";
    return Fail{std::move(error)};
  }
  context.model = model;
  return {};
}

}  // namespace tollgate::gateway
