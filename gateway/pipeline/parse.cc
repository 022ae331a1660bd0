#include "gateway/pipeline/parse.h"

#include <atomic>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "common/json/json.h"
#include "gateway/pipeline/content_type.h"
#include "gateway/pipeline/idempotency.h"

namespace tollgate::gateway {
namespace {

// All work that grows with the body. The result holds its own copy of what the engine gets.
// digest_path: of a request with an Idempotency-Key; else empty.
Result<CanonicalRequest> Decode(const Surface& surface, const std::string& body,
                                const std::string& digest_path) {
  const auto document = json::Document::ParseView(body);
  if (!document) {
    return BadRequest("The request body is not valid JSON: " + document.error().message + ".");
  }
  auto canonical = surface.ParseRequest(*document);
  if (canonical && !digest_path.empty()) {
    canonical->body_digest = IdempotencyBodyDigest(digest_path, body);
  }
  return canonical;
}

std::string DigestPath(const HttpRequest& request) {
  return HasIdempotencyKey(request) ? request.path : "";
}

// What a thread of the pool works on. It owns the body, since the client may disconnect meanwhile.
struct DecodeJob {
  const Surface* surface;
  std::string body;
  std::string digest_path;
  std::shared_ptr<const std::atomic<bool>> client_gone;

  Result<CanonicalRequest> operator()() {
    const std::string owned = std::move(body);  // freed on this thread
    if (client_gone->load()) return CanonicalRequest();
    return Decode(*surface, owned, digest_path);
  }
};

}  // namespace

Result<void> Parse(RequestContext& context) {
  HttpRequest& request = context.exchange.mutable_request();
  if (auto type = CheckContentType(request); !type) return type;
  auto canonical = Decode(context.surface, request.body, DigestPath(request));
  if (!canonical) return Fail{canonical.error()};
  context.canonical = std::move(*canonical);
  std::string().swap(request.body);
  return {};
}

Task<Result<void>> ParseBesideLoop(RequestContext& context) {
  HttpRequest& request = context.exchange.mutable_request();
  if (auto type = CheckContentType(request); !type) co_return type;
  const auto client_gone = std::make_shared<std::atomic<bool>>(false);
  context.exchange.OnDisconnect([client_gone] { client_gone->store(true); });
  DecodeJob job{&context.surface, std::exchange(request.body, std::string()), DigestPath(request),
                client_gone};
  auto canonical =
      co_await RunOnPool(*context.worker.decoders, context.worker.loop, std::move(job));
  context.exchange.OnDisconnect({});
  context.worker.metrics.CountLargeBody(canonical.has_value());
  if (!canonical) co_return Unavailable("too many large bodies wait to be decoded");
  if (!*canonical) co_return Fail{canonical->error()};
  context.canonical = std::move(**canonical);
  // Nothing was decoded: the stages after this one must not see the empty request.
  if (client_gone->load()) co_return Unavailable("the client disconnected");
  co_return Result<void>();
}

}  // namespace tollgate::gateway
