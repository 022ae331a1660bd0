#include "gateway/surfaces/models/model_list.h"

#include <algorithm>
#include <ctime>
#include <vector>

#include "common/base/crypto.h"
#include "common/json/json.h"
#include "common/money/money.h"

namespace tollgate::gateway {

namespace {

namespace pb = catalog::v1;

std::string_view CapabilityName(int capability) {
  switch (capability) {
    case pb::CAPABILITY_CHAT:
      return "chat";
    case pb::CAPABILITY_COMPLETION:
      return "completion";
    case pb::CAPABILITY_EMBEDDING:
      return "embedding";
    case pb::CAPABILITY_VISION:
      return "vision";
    case pb::CAPABILITY_TOOLS:
      return "tools";
    case pb::CAPABILITY_REASONING:
      return "reasoning";
    default:
      return {};
  }
}

bool MaySee(const pb::Model& model, const auth::v1::Key* key) {
  if (!model.workspace_id().empty() &&
      (key == nullptr || key->workspace_id() != model.workspace_id())) {
    return false;
  }
  if (key == nullptr || key->allowed_models().empty()) return true;
  return std::find(key->allowed_models().begin(), key->allowed_models().end(), model.id()) !=
         key->allowed_models().end();
}

// RFC 3339 in UTC.
std::string Timestamp(int64_t unix_s) {
  const std::time_t time = unix_s;
  std::tm parts{};
  gmtime_r(&time, &parts);
  char text[32];
  std::strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

void Member(std::string& out, std::string_view name, std::string_view raw) {
  if (out.back() != '{') out += ",";
  json::AppendQuoted(out, name);
  out += ":";
  out += raw;
}

// Rates per million tokens are numbers, printed from integers; rates per token are strings, as the
// consumers of those two names expect (wire.md 8, conflict a).
std::string Pricing(const tollgate::common::v1::Price& price) {
  std::string out = "{";
  Member(out, "input", PicoPerTokenToUsdPerMillion(price.input_pico_usd()));
  Member(out, "output", PicoPerTokenToUsdPerMillion(price.output_pico_usd()));
  Member(out, "currency", "\"USD\"");
  Member(out, "unit", "\"per_million_tokens\"");
  Member(out, "prompt", json::Quoted(PicoPerTokenToUsdPerToken(price.input_pico_usd())));
  Member(out, "completion", json::Quoted(PicoPerTokenToUsdPerToken(price.output_pico_usd())));
  return out + "}";
}

std::string Capabilities(const pb::Model& model) {
  std::string out = "[";
  for (const int capability : model.capabilities()) {
    const std::string_view name = CapabilityName(capability);
    if (name.empty()) continue;
    if (out.size() > 1) out += ",";
    json::AppendQuoted(out, name);
  }
  return out + "]";
}

std::string Entry(const pb::Model& model) {
  std::string out = "{";
  Member(out, "id", json::Quoted(model.id()));
  Member(out, "object", "\"model\"");
  Member(out, "created", std::to_string(model.created_at_s()));
  Member(out, "owned_by", json::Quoted(model.id().substr(0, model.id().find('/'))));
  // What the Messages family's clients read (wire.md 8).
  const std::string& name = model.display_name().empty() ? model.id() : model.display_name();
  Member(out, "type", "\"model\"");
  Member(out, "display_name", json::Quoted(name));
  Member(out, "created_at", json::Quoted(Timestamp(model.created_at_s())));
  if (!model.description().empty()) Member(out, "description", json::Quoted(model.description()));
  Member(out, "context_window", std::to_string(model.context_window()));
  Member(out, "context_length", std::to_string(model.context_window()));
  const int64_t output =
      model.max_output_tokens() > 0 ? model.max_output_tokens() : model.context_window();
  Member(out, "max_output_tokens", std::to_string(output));
  if (output < model.context_window()) {
    Member(out, "max_input_tokens", std::to_string(model.context_window() - output));
  }
  Member(out, "pricing", Pricing(model.price()));
  Member(out, "capabilities", Capabilities(model));
  std::string links = "{";
  if (!model.documentation_url().empty()) {
    Member(links, "documentation", json::Quoted(model.documentation_url()));
  }
  Member(out, "links", links + "}");
  return out + "}";
}

}  // namespace

std::string RenderModelList(const pb::Snapshot& snapshot, const auth::v1::Key* key) {
  std::vector<const pb::Model*> visible;
  for (const pb::Model& model : snapshot.models()) {
    if (MaySee(model, key)) visible.push_back(&model);
  }
  std::string data = "[";
  for (const pb::Model* model : visible) {
    if (data.size() > 1) data += ",";
    data += Entry(*model);
  }
  data += "]";
  std::string out = "{";
  Member(out, "object", "\"list\"");
  Member(out, "data", data);
  Member(out, "has_more", "false");
  Member(out, "first_id", visible.empty() ? "null" : json::Quoted(visible.front()->id()));
  Member(out, "last_id", visible.empty() ? "null" : json::Quoted(visible.back()->id()));
  return out + "}";
}

std::string EntityTag(std::string_view body) {
  return "\"" + HexEncode(Sha256(body).substr(0, 16)) + "\"";
}

bool MatchesTag(std::string_view header, std::string_view tag) {
  while (!header.empty()) {
    const size_t comma = header.find(',');
    std::string_view item = header.substr(0, comma);
    header = comma == std::string_view::npos ? std::string_view() : header.substr(comma + 1);
    while (!item.empty() && (item.front() == ' ' || item.front() == '\t')) item.remove_prefix(1);
    while (!item.empty() && (item.back() == ' ' || item.back() == '\t')) item.remove_suffix(1);
    if (item.starts_with("W/")) item.remove_prefix(2);  // compared weakly, as GET wants
    if (item == "*" || item == tag) return true;
  }
  return false;
}

}  // namespace tollgate::gateway
