#include "services/catalog/domain/catalog_rules.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "common/base/ascii.h"
#include "common/base/crypto.h"
#include "common/base/text.h"
#include "common/base/utc_text.h"
#include "common/base/workspace_id.h"
#include "common/engines/kinds.h"
#include "common/money/money.h"
#include "services/catalog/domain/engine_url.h"

namespace tollgate::catalog {
namespace {

constexpr char kNameRule[] = "must be 1 to 96 letters, digits, dots, hyphens or underscores";
// Far above any real limit, and small enough that no arithmetic on it overflows.
constexpr int64_t kMaxLimit = 1'000'000'000'000;
// Largest weight of an engine; a larger ratio between machines is not plausible.
constexpr int32_t kMaxWeight = 1'000;
// Most models that one request may try; also the ledger's limit.
constexpr size_t kMaxCandidates = 8;

const std::map<std::string, v1::Capability> kCapabilities = {
    {"chat", v1::CAPABILITY_CHAT},           {"completion", v1::CAPABILITY_COMPLETION},
    {"embedding", v1::CAPABILITY_EMBEDDING}, {"vision", v1::CAPABILITY_VISION},
    {"tools", v1::CAPABILITY_TOOLS},         {"reasoning", v1::CAPABILITY_REASONING}};

const std::map<std::string, v1::EngineKind> kEngineKinds = [] {
  std::map<std::string, v1::EngineKind> kinds;
  for (const engines::Kind& kind : engines::All()) kinds.emplace(kind.name, kind.value);
  return kinds;
}();

const std::map<std::string, v1::Priority> kPriorities = {
    {"high", v1::PRIORITY_HIGH}, {"normal", v1::PRIORITY_UNSPECIFIED}, {"low", v1::PRIORITY_LOW}};

// One half of a model id, or the name of a pool or an engine.
bool IsName(std::string_view text) {
  if (text.empty() || text.size() > 96 || !IsAlnum(text.front())) return false;
  return std::all_of(text.begin(), text.end(),
                     [](char c) { return IsAlnum(c) || c == '.' || c == '_' || c == '-'; });
}

template <typename Map>
std::string Names(const Map& map) {
  std::string names;
  for (const auto& entry : map) names += (names.empty() ? "" : ", ") + entry.first;
  return names;
}

template <typename Map>
std::string NotOneOf(const Map& map, const std::string& text) {
  std::vector<std::string> names;
  for (const auto& entry : map) names.push_back(entry.first);
  const std::string close = ClosestName(text, names);
  std::string message = "\"" + text + "\" is not one of " + Names(map);
  if (!close.empty()) message += " (did you mean \"" + close + "\"?)";
  return message;
}

class Builder {
 public:
  Builder(const config::v1::CatalogFile& file, const std::string& brand, const std::string& name,
          const LineOf& line_of)
      : file_(file), brand_(brand), name_(name), line_of_(line_of) {}

  BasicResult<v1::Snapshot, Problems> Build() {
    // Pools first: models refer to them.
    for (int i = 0; i < file_.pools_size(); ++i) AddPool(i);
    for (int i = 0; i < file_.models_size(); ++i) AddModel(i);
    for (int i = 0; i < file_.models_size(); ++i) AddFallbacks(i);
    if (file_.has_unlisted()) AddUnlisted();
    if (!problems_.empty()) return Fail{std::move(problems_)};
    // Deterministic: the messages have no map fields.
    snapshot_.set_digest(HexEncode(Sha256(snapshot_.SerializeAsString())));
    return std::move(snapshot_);
  }

 private:
  void AddProblem(const Location& location, const std::string& what, const std::string& message) {
    std::string text = name_;
    if (const int line = line_of_(location); line > 0) text += ":" + std::to_string(line);
    text += ": " + what + ": ";
    if (!location.field.empty()) text += location.field + ": ";
    problems_.push_back(text + message);
  }

  void AddPool(int index) {
    const config::v1::CatalogPool& from = file_.pools(index);
    const std::string what = from.name().empty() ? "pool number " + std::to_string(index + 1)
                                                 : "pool \"" + from.name() + "\"";
    const auto report = [&](const std::string& field, const std::string& message) {
      AddProblem({.list = "pools", .index = index, .field = field}, what, message);
    };
    if (!IsName(from.name())) {
      report("name", kNameRule);
    } else if (!pools_.insert(from.name()).second) {
      report("name", "is used by two pools");
    }
    if (from.engines_size() == 0) report("engines", "must list at least one engine");
    v1::Pool& pool = *snapshot_.add_pools();
    pool.set_name(from.name());
    for (int i = 0; i < from.engines_size(); ++i) AddEngine(pool, index, i);
  }

