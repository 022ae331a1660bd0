#include "gateway/list_models.h"

#include "gateway/envelopes/envelope.h"
#include "gateway/pipeline/authenticate.h"
#include "gateway/surfaces/models/model_list.h"

namespace tollgate::gateway {

Task<void> ListModels(Worker& worker, Exchange& exchange, const Endpoint& endpoint) {
  const HttpRequest& request = exchange.request();
  const CatalogPtr catalog = worker.catalog;
  if (catalog == nullptr) {
    const Error error{ErrorId::kServiceUnavailable, "", "", 1000, "no catalog yet"};
    worker.metrics.CountRequest(endpoint.name, 503, error.row().code);
    (void)co_await exchange.Send(RenderError(endpoint.family, error, request));
    co_return;
  }
  // The list is public: a key that is bad, or can not be checked, is as good as none (decisions.md
  // 13).
  KeyPtr key;
  if (!request.header("authorization").empty()) {
    if (auto found = co_await AuthenticateRequest(worker, request, endpoint.credential)) {
      key = std::move(*found);
    }
  }
  HttpResponse response;
  response.body = RenderModelList(catalog->snapshot(), key.get());
  const std::string tag = EntityTag(response.body);
  response.headers = {{"content-type", "application/json"},
                      {"etag", tag},
                      {"cache-control", "no-cache"},
                      {"vary", "authorization"}};
  if (MatchesTag(request.header("if-none-match"), tag)) {
    response.status = 304;
    response.body.clear();
    response.headers.erase(response.headers.begin());
  }
  worker.metrics.CountRequest(endpoint.name, response.status, "");
  (void)co_await exchange.Send(std::move(response));
}

}  // namespace tollgate::gateway
