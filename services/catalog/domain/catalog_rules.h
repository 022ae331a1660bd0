// Validates the operator's catalog.yaml and builds the snapshot for gateways, routers and
// dashboards: model ids, prices, limits, capabilities, pools and engines. Pure. See
// docs/contract.md "Model catalog entry".
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "tollgate/catalog/v1/catalog.pb.h"
#include "tollgate/config/v1/config.pb.h"

namespace tollgate::catalog {

// An item and a field of the file, for finding the line of a problem.
struct Location {
  std::string list;  // "models", "pools" or "unlisted" (a single item)
  int index = 0;     // in the list
  int engine = -1;   // index in the engines of a pool; -1: the item is not an engine
  std::string field;
};
// The line of the field, or of its item when the field is absent; 0 when unknown.
using LineOf = std::function<int(const Location&)>;

// All problems of a file, one line each: "catalog.yaml:12: model \"a/b\": pool: …".
using Problems = std::vector<std::string>;

// Validates the content of a file and builds its snapshot, with version 0 and a digest over
// everything else. name: the file, for problems. brand: model ids <brand>/… are the legacy form and
// are refused.
BasicResult<v1::Snapshot, Problems> BuildSnapshot(const config::v1::CatalogFile& file,
                                                  const std::string& brand, const std::string& name,
                                                  const LineOf& line_of);

// Sets the version of the snapshot and of every price in it.
void SetVersion(v1::Snapshot& snapshot, int64_t version);

}  // namespace tollgate::catalog
