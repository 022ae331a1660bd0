#include "gateway/pipeline/answer/idempotency.h"

#include <algorithm>
#include <utility>

#include "common/base/crypto.h"
#include "common/base/seal.h"
#include "common/json/json.h"
#include "common/keys/lineage.h"
#include "common/observability/log.h"
#include "gateway/pipeline/admission/limit_headers.h"
#include "gateway/pipeline/answer/refuse.h"
#include "gateway/pipeline/answer/respond.h"

namespace tollgate::gateway {

namespace {

constexpr size_t kMaxKeyBytes = 255;
// The sealed text is one of these lines, followed by the body of an answer with status 200.
constexpr std::string_view kAnswerHead = "200 application/json\n";
constexpr std::string_view kCutAnswerHead = "200 application/json cut-by-credit\n";

struct KeptAnswer {
  std::string body;
  bool cut_by_credit = false;
};

Task<Result<KeptAnswer>> FindAnswer(RequestContext& context) {
  const std::string& key = context.worker.options.answer_key;
  if (key.empty()) {
    co_return FailWith(ErrorId::kIdempotencyAnswerGone, Reason::kIdempotencyGone);
  }
  billing::v1::GetAnswerRequest request;
  request.set_workspace_id(context.key->workspace_id());
  request.set_idempotency_key_digest(context.idempotency_key_digest);
  auto kept = co_await context.worker.clients.billing->GetAnswer(std::move(request));
  if (!kept) {
    co_return Unavailable(Reason::kBillingUnavailable, "billing: " + kept.error().ToString());
  }
  const auto answer = Unseal(key, context.idempotency_key_digest, kept->sealed());
  if (answer && answer->starts_with(kAnswerHead)) {
    co_return KeptAnswer{answer->substr(kAnswerHead.size()), false};
  }
  if (answer && answer->starts_with(kCutAnswerHead)) {
    co_return KeptAnswer{answer->substr(kCutAnswerHead.size()), true};
  }
  co_return FailWith(ErrorId::kIdempotencyAnswerGone, Reason::kIdempotencyGone);
}

}  // namespace

bool HasIdempotencyKey(const HttpRequest& request) {
  return std::any_of(request.headers.begin(), request.headers.end(),
                     [](const auto& header) { return header.first == kIdempotencyKeyHeader; });
}

std::string IdempotencyBodyDigest(const std::string& path, const std::string& body) {
  // Hashes twice so that a large body is not copied.
  return Sha256(path + '\0' + Sha256(body));
}

Result<void> ReadIdempotencyKey(RequestContext& context) {
  const HttpRequest& request = context.exchange.request();
  // Without an engine there is no charge (decision 30).
  if (context.canonical.max_tokens == 0 || !HasIdempotencyKey(request)) return {};
  const auto count =
      std::count_if(request.headers.begin(), request.headers.end(),
                    [](const auto& header) { return header.first == kIdempotencyKeyHeader; });
  const std::string_view value = request.header(kIdempotencyKeyHeader);
  const bool printable =
      std::all_of(value.begin(), value.end(), [](char c) { return c >= ' ' && c <= '~'; });
  if (count > 1 || value.empty() || value.size() > kMaxKeyBytes || !printable) {
    return BadRequest(
        "The header Idempotency-Key must be sent once, with 1 to 255 printable ASCII characters.");
  }
  std::string text = LineageOf(*context.key);
  text += '\0';
  text += value;
  context.idempotency_key_digest = Sha256(text);
  return {};
}

Task<void> KeepAnswer(RequestContext& context, const std::string& body, bool cut_by_credit) {
  const std::string& key = context.worker.options.answer_key;
  // A caller that asks for no retention gets none here, either.
  if (context.idempotency_key_digest.empty() || key.empty() || body.size() > kMaxKeptBytes ||
      !context.canonical.provider.no_retention.empty()) {
    co_return;
  }
  std::string answer(cut_by_credit ? kCutAnswerHead : kAnswerHead);
  answer += body;
  billing::v1::StoreAnswerRequest request;
  request.set_workspace_id(context.key->workspace_id());
  request.set_idempotency_key_digest(context.idempotency_key_digest);
  request.set_request_id(context.id.ToBytes());
  request.set_sealed(Seal(key, context.idempotency_key_digest, answer));
  const auto stored = co_await context.worker.clients.billing->StoreAnswer(std::move(request));
  if (!stored) {
    log::Warn("an answer could not be stored for its Idempotency-Key",
              {{"x_request_id", context.exchange.request().x_request_id},
               {"error", stored.error().ToString()}});
  }
}

Task<void> RepeatAnswer(RequestContext& context) {
  auto answer = co_await FindAnswer(context);
  if (!answer) co_return co_await ReleaseAndRefuse(context, answer.error());
  co_await context.slot.Finish(0);
  context.local_slot = LocalSlot();
  context.worker.metrics.CountRequest(context.endpoint.name, 200, "");
  HttpResponse response;
  response.headers.emplace_back("content-type", "application/json");
  response.headers.emplace_back("idempotent-replayed", "true");
  if (answer->cut_by_credit) response.headers.emplace_back(kCutByCreditHeader, "true");
  AppendHeaders(context.limit_headers, response.headers);
  if (context.names_model) {
    // Names the model that answered then, not the one that would be tried first now.
    json::Limits limits;
    limits.allow_nul = true;  // the model's output may contain it
    const auto document = json::Document::ParseView(answer->body, limits);
    const json::Value model = document ? document->root().Find("model") : json::Value();
    if (model.is_string()) response.headers.emplace_back(kModelHeader, model.string());
  }
  response.body = std::move(answer->body);
  (void)co_await context.exchange.Send(std::move(response));
}

}  // namespace tollgate::gateway
