#include "gateway/pipeline/parse.h"

#include <string>
#include <utility>

#include "common/json/json.h"
#include "gateway/pipeline/content_type.h"

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
  // The canonical request holds its own copy of what the engine gets.
  std::string().swap(request.body);
  return {};
}

}  // namespace tollgate::gateway
