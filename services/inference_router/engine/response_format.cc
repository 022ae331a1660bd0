#include "services/inference_router/engine/response_format.h"

#include "common/engines/kinds.h"
#include "common/json/json.h"
#include "services/inference_router/engine/request_members.h"

namespace tollgate::inference_router {
namespace {

constexpr std::string_view kMember = "response_format";

// The schema of an object of any form.
constexpr std::string_view kAnyObject = R"({"type":"object"})";

// The schema for `value`; empty: the format is sent unchanged.
std::string SchemaOf(const json::Value& format) {
  if (!format.is_object() || format.Find("value")) return "";
  if (format.Find("type").StringEquals("json_object")) return std::string(kAnyObject);
  if (!format.Find("type").StringEquals("json_schema")) return "";
  const json::Value schema = format.Find("json_schema").Find("schema");
  return std::string(schema.is_object() ? schema.raw() : kAnyObject);
}

}  // namespace

std::optional<std::string> FitResponseFormat(catalog::v1::EngineKind kind,
                                             std::string_view members) {
  if (!engines::Of(kind).schema_as_value) return std::nullopt;
  // Clients do not write this name with escapes.
  if (members.find(kMember) == std::string_view::npos) return std::nullopt;
  const auto document = ParseMembers(members);
  if (!document.ok()) return std::nullopt;
  const json::Value format = document->root().Find(kMember);
  const std::string schema = SchemaOf(format);
  if (schema.empty()) return std::nullopt;
  std::string out = std::string(members);
  // The offset includes the brace before the members.
  out.replace(format.offset() - 1, format.raw().size(),
              R"({"type":"json_object","value":)" + schema + "}");
  return out;
}

}  // namespace tollgate::inference_router
