#include "gateway/handlers/model_list.h"

#include <algorithm>
#include <vector>

#include "common/base/crypto.h"
#include "common/json/writer.h"
#include "gateway/handlers/model_entry.h"
#include "gateway/worker/key_rules.h"

namespace tollgate::gateway {

namespace {

namespace catalog_pb = catalog::v1;

bool IsVisible(const catalog_pb::Model& model, const auth::v1::Key* key) {
  if (!model.workspace_id().empty() &&
      (key == nullptr || key->workspace_id() != model.workspace_id())) {
    return false;
  }
  return key == nullptr || AllowsModel(*key, model.id());
}

}  // namespace

std::string RenderModelList(const catalog_pb::Snapshot& snapshot, const auth::v1::Key* key) {
  std::vector<const catalog_pb::Model*> visible;
  for (const catalog_pb::Model& model : snapshot.models()) {
    if (IsVisible(model, key)) visible.push_back(&model);
  }
  const auto id_or_null = [&](bool first) {
    if (visible.empty()) return std::string("null");
    return json::Quoted((first ? visible.front() : visible.back())->id());
  };
  return json::Writer()
      .Text("object", "list")
      .Raw("data",
           json::WriteArray(
               visible, [](const catalog_pb::Model* model) { return RenderModelEntry(*model); }))
      // Pagination of OpenRouter-style and Messages clients: one page holds the whole list.
      .Raw("links", json::Writer().Null("next").Done())
      .Number("total_count", static_cast<int64_t>(visible.size()))
      .Flag("has_more", false)
      .Raw("first_id", id_or_null(true))
      .Raw("last_id", id_or_null(false))
      .Done();
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
    if (item.starts_with("W/")) item.remove_prefix(2);  // weak comparison, as required for GET
    if (item == "*" || item == tag) return true;
  }
  return false;
}

}  // namespace tollgate::gateway
