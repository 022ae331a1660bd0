#include "gateway/handlers/show_generation.h"

#include <algorithm>
#include <array>

#include "common/base/try.h"
#include "common/base/utc_text.h"
#include "common/http/server.h"
#include "common/json/writer.h"
#include "common/money/money.h"
#include "gateway/handlers/ledger_report.h"
#include "gateway/handlers/query.h"
#include "gateway/pipeline/checks/authenticate.h"

namespace tollgate::gateway {

namespace {

namespace billing_pb = billing::v1;

struct SurfaceNames {
  const char* name;
  const char* id_prefix;  // prefix of the answer's id; answers without an id use the request's
};

SurfaceNames NamesOf(billing_pb::Surface surface) {
  switch (surface) {
    case billing_pb::SURFACE_CHAT_COMPLETIONS:
      return {"chat_completions", "chatcmpl-"};
    case billing_pb::SURFACE_COMPLETIONS:
      return {"completions", "cmpl-"};
    case billing_pb::SURFACE_EMBEDDINGS:
      return {"embeddings", "req_"};
    case billing_pb::SURFACE_MESSAGES:
      return {"messages", "msg_"};
    case billing_pb::SURFACE_RESPONSES:
      return {"responses", "resp_"};
    default:
      return {"", "req_"};
  }
}

const char* StatusOf(const billing_pb::GenerationReceipt& receipt) {
  if (receipt.open()) return "running";
  switch (receipt.outcome()) {
    case billing_pb::OUTCOME_COMPLETED:
      return "completed";
    case billing_pb::OUTCOME_CLIENT_GONE:
      return "cancelled";
    case billing_pb::OUTCOME_RECOVERED:
    case billing_pb::OUTCOME_FAILED_MID_STREAM:
      return "interrupted";
    default:
      return "failed";
  }
}

std::string CostDetails(const billing_pb::GenerationReceipt& receipt) {
  const Rates rates{receipt.price().input_pico_usd(), receipt.price().output_pico_usd()};
  const auto& usage = receipt.usage();
  return json::Writer()
      .Text("prompt_cost", PicoToDecimalUsd(CostPicoUsd(rates, usage.prompt_tokens(), 0)))
      .Text("completion_cost", PicoToDecimalUsd(CostPicoUsd(rates, 0, usage.completion_tokens())))
      .Done();
}

std::string Pricing(const billing_pb::GenerationReceipt& receipt) {
  return json::Writer()
      .Text("prompt", PicoPerTokenToUsdPerToken(receipt.price().input_pico_usd()))
      .Text("completion", PicoPerTokenToUsdPerToken(receipt.price().output_pico_usd()))
      .Done();
}

Task<Result<std::string>> Find(Worker& worker, Exchange& exchange, CredentialRule credential) {
  HttpRequest& request = exchange.mutable_request();
  CO_TRY(const auto key, co_await AuthenticateRequest(worker, request, credential));
  NoteCaller(request, key->key_id(), key->workspace_id());
  worker.key_use->Count(key->key_id(), request.peer_address);
  std::array<QueryParameter, 1> parameters = {{{"id"}}};
  CO_TRY(ReadQuery(request.query, parameters));
  const auto& id = parameters[0].value;
  if (!id || !http::IsWellFormedRequestId(*id)) {
    co_return BadRequest("id must be the id of an answer or its x-request-id.", "id");
  }
  CO_TRY(const auto turn, co_await TakeReportTurn(worker, exchange, key->workspace_id()));
  billing_pb::GetReceiptRequest asked;
  asked.set_workspace_id(key->workspace_id());
  asked.set_id(*id);
  const auto found = co_await worker.clients.billing->GetReceipt(std::move(asked));
  if (!found) co_return Fail{ReportUnavailable(found.error())};
  if (!found->has_receipt()) {
    co_return FailWith(ErrorId::kNotFound, Reason::kNoGeneration,
                       "The workspace of this key has no request of this id.");
  }
  co_return RenderGeneration(*found);
}

}  // namespace

std::string RenderGeneration(const billing_pb::GetReceiptResponse& found) {
  const billing_pb::GenerationReceipt& receipt = found.receipt();
  const auto& usage = receipt.usage();
  const std::string id = Id::FromBytes(receipt.request_id()).value_or(Id()).ToBase62();
  const SurfaceNames names = NamesOf(receipt.surface());
  json::Writer data;
  data.Text("id", names.id_prefix + id);
  data.Text("request_id",
            receipt.client_request_id().empty() ? "req_" + id : receipt.client_request_id());
  data.Number("matches", found.matches());
  data.Text("created_at", UtcText(receipt.created_us(), UtcPrecision::kMicroseconds));
  data.Text("model", receipt.model());
  data.Text("api_type", names.name);
  data.Flag("streamed", receipt.streamed());
  data.Text("status", StatusOf(receipt));
  data.Flag("cancelled", receipt.outcome() == billing_pb::OUTCOME_CLIENT_GONE);
  data.Flag("cut_by_credit", receipt.cut_by_credit());
  data.Flag("estimated", receipt.estimated());
  data.Text("total_cost", NanoToDecimalUsd(receipt.charged_nano_usd()));
  data.Raw("cost_details", CostDetails(receipt));
  data.Raw("pricing", Pricing(receipt));
  data.Number("tokens_prompt", usage.prompt_tokens());
  data.Number("tokens_completion", usage.completion_tokens());
  data.Number("native_tokens_prompt", usage.prompt_tokens());
  data.Number("native_tokens_completion", usage.completion_tokens());
  data.Number("native_tokens_reasoning", usage.reasoning_tokens());
  data.Number("native_tokens_cached", usage.cached_tokens());
  if (receipt.first_token_us() > 0) {
    data.Number("latency", receipt.first_token_us() / 1000);
  } else {
    data.Raw("latency", "null");
  }
  if (receipt.closed_us() > 0) {
    data.Number("generation_time",
                std::max<int64_t>(receipt.closed_us() - receipt.created_us(), 0) / 1000);
  } else {
    data.Raw("generation_time", "null");
  }
  return json::Writer().Raw("data", data.Done()).Done();
}

Task<void> ShowGeneration(Worker& worker, Exchange& exchange, const Endpoint& endpoint) {
  auto body = co_await Find(worker, exchange, endpoint.credential);
  co_await SendReport(worker, exchange, endpoint, std::move(body));
}

}  // namespace tollgate::gateway
