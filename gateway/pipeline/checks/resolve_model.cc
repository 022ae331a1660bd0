#include "gateway/pipeline/checks/resolve_model.h"

#include <algorithm>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "common/base/ascii.h"
#include "common/observability/log_format.h"
#include "gateway/worker/key_rules.h"

namespace tollgate::gateway {

namespace {

// Longer ids are not quoted in the error message.
constexpr size_t kMaxEchoedId = 128;
// The longest model name that fits a record of the routers' journals.
constexpr size_t kMaxUnlistedId = 120;

std::string BrandPrefix(const RequestContext& context) {
  return context.worker.options.brand + "/";
}

bool HasLegacyPrefix(const RequestContext& context, const std::string& id) {
  return id.starts_with(BrandPrefix(context));  // decision 21
}

// The characters that an unlisted id may have, because it is stored in usage records and logged.
bool IsWellFormedId(std::string_view id) {
  return !id.empty() && id.size() <= kMaxUnlistedId &&
         std::all_of(id.begin(), id.end(), [](char c) {
           return IsAlnum(c) || std::string_view("._-/:@+").find(c) != std::string_view::npos;
         });
}

// For completions with an id outside the catalog: the operator's `unlisted` entry under the
// requested id (decision 20). Null when none is configured or the id does not qualify.
std::shared_ptr<const catalog::v1::Model> FindUnlisted(const RequestContext& context,
                                                       const std::string& id) {
  if (!context.catalog->snapshot().has_unlisted() ||
      context.canonical.kind != inference::v1::REQUEST_KIND_COMPLETION ||
      HasLegacyPrefix(context, id) || !IsWellFormedId(id)) {
    return nullptr;
  }
  auto unlisted = std::make_shared<catalog::v1::Model>(context.catalog->snapshot().unlisted());
  unlisted->set_id(id);
  return unlisted;
}

Fail<Error> ModelNotFound(const RequestContext& context, const std::string& id) {
  if (HasLegacyPrefix(context, id)) {
    return FailWith(ErrorId::kModelNotFound, Reason::kLegacyPrefix,
                    "Ids with the prefix '" + BrandPrefix(context) +
                        "' are no longer accepted: use an id that GET /v1/models returns.");
  }
  if (id.size() > kMaxEchoedId) {
    return FailWith(ErrorId::kModelNotFound, Reason::kUnknownModel);
  }
  // Some clients are configured with the key in the place of the model.
  return FailWith(ErrorId::kModelNotFound, Reason::kUnknownModel,
                  "The model '" + log::Redact(id) + "' is not in the catalog.");
}

}  // namespace

Result<void> ResolveModel(RequestContext& context, const std::string& id) {
  if (context.catalog == nullptr) return Unavailable(Reason::kNotReady, "no catalog received yet");
  const catalog::v1::Model* model = context.catalog->Find(id);
  std::shared_ptr<const catalog::v1::Model> unlisted;
  if (model == nullptr) {
    unlisted = FindUnlisted(context, id);
    model = unlisted.get();
  }
  if (model == nullptr) return ModelNotFound(context, id);
  const auth::v1::Key& key = *context.key;
  if (!model->workspace_id().empty() && model->workspace_id() != key.workspace_id()) {
    return FailWith(ErrorId::kInvalidApiKey, Reason::kForeignModel);  // decision 11
  }
  if (!AllowsModel(key, model->id())) {
    return FailWith(ErrorId::kModelBlocked, Reason::kAllowedModels);
  }
  if (!model->serving()) {
    return FailWith(ErrorId::kModelNotServing, Reason::kNotServing,
                    "The model '" + model->id() + "' is not serving at the moment.");
  }
  context.model = model;
  context.unlisted = std::move(unlisted);
  return {};
}

}  // namespace tollgate::gateway
