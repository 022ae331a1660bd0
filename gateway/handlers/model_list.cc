#include "gateway/handlers/model_list.h"

#include <algorithm>
#include <vector>

#include "common/base/crypto.h"
#include "common/json/json.h"
#include "gateway/handlers/model_entry.h"
#include "gateway/surfaces/shared/fields.h"

namespace tollgate::gateway {

namespace {

namespace pb = catalog::v1;

bool MaySee(const pb::Model& model, const auth::v1::Key* key) {
  if (!model.workspace_id().empty() &&
      (key == nullptr || key->workspace_id() != model.workspace_id())) {
    return false;
  }
  if (key == nullptr || key->allowed_models().empty()) return true;
  return std::find(key->allowed_models().begin(), key->allowed_models().end(), model.id()) !=
         key->allowed_models().end();
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
    data += RenderModelEntry(*model);
  }
  MemberWriter out({});
  out.Add("object", "\"list\"");
  out.Add("data", data + "]");
  // The whole list, in the words of OpenRouter-style and Messages-style pages.
  out.Add("links", R"({"next":null})");
  out.Add("total_count", std::to_string(visible.size()));
  out.Add("has_more", "false");
  out.Add("first_id", visible.empty() ? "null" : json::Quoted(visible.front()->id()));
  out.Add("last_id", visible.empty() ? "null" : json::Quoted(visible.back()->id()));
  return "{" + out.Take() + "}";
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
