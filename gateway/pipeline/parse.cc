#include "gateway/pipeline/parse.h"

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/base/try.h"
#include "common/http/head_guard.h"
#include "common/json/json.h"
#include "gateway/pipeline/answer/idempotency.h"
#include "gateway/pipeline/checks/content_type.h"
#include "gateway/pipeline/checks/session_name.h"

namespace tollgate::gateway {
namespace {

// The longest list that is accepted (docs/design/wire.md 2.7).
constexpr size_t kMaxListedModels = 64;

// Limits for bodies, which may deviate from strict JSON: see decision 38.
json::Limits BodyLimits() {
  json::Limits limits;
  limits.allow_nul = true;
  limits.replace_lone_surrogates = true;
  return limits;
}

ModelTraits TraitsOf(const CatalogPtr& catalog, const std::string& id) {
  ModelTraits traits;
  const catalog::v1::Model* model = catalog ? catalog->Find(id) : nullptr;
  if (model == nullptr) return traits;
  traits.keeps_system_messages = model->keep_system_messages();
  traits.bounds_reasoning = model->reasoning_budget();
  return traits;
}

// The traits that both models have: several models may answer, and the engines of each must
// understand the translation.
ModelTraits Common(ModelTraits one, const ModelTraits& other) {
  one.keeps_system_messages = one.keeps_system_messages && other.keeps_system_messages;
  one.bounds_reasoning = one.bounds_reasoning && other.bounds_reasoning;
  return one;
}

// Keeps the catalog alive because the translation may run on another thread.
ParseContext MakeParseContext(const RequestContext& context) {
  ParseContext made;
  made.traits_of = [catalog = context.catalog](const std::string& id) {
    ModelTraits traits = TraitsOf(catalog, id);
    const catalog::v1::Model* model = catalog ? catalog->Find(id) : nullptr;
    if (model == nullptr) return traits;
    for (const std::string& fallback : model->fallbacks()) {
      traits = Common(traits, TraitsOf(catalog, fallback));
    }
    return traits;
  };
  made.workspace = context.key->workspace_id();
  made.reasoning_keys = context.worker.options.reasoning_keys;
  made.now_s = context.worker.clock.WallUs() / 1'000'000;
  return made;
}

// Extends the traits to the models that the body lists.
ParseContext ForModelsOf(json::Value body, const ParseContext& context) {
  const json::Value models = body.Find("models");
  if (!models.is_array() || models.size() > kMaxListedModels) return context;
  ParseContext made = context;
  made.traits_of = [models, context](const std::string& id) {
    ModelTraits traits = context.TraitsOf(id);
    for (const json::Value model : models) {
      if (model.is_string()) traits = Common(traits, context.TraitsOf(model.string()));
    }
    return traits;
  };
  return made;
}

// Does all work that grows with the body. The result has its own copy of the members for the
// engine. digest_path: the path if the request has an Idempotency-Key, else empty.
Result<CanonicalRequest> Decode(const Surface& surface, const ParseContext& context,
                                std::string body, const std::string& digest_path) {
  // Hashes the received bytes, because the document may change its own copy.
  const std::string digest =
      digest_path.empty() ? std::string() : IdempotencyBodyDigest(digest_path, body);
  const auto document = json::Document::Parse(std::move(body), BodyLimits());
  if (!document) {
    return BadRequest("The request body is not valid JSON: " + document.error().message + ".");
  }
  auto canonical = surface.ParseRequest(*document, ForModelsOf(document->root(), context));
  if (!canonical) return canonical;
  canonical->body_digest = digest;
  canonical->session = SessionNameOf(document->root());
  return canonical;
}

// The header does on every endpoint what `usage.include` does for chat completions.
bool AsksForCost(const HttpRequest& request) {
  return http::EqualsIgnoreCase(request.header("x-tollgate-include-cost"), "true");
}

void ReadHeaders(const HttpRequest& request, CanonicalRequest& canonical) {
  if (AsksForCost(request)) canonical.include_cost = true;
  if (const auto session = SessionNameOf(request); !session.empty()) canonical.session = session;
}

std::string DigestPath(const HttpRequest& request) {
  return HasIdempotencyKey(request) ? request.path : "";
}

// The work of a pool thread. It owns the body because the client may disconnect meanwhile.
struct DecodeJob {
  const Surface* surface;
  ParseContext context;
  std::string body;
  std::string digest_path;
  std::shared_ptr<const std::atomic<bool>> client_gone;

  Result<CanonicalRequest> operator()() {
    std::string owned = std::move(body);  // freed on this thread
    if (client_gone->load()) return CanonicalRequest();
    return Decode(*surface, context, std::move(owned), digest_path);
  }
};

}  // namespace

Result<void> Parse(RequestContext& context) {
  HttpRequest& request = context.exchange.mutable_request();
  TRY(CheckContentType(request));
  TRY(auto canonical, Decode(context.surface, MakeParseContext(context),
                             std::exchange(request.body, std::string()), DigestPath(request)));
  context.canonical = std::move(canonical);
  ReadHeaders(request, context.canonical);
  return {};
}

Task<Result<void>> ParseBesideLoop(RequestContext& context) {
  HttpRequest& request = context.exchange.mutable_request();
  CO_TRY(CheckContentType(request));
  const auto client_gone = std::make_shared<std::atomic<bool>>(false);
  context.exchange.OnDisconnect([client_gone] { client_gone->store(true); });
  DecodeJob job{&context.surface, MakeParseContext(context),
                std::exchange(request.body, std::string()), DigestPath(request), client_gone};
  auto canonical =
      co_await RunOnPool(*context.worker.decoders, context.worker.loop, std::move(job));
  context.exchange.OnDisconnect({});
  context.worker.metrics.CountLargeBody(canonical.has_value());
  if (!canonical) {
    co_return Unavailable(Reason::kDecoders, "too many large bodies wait to be decoded");
  }
  if (!*canonical) co_return Fail{canonical->error()};
  context.canonical = std::move(**canonical);
  ReadHeaders(request, context.canonical);
  // Nothing was decoded, and later stages must not see the empty request.
  if (client_gone->load()) co_return Unavailable("the client disconnected");
  co_return Result<void>();
}

}  // namespace tollgate::gateway