  void AddEngine(v1::Pool& pool, int pool_index, int index) {
    const config::v1::CatalogEngine& from = file_.pools(pool_index).engines(index);
    const std::string what = from.id().empty() ? "engine number " + std::to_string(index + 1) +
                                                     " of pool \"" + pool.name() + "\""
                                               : "engine \"" + from.id() + "\"";
    const auto report = [&](const std::string& field, const std::string& message) {
      AddProblem({.list = "pools", .index = pool_index, .engine = index, .field = field}, what,
                 message);
    };
    if (!IsName(from.id())) {
      report("id", kNameRule);
    } else if (!engines_.insert(from.id()).second) {
      report("id", "is used by two engines");
    }
    const auto kind = kEngineKinds.find(from.kind().empty() ? "openai" : from.kind());
    if (kind == kEngineKinds.end()) report("kind", NotOneOf(kEngineKinds, from.kind()));
    if (const std::string bad = EngineUrlProblem(from.base_url()); !bad.empty()) {
      report("base_url", bad);
    }
    if (from.max_concurrency() < 0) report("max_concurrency", "must not be negative");
    const int32_t weight = from.has_weight() ? from.weight() : 1;
    if (weight < 0 || weight > kMaxWeight) {
      report("weight",
             "must be from 0 (only while no other engine can) to " + std::to_string(kMaxWeight));
    }
    if (!from.zone().empty() && !IsName(from.zone())) report("zone", kNameRule);
    v1::Engine& engine = *pool.add_engines();
    engine.set_id(from.id());
    if (kind != kEngineKinds.end()) engine.set_kind(kind->second);
    engine.set_base_url(from.base_url());
    engine.set_api_key(from.api_key());
    engine.set_max_concurrency(from.max_concurrency());
    engine.set_shared_cache(from.shared_cache());
    engine.set_weight(weight);
    engine.set_each_address(from.each_address());
    engine.set_zone(from.zone());
  }

  using ReportFn = std::function<void(const std::string& field, const std::string& message)>;

  void AddModel(int index) {
    const config::v1::CatalogModel& from = file_.models(index);
    const std::string what = from.id().empty() ? "model number " + std::to_string(index + 1)
                                               : "model \"" + from.id() + "\"";
    const ReportFn report = [&](const std::string& field, const std::string& message) {
      AddProblem({.list = "models", .index = index, .field = field}, what, message);
    };
    v1::Model& model = *snapshot_.add_models();
    CheckId(from, report);
    model.set_id(from.id());
    model.set_display_name(from.name().empty() ? from.id() : from.name());
    model.set_description(from.description());
    SetTokenLimits(from, model, report);
    SetPrices(from, model, report);
    SetCapabilities(from, model, report);
    SetMetadata(from, model, report);
    SetPoolAndWorkspace(from, model, report);
    model.set_serving(!from.suspended());
    model.set_engine_model(from.engine_model());
    model.set_allow_chat_template(from.allow_chat_template());
    model.set_keep_system_messages(from.keep_system_messages());
    SetReasoning(from, model, report);
    SetCapacity(from, model, report);
    SetPriority(from, model, report);
    model.set_zero_retention(from.zero_retention());
  }

  // All models must have been added.
  void AddFallbacks(int index) {
    const config::v1::CatalogModel& from = file_.models(index);
    const ReportFn report = [&](const std::string& field, const std::string& message) {
      AddProblem({.list = "models", .index = index, .field = field}, "model \"" + from.id() + "\"",
                 message);
    };
    std::vector<std::string> path = {from.id()};
    std::vector<std::string> found;
    if (!CollectFallbacks(from, path, found, report)) return;
    if (found.size() >= kMaxCandidates) {
      return report("fallbacks", "must lead to at most " + std::to_string(kMaxCandidates - 1) +
                                     " models, their own fall-backs included");
    }
    for (std::string& id : found) snapshot_.mutable_models(index)->add_fallbacks(std::move(id));
  }

  // Collects the fall-backs of a model in the order in which they are tried. path: the models that
  // lead to it. Stops at the first problem.
  bool CollectFallbacks(const config::v1::CatalogModel& from, std::vector<std::string>& path,
                        std::vector<std::string>& found, const ReportFn& report) const {
    for (const std::string& id : from.fallbacks()) {
      const auto model = std::ranges::find(file_.models(), id, &config::v1::CatalogModel::id);
      if (model == file_.models().end()) {
        report("fallbacks", "\"" + id + "\" is not the id of a model in this file");
        return false;
      }
      if (std::ranges::find(path, id) != path.end()) {
        report("fallbacks", "\"" + id + "\" leads back to itself");
        return false;
      }
      if (!IsSubstitute(from, *model)) {
        report("fallbacks", "\"" + id + "\" must generate text as \"" + from.id() +
                                "\" does: both chat or both completion");
        return false;
      }
      if (std::ranges::find(found, id) != found.end()) continue;
      // AddFallbacks refuses more than this.
      if (found.size() >= kMaxCandidates) return true;
      found.push_back(id);
      path.push_back(id);
      if (!CollectFallbacks(*model, path, found, report)) return false;
      path.pop_back();
    }
    return true;
  }

