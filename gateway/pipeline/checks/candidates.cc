#include "gateway/pipeline/checks/candidates.h"

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "common/base/try.h"
#include "gateway/pipeline/checks/bound.h"
#include "gateway/pipeline/checks/check_capability.h"
#include "gateway/pipeline/checks/check_terms.h"
#include "gateway/pipeline/checks/resolve_model.h"

namespace tollgate::gateway {

namespace {

// Why a model cannot answer. tolerated: another model may be tried.
struct Fault {
  Error error;
  bool tolerated = false;
};

std::optional<Fault> Examine(RequestContext& context, const std::string& id) {
  if (auto done = ResolveModel(context, id); !done) {
    return Fault{done.error(), done.error().id == ErrorId::kModelNotServing};
  }
  if (auto done = CheckCapability(context); !done) return Fault{done.error()};
  if (auto done = CheckTerms(context); !done) return Fault{done.error(), true};
  context.bounds = TokenBounds();
  if (auto done = BoundTokens(context); !done) return Fault{done.error(), true};
  return std::nullopt;
}

// Makes an error about `model` name the item of `models` instead.
Error NameItem(Error error, const std::string& member) {
  if (error.param.empty() || error.param == "model") error.param = member;
  // Only a 400 shows its param.
  if (error.row().http_status != 400) {
    error.message = std::string(error.public_message()) + " (" + member + ")";
  }
  return error;
}

}  // namespace

Result<void> FindCandidates(RequestContext& context) {
  const CanonicalRequest& request = context.canonical;
  TRY(CheckProviderNames(context));
  std::optional<Error> first_error;
  // Returns false when the request fails.
  const auto consider = [&](const std::string& id, const std::string& member, bool by_caller) {
    auto fault = Examine(context, id);
    if (!fault) {
      context.candidates.push_back({context.model, context.unlisted, context.bounds});
      return true;
    }
    if (!member.empty() && member != "model")
      fault->error = NameItem(std::move(fault->error), member);
    const bool tolerated = fault->tolerated || !by_caller;
    if (!first_error || !tolerated) first_error = std::move(fault->error);
    return tolerated;
  };
  const std::string& asked = request.model;
  if (!consider(asked, request.model_member, true)) return Fail{std::move(*first_error)};
  if (request.provider.allow_fallbacks) {
    for (const FallbackChoice& choice : request.fallbacks) {
      if (!consider(choice.id, choice.member, true)) return Fail{std::move(*first_error)};
    }
    const catalog::v1::Model* first = context.catalog->Find(asked);
    const bool by_catalog =
        request.fallbacks.empty() && first != nullptr && first->fallbacks_size() > 0;
    if (by_catalog) {
      for (const std::string& id : first->fallbacks()) consider(id, "model", false);
    }
    context.names_model = by_catalog || !request.fallbacks.empty();
  }
  if (context.candidates.empty()) return Fail{std::move(*first_error)};
  UseCandidate(context, 0);
  if (context.candidates.size() == 1) context.candidates.clear();
  return {};
}

bool HasNextCandidate(const RequestContext& context) {
  return context.candidate + 1 < context.candidates.size();
}

void UseCandidate(RequestContext& context, size_t index) {
  const Candidate& candidate = context.candidates[index];
  context.candidate = index;
  context.model = candidate.model;
  context.unlisted = candidate.unlisted;
  context.bounds = candidate.bounds;
  context.canonical.model = candidate.model->id();
}

}  // namespace tollgate::gateway
