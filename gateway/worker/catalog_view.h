// An immutable, indexed snapshot of the catalog. A request keeps the snapshot it started with, so
// its prices and limits cannot change while it runs (decision 5).
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>

#include "tollgate/catalog/v1/catalog.pb.h"

namespace tollgate::gateway {

class CatalogView {
 public:
  explicit CatalogView(catalog::v1::Snapshot snapshot);
  CatalogView(const CatalogView&) = delete;
  CatalogView& operator=(const CatalogView&) = delete;

  // Matches exactly and case-sensitively; null for an unknown id.
  const catalog::v1::Model* Find(std::string_view id) const;
  const catalog::v1::Snapshot& snapshot() const { return snapshot_; }

 private:
  catalog::v1::Snapshot snapshot_;
  std::unordered_map<std::string_view, const catalog::v1::Model*> by_id_;
};

using CatalogPtr = std::shared_ptr<const CatalogView>;

bool HasCapability(const catalog::v1::Model& model, catalog::v1::Capability capability);

}  // namespace tollgate::gateway