  // Embedding vectors of different models are not comparable, so embeddings have no fall-backs.
  static bool IsSubstitute(const config::v1::CatalogModel& from,
                           const config::v1::CatalogModel& other) {
    return std::ranges::any_of(from.capabilities(), [&](const std::string& capability) {
      return (capability == "chat" || capability == "completion") &&
             std::ranges::find(other.capabilities(), capability) != other.capabilities().end();
    });
  }

  void SetReasoning(const config::v1::CatalogModel& from, v1::Model& model,
                    const ReportFn& report) {
    const bool reasons = std::ranges::count(model.capabilities(), v1::CAPABILITY_REASONING) > 0;
    model.set_reasoning_control(reasons);
    model.set_reasoning_budget(from.reasoning_budget());
    if (from.reasoning_budget() && !reasons) {
      report("reasoning_budget", "needs the capability reasoning");
    }
    for (const v1::Pool& pool : snapshot_.pools()) {
      if (pool.name() != from.pool()) continue;
      for (const v1::Engine& engine : pool.engines()) {
        const engines::Kind& kind = engines::Of(engine.kind());
        if (kind.reasoning == engines::ReasoningControl::kNone) model.set_reasoning_control(false);
        if (!from.reasoning_budget() || !kind.reasoning_budget_member.empty()) continue;
        report("reasoning_budget", "\"" + engine.id() + "\" cannot limit reasoning: its kind is " +
                                       std::string(kind.name));
      }
    }
  }

  static void SetCapacity(const config::v1::CatalogModel& from, v1::Model& model,
                          const ReportFn& report) {
    if (!from.has_capacity()) return;
    const config::v1::CatalogCapacity& limits = from.capacity();
    for (const int64_t value :
         {limits.requests_per_minute(), limits.tokens_per_minute(), limits.concurrent_requests()}) {
      if (value < 0 || value > kMaxLimit) {
        report("capacity", "must hold numbers from 0 (no limit) to 1000000000000");
        return;
      }
    }
    v1::Capacity& capacity = *model.mutable_capacity();
    capacity.set_requests_per_minute(limits.requests_per_minute());
    capacity.set_tokens_per_minute(limits.tokens_per_minute());
    capacity.set_concurrent_requests(limits.concurrent_requests());
    capacity.set_shadow(limits.shadow());
  }

  static void SetPriority(const config::v1::CatalogModel& from, v1::Model& model,
                          const ReportFn& report) {
    const auto found = kPriorities.find(from.priority().empty() ? "normal" : from.priority());
    if (found == kPriorities.end()) {
      return report("priority", NotOneOf(kPriorities, from.priority()));
    }
    model.set_priority(found->second);
  }

  // Adds the terms for ids that the file does not list, as a model without an id.
  void AddUnlisted() {
    config::v1::CatalogModel from;
    from.set_pool(file_.unlisted().pool());
    from.set_context_window(file_.unlisted().context_window());
    from.set_max_output_tokens(file_.unlisted().max_output_tokens());
    from.set_input_usd_per_million(file_.unlisted().input_usd_per_million());
    from.set_output_usd_per_million(file_.unlisted().output_usd_per_million());
    from.add_capabilities("completion");
    const ReportFn report = [&](const std::string& field, const std::string& message) {
      AddProblem({.list = "unlisted", .field = field}, "unlisted", message);
    };
    v1::Model& model = *snapshot_.mutable_unlisted();
    SetTokenLimits(from, model, report);
    SetPrices(from, model, report);
    SetCapabilities(from, model, report);
    SetPoolAndWorkspace(from, model, report);
    model.set_serving(true);
  }

  void CheckId(const config::v1::CatalogModel& from, const ReportFn& report) {
    const std::string& id = from.id();
    const size_t slash = id.find('/');
    if (slash == std::string::npos || !IsName(id.substr(0, slash)) ||
        !IsName(id.substr(slash + 1))) {
      report("id", "must be <namespace>/<model> of letters, digits, dots, hyphens and underscores");
    } else if (id.substr(0, slash) == brand_) {
      report("id", "must not start with \"" + brand_ + "/\": that is the refused legacy form");
    } else if (!models_.insert(id).second) {
      report("id", "is used by two models");
    }
  }

