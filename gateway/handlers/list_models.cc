#include "gateway/handlers/list_models.h"

#include <algorithm>

#include "gateway/handlers/model_list.h"
#include "gateway/pipeline/answer/refuse.h"
#include "gateway/pipeline/checks/authenticate.h"

namespace tollgate::gateway {

Task<void> ListModels(Worker& worker, Exchange& exchange, const Endpoint& endpoint) {
  HttpRequest& request = exchange.mutable_request();
  const CatalogPtr catalog = worker.catalog;
  if (catalog == nullptr) {
    co_return co_await RefuseRequest(
        worker, exchange, endpoint,
        Unavailable(Reason::kNotReady, "no catalog received yet").error);
  }
  // The list is public, so a key that is invalid or cannot be checked is ignored (decision 13).
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
  const bool not_modified =
      std::any_of(request.headers.begin(), request.headers.end(), [&tag](const auto& header) {
        return header.first == "if-none-match" && MatchesTag(header.second, tag);
      });
  if (not_modified) {
    response.status = 304;
    response.body.clear();
    response.headers.erase(response.headers.begin());
  }
  worker.metrics.CountRequest(endpoint.name, response.status, "");
  (void)co_await exchange.Send(std::move(response));
}

}  // namespace tollgate::gateway
