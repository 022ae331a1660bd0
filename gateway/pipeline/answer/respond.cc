#include "gateway/pipeline/answer/respond.h"

#include <utility>

#include "gateway/pipeline/admission/limit_headers.h"
#include "gateway/pipeline/answer/debug_header.h"

namespace tollgate::gateway {

ResponseStamp MakeResponseStamp(const RequestContext& context) {
  const Clock& clock = context.worker.clock;
  return {context.id.ToBase62(), clock.WallUs() / 1'000'000, &clock};
}

Headers AnswerHeaders(const RequestContext& context) {
  Headers headers = context.limit_headers;
  if (context.names_model) headers.emplace_back(kModelHeader, context.model->id());
  if (!context.choice.empty()) headers.emplace_back(kDebugHeader, context.choice);
  return headers;
}

Task<void> SendJson(RequestContext& context, std::string body, bool cut_by_credit) {
  context.worker.metrics.CountRequest(context.endpoint.name, 200, "");
  HttpResponse response;
  response.headers.emplace_back("content-type", "application/json");
  if (cut_by_credit) response.headers.emplace_back(kCutByCreditHeader, "true");
  AppendHeaders(AnswerHeaders(context), response.headers);
  response.body = std::move(body);
  (void)co_await context.exchange.Send(std::move(response));
}

}  // namespace tollgate::gateway
