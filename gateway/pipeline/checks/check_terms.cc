#include "gateway/pipeline/checks/check_terms.h"

#include <algorithm>
#include <string>
#include <vector>

#include "common/base/ascii.h"
#include "common/base/try.h"
#include "common/json/member_name.h"
#include "common/money/money.h"
#include "gateway/worker/supported_parameters.h"

namespace tollgate::gateway {

namespace {

Fail<Error> NotOurs(const std::string& brand, const std::string& member) {
  return BadRequest("'" + member + "' leaves no provider: the only one here is '" + brand + "'.",
                    member);
}

Result<void> CheckPrice(const catalog::v1::Model& model, int64_t price_pico_usd,
                        const std::optional<int64_t>& most_pico_usd, const std::string& name) {
  if (!most_pico_usd || price_pico_usd <= *most_pico_usd) return {};
  const std::string member = "provider.max_price." + name;
  return BadRequest("The model '" + model.id() + "' costs " +
                        PicoPerTokenToUsdPerMillion(price_pico_usd) + " USD per million " + name +
                        " tokens, more than '" + member + "' allows.",
                    member);
}

}  // namespace

Result<void> CheckProviderNames(const RequestContext& context) {
  const ProviderTerms& terms = context.canonical.provider;
  if (terms.order.empty() && terms.only.empty() && terms.ignore.empty()) return {};
  const std::string& brand = context.worker.options.brand;
  const auto lower = [](char c) { return IsUpper(c) ? static_cast<char>(c - 'A' + 'a') : c; };
  const auto holds = [&](const std::vector<std::string>& names) {
    return std::ranges::any_of(names, [&](const std::string& name) {
      return std::ranges::equal(name, brand, {}, lower, lower);
    });
  };
  if (!terms.only.empty() && !holds(terms.only)) return NotOurs(brand, "provider.only");
  if (!terms.order.empty() && !holds(terms.order)) return NotOurs(brand, "provider.order");
  if (holds(terms.ignore)) return NotOurs(brand, "provider.ignore");
  return {};
}

Result<void> CheckTerms(const RequestContext& context) {
  const ProviderTerms& terms = context.canonical.provider;
  const catalog::v1::Model& model = *context.model;
  const auto& price = model.price();
  TRY(CheckPrice(model, price.input_pico_usd(), terms.max_input_pico_usd, "prompt"));
  // Embeddings have no output.
  const bool generates = context.canonical.kind != inference::v1::REQUEST_KIND_EMBEDDING;
  TRY(CheckPrice(model, generates ? price.output_pico_usd() : 0, terms.max_output_pico_usd,
                 "completion"));
  if (!terms.no_retention.empty() && !model.zero_retention()) {
    return BadRequest("The catalog does not say that the engines of the model '" + model.id() +
                          "' keep neither prompts nor answers, as '" +
                          std::string(terms.no_retention) + "' asks.",
                      std::string(terms.no_retention));
  }
  if (!terms.require_parameters) return {};
  for (const std::string& name : context.canonical.parameters) {
    if (SupportsParameter(model, name)) continue;
    return BadRequest("The model '" + model.id() + "' is not known to support " +
                          (json::IsShown(name) ? "'" + name + "'" : "a member of the request") +
                          ", which 'provider.require_parameters' asks for.",
                      "provider.require_parameters");
  }
  return {};
}

}  // namespace tollgate::gateway