  static void SetTokenLimits(const config::v1::CatalogModel& from, v1::Model& model,
                             const ReportFn& report) {
    if (from.context_window() <= 0) report("context_window", "must be a number of tokens above 0");
    if (from.max_output_tokens() < 0) report("max_output_tokens", "must not be negative");
    if (from.context_window() > 0 && from.max_output_tokens() > from.context_window()) {
      report("max_output_tokens",
             "must not be above context_window (" + std::to_string(from.context_window()) + ")");
    }
    model.set_context_window(from.context_window());
    model.set_max_output_tokens(from.max_output_tokens() > 0 ? from.max_output_tokens()
                                                             : from.context_window());
  }

  static void SetPrices(const config::v1::CatalogModel& from, v1::Model& model,
                        const ReportFn& report) {
    const auto price = [&](const std::string& field, const std::string& text) -> int64_t {
      const auto pico = ParseUsdPerMillionToPico(text);
      if (pico && *pico <= kMaxRatePicoUsd) return *pico;
      report(field, text.empty() ? "is missing (write \"0\" for a free model)"
                                 : "\"" + text +
                                       "\" is not a price in USD per million tokens, at most "
                                       "100000, with at most 6 decimals, such as \"0.15\"");
      return 0;
    };
    auto& rates = *model.mutable_price();
    rates.set_input_pico_usd(price("input_usd_per_million", from.input_usd_per_million()));
    rates.set_output_pico_usd(price("output_usd_per_million", from.output_usd_per_million()));
  }

  static void SetCapabilities(const config::v1::CatalogModel& from, v1::Model& model,
                              const ReportFn& report) {
    std::set<v1::Capability> seen;
    for (const std::string& text : from.capabilities()) {
      const auto found = kCapabilities.find(text);
      if (found == kCapabilities.end()) {
        report("capabilities", NotOneOf(kCapabilities, text));
      } else if (!seen.insert(found->second).second) {
        report("capabilities", "\"" + text + "\" is listed twice");
      } else {
        model.add_capabilities(found->second);
      }
    }
    if (!seen.contains(v1::CAPABILITY_CHAT) && !seen.contains(v1::CAPABILITY_COMPLETION) &&
        !seen.contains(v1::CAPABILITY_EMBEDDING)) {
      report("capabilities", "must hold at least one of chat, completion, embedding");
    }
  }

  static void SetMetadata(const config::v1::CatalogModel& from, v1::Model& model,
                          const ReportFn& report) {
    const std::string& url = from.documentation_url();
    if (!url.empty() && !url.starts_with("https://") && !url.starts_with("http://")) {
      report("documentation_url", "must start with https:// or http://");
    }
    model.set_documentation_url(url);
    if (!from.created().empty()) {
      const auto created = ParseUtcDate(from.created());
      if (!created) report("created", "\"" + from.created() + "\" is not a date YYYY-MM-DD");
      model.set_created_at_s(created.value_or(0) / 1'000'000);
    }
  }

  void SetPoolAndWorkspace(const config::v1::CatalogModel& from, v1::Model& model,
                           const ReportFn& report) {
    if (from.pool().empty()) {
      report("pool", "is missing");
    } else if (!pools_.contains(from.pool())) {
      report("pool", "\"" + from.pool() + "\" is not the name of a pool in this file");
    }
    model.set_pool(from.pool());
    if (!from.workspace().empty() && !IsWorkspaceId(from.workspace())) {
      report("workspace", "\"" + from.workspace() + "\" is not a workspace id");
    }
    model.set_workspace_id(from.workspace());
  }

  const config::v1::CatalogFile& file_;
  const std::string& brand_;
  const std::string& name_;
  const LineOf& line_of_;
  v1::Snapshot snapshot_;
  Problems problems_;
  std::set<std::string> pools_;
  std::set<std::string> engines_;
  std::set<std::string> models_;
};

}  // namespace

BasicResult<v1::Snapshot, Problems> BuildSnapshot(const config::v1::CatalogFile& file,
                                                  const std::string& brand, const std::string& name,
                                                  const LineOf& line_of) {
  return Builder(file, brand, name, line_of).Build();
}

void SetVersion(v1::Snapshot& snapshot, int64_t version) {
  snapshot.set_version(version);
  for (v1::Model& model : *snapshot.mutable_models()) model.mutable_price()->set_version(version);
  if (snapshot.has_unlisted()) {
    snapshot.mutable_unlisted()->mutable_price()->set_version(version);
  }
}

}  // namespace tollgate::catalog
