#include "gateway/worker/catalog_view.h"

#include <algorithm>

namespace tollgate::gateway {

CatalogView::CatalogView(catalog::v1::Snapshot snapshot) : snapshot_(std::move(snapshot)) {
  for (const catalog::v1::Model& model : snapshot_.models()) by_id_.emplace(model.id(), &model);
}

const catalog::v1::Model* CatalogView::Find(std::string_view id) const {
  const auto found = by_id_.find(id);
  return found == by_id_.end() ? nullptr : found->second;
}

bool HasCapability(const catalog::v1::Model& model, catalog::v1::Capability capability) {
  return std::find(model.capabilities().begin(), model.capabilities().end(), capability) !=
         model.capabilities().end();
}

}  // namespace tollgate::gateway
