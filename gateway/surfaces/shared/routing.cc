#include "gateway/surfaces/shared/routing.h"

#include <algorithm>
#include <initializer_list>
#include <set>
#include <utility>

#include "common/base/try.h"
#include "common/json/member_name.h"
#include "common/money/money.h"

namespace tollgate::gateway {

namespace {

// Limit on the models of one request, including the first; the ledger has the same limit.
constexpr size_t kMaxModels = 8;
// Limit on the listed models, including duplicates.
constexpr size_t kMaxListed = 64;
constexpr size_t kMaxNames = 64;
constexpr const char* kUnsupported = "is not supported.";

Fail<Error> Bad(const std::string& member, const std::string& problem) {
  return BadRequest("'" + member + "' " + problem, member);
}

std::string ItemName(std::string_view list, size_t index) {
  return std::string(list) + "[" + std::to_string(index) + "]";
}

bool IsOneOf(json::Value value, std::initializer_list<std::string_view> texts) {
  return std::ranges::any_of(texts, [&](auto text) { return value.StringEquals(text); });
}

Result<void> ReadModels(json::Value models, CanonicalRequest& request) {
  if (models.is_null()) return {};
  if (request.kind == inference::v1::REQUEST_KIND_EMBEDDING) {
    return Bad("models",
               "is not supported for embeddings: vectors of two models cannot be compared.");
  }
  if (!models.is_array()) return Bad("models", "must be an array of model ids.");
  const std::string too_many =
      "may hold at most " + std::to_string(kMaxModels) + " different ids, 'model' included.";
  if (models.size() > kMaxListed) return Bad("models", too_many);
  std::set<std::string> seen = {request.model};
  size_t index = 0;
  for (const json::Value item : models) {
    std::string member = ItemName("models", index++);
    if (!item.is_string() || item.raw_string().empty()) {
      return Bad(member, "must be the id of a model.");
    }
    std::string id = item.string();
    if (!seen.insert(id).second) {
      // The first one listed, when `model` is absent.
      if (id == request.model && request.model_member.empty()) request.model_member = member;
      continue;
    }
    request.fallbacks.push_back({std::move(id), std::move(member)});
    if (request.fallbacks.size() >= kMaxModels) return Bad("models", too_many);
  }
  return {};
}

Result<std::vector<std::string>> ReadNames(json::Value list, const std::string& member) {
  std::vector<std::string> names;
  if (!list.is_array() || list.size() > kMaxNames) {
    return Bad(member, "must be an array of at most " + std::to_string(kMaxNames) + " names.");
  }
  for (const json::Value item : list) {
    if (!item.is_string()) return Bad(ItemName(member, names.size()), "must be a string.");
    names.push_back(item.string());
  }
  return names;
}

// Returns a number as it was written, or a text.
std::string_view Decimal(json::Value value) {
  return value.is_number() ? value.raw() : value.is_string() ? value.raw_string() : "";
}

Result<void> ReadMaxPrice(json::Value prices, ProviderTerms& terms) {
  if (!prices.is_object()) return Bad("provider.max_price", "must be an object of prices.");
  for (const json::Value price : prices) {
    const std::string name = price.key();
    const std::string member = json::MemberName("provider.max_price", name);
    const bool is_input = name == "prompt";
    const bool is_output = name == "completion";
    // Tollgate charges only per token, so any limit on the other prices is met.
    const bool is_free = name == "request" || name == "image" || name == "audio";
    if (!is_input && !is_output && !is_free) return Bad(member, kUnsupported);
    if (price.is_null()) continue;
    const auto pico_usd = ParseUsdPerMillionDownToPico(Decimal(price));
    if (!pico_usd) {
      return Bad(member, "must be a price in USD (per million tokens), a number or decimal text.");
    }
    if (is_input) terms.max_input_pico_usd = pico_usd;
    if (is_output) terms.max_output_pico_usd = pico_usd;
  }
  return {};
}

// With one provider there is nothing to sort within a model, and the caller sets the order of
// models.
Result<void> CheckSort(json::Value sort) {
  const json::Value by = sort.is_object() ? sort.Find("by") : sort;
  const bool has_by = by || !sort.is_object();
  if (has_by && !by.is_null() && !IsOneOf(by, {"price", "throughput", "latency"})) {
    return Bad("provider.sort", "must be price, throughput or latency.");
  }
  if (!sort.is_object()) return {};
  for (const json::Value member : sort) {
    if (member.KeyEquals("by") || member.is_null()) continue;
    if (!member.KeyEquals("partition")) {
      return Bad(json::MemberName("provider.sort", member.key()), kUnsupported);
    }
    if (!member.StringEquals("model")) {
      return Bad("provider.sort.partition",
                 "must be model: models are tried in the order in which they are listed.");
    }
  }
  return {};
}

// A preference that only orders providers: a number, or an object of numbers by percentile.
Result<void> CheckPreference(json::Value value, const std::string& member) {
  const auto is_wish = [](json::Value number) {
    const auto read = number.Number();
    return number.is_number() && read && *read >= 0;
  };
  if (is_wish(value)) return {};
  if (!value.is_object())
    return Bad(member, "must be a number that is not negative, or an object.");
  for (const json::Value number : value) {
    const bool known = number.KeyEquals("p50") || number.KeyEquals("p75") ||
                       number.KeyEquals("p90") || number.KeyEquals("p99");
    if (!known || (!number.is_null() && !is_wish(number))) {
      return Bad(json::MemberName(member, number.key()), kUnsupported);
    }
  }
  return {};
}

Result<void> CheckQuantizations(json::Value list, const std::string& member) {
  if (!list.is_array()) return Bad(member, "must be an array.");
  bool unknown = list.size() == 0;
  for (const json::Value item : list) {
    if (!item.is_string()) return Bad(member, "must be an array of strings.");
    unknown = unknown || item.StringEquals("unknown");
  }
  if (unknown) return {};
  return Bad(member, "must hold unknown: the catalog does not say how models are quantized.");
}

Result<void> ReadFlag(json::Value value, const std::string& member, bool& into) {
  if (!value.is_bool()) return Bad(member, "must be true or false.");
  into = value.boolean();
  return {};
}

Result<void> ReadTerm(json::Value value, ProviderTerms& terms) {
  const std::string name = value.key();
  const std::string member = json::MemberName("provider", name);
  const auto names = [&](std::vector<std::string>& into) -> Result<void> {
    TRY(auto read, ReadNames(value, member));
    into = std::move(read);
    return {};
  };
  if (name == "allow_fallbacks") return ReadFlag(value, member, terms.allow_fallbacks);
  if (name == "require_parameters") return ReadFlag(value, member, terms.require_parameters);
  if (name == "order") return names(terms.order);
  if (name == "only") return names(terms.only);
  if (name == "ignore") return names(terms.ignore);
  if (name == "sort") return CheckSort(value);
  if (name == "max_price") return ReadMaxPrice(value, terms);
  if (name == "quantizations") return CheckQuantizations(value, member);
  if (name == "preferred_min_throughput" || name == "preferred_max_latency") {
    return CheckPreference(value, member);
  }
  if (name == "zdr") {
    bool wanted = false;
    TRY(ReadFlag(value, member, wanted));
    if (wanted) terms.no_retention = "provider.zdr";
    return {};
  }
  if (name == "data_collection") {
    if (!IsOneOf(value, {"allow", "deny"})) return Bad(member, "must be allow or deny.");
    if (value.StringEquals("deny") && terms.no_retention.empty()) {
      terms.no_retention = "provider.data_collection";
    }
    return {};
  }
  if (name == "enforce_distillable_text") {
    bool wanted = false;
    TRY(ReadFlag(value, member, wanted));
    if (wanted)
      return Bad(member, "cannot be true: the catalog does not say what may be distilled.");
    return {};
  }
  return Bad(member, kUnsupported);
}

Result<void> ReadProvider(json::Value provider, ProviderTerms& terms) {
  if (provider.is_null()) return {};
  if (!provider.is_object()) return Bad("provider", "must be an object.");
  for (const json::Value value : provider) {
    // Null counts as absent, even for an unknown name.
    if (value.is_null()) continue;
    TRY(ReadTerm(value, terms));
  }
  return {};
}

// Accepts only an empty list.
Result<void> CheckEmpty(json::Value list, const std::string& member, const std::string& why) {
  if (list.is_null()) return {};
  if (!list.is_array()) return Bad(member, "must be an array.");
  return list.size() == 0 ? Result<void>() : Bad(member, "must be empty: " + why);
}

// Members that are not parameters of the model.
constexpr std::string_view kNoParameters[] = {"model",
                                              "models",
                                              "provider",
                                              "route",
                                              "transforms",
                                              "plugins",
                                              "messages",
                                              "prompt",
                                              "input",
                                              "instructions",
                                              "system",
                                              "stream",
                                              "stream_options",
                                              "user",
                                              "metadata",
                                              "store",
                                              "include",
                                              "truncation",
                                              "background",
                                              "usage",
                                              "service_tier",
                                              "safety_identifier",
                                              "prompt_cache_key",
                                              "prompt_cache_retention",
                                              "cache_salt",
                                              "cache_control",
                                              "client_metadata",
                                              "session_id",
                                              "betas",
                                              "anthropic_beta",
                                              "anthropic_version"};

// Parameters that have other names on other surfaces.
constexpr std::pair<std::string_view, std::string_view> kOtherNames[] = {
    {"stop_sequences", "stop"},           {"thinking", "reasoning"},
    {"max_output_tokens", "max_tokens"},  {"functions", "tools"},
    {"function_call", "tool_choice"},     {"output_config", "response_format"},
    {"output_format", "response_format"}, {"text", "response_format"}};

std::vector<std::string> ParametersOf(json::Value body) {
  std::vector<std::string> names;
  for (const json::Value member : body) {
    if (member.is_null()) continue;
    std::string name = member.key();
    if (std::ranges::find(kNoParameters, name) != std::end(kNoParameters)) continue;
    for (const auto& [other, ours] : kOtherNames) {
      if (name == other) name = ours;
    }
    names.push_back(std::move(name));
  }
  return names;
}

}  // namespace

Result<std::string> ReadModel(json::Value body) {
  if (!body.is_object()) return BadRequest("The request body must be a JSON object.");
  const json::Value model = body.Find("model");
  if (model.is_null()) {
    const json::Value models = body.Find("models");
    if (models.is_array() && models.size() > 0) {
      const json::Value first = *models.begin();
      if (!first.is_string() || first.raw_string().empty()) {
        return Bad("models[0]", "must be the id of a model.");
      }
      return first.string();
    }
    return BadRequest("Missing required parameter: 'model'.", "model");
  }
  if (!model.is_string()) return BadRequest("'model' must be a string.", "model");
  return model.string();
}

Result<void> ReadRouting(json::Value body, CanonicalRequest& request) {
  if (!body.Find("model").is_null()) request.model_member = "model";
  TRY(ReadModels(body.Find("models"), request));
  TRY(ReadProvider(body.Find("provider"), request.provider));
  const json::Value route = body.Find("route");
  if (!route.is_null() && !route.StringEquals("fallback")) {
    return Bad("route", "must be fallback.");
  }
  TRY(CheckEmpty(body.Find("transforms"), "transforms", "prompts are not changed."));
  TRY(CheckEmpty(body.Find("plugins"), "plugins", "there are none."));
  if (request.provider.require_parameters) request.parameters = ParametersOf(body);
  return {};
}

}  // namespace tollgate::gateway
