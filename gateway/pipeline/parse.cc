#include "common/json/json.h"
#include "gateway/pipeline/content_type.h"
#include "gateway/pipeline/stages.h"

namespace tollgate::gateway {

Result<void> Parse(RequestContext& context) {
  HttpRequest& request = context.exchange.mutable_request();
  if (auto type = CheckContentType(request); !type) return type;
  {
    const auto document = json::Document::ParseView(request.body);
    if (!document) {
      return BadRequest("The request body is not valid JSON: " + document.error().message + ".");
    }
    auto canonical = context.surface.ParseRequest(*document);
    if (!canonical) return Fail{canonical.error()};
    context.canonical = std::move(*canonical);
  }
  // What the engine gets has been copied out of it.
  std::string().swap(request.body);
  return {};
}

}  // namespace tollgate::gateway
