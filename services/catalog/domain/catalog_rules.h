// From the operator's catalog.yaml to the snapshot that everybody gets: every rule that a catalog
// must keep stands here. Pure: text in, snapshot or complaints out. spec: gateway-spec.md "Model
// catalog entry".
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "common/base/result.h"
#include "tollgate/catalog/v1/catalog.pb.h"
#include "tollgate/config/v1/config.pb.h"

namespace tollgate::catalog {

// Where things stand in the file, for complaints: the line of a field of models[i] or
// pools[i].engines[j], or of unlisted; of the whole item when the field is not written there, 0
// when unknown.
struct Place {
  std::string list;  // "models", "pools" or "unlisted", which is no list
  int index = 0;
  int engine = -1;  // of a pool's engines; -1: not an engine
  std::string field;
};
using LineOf = std::function<int(const Place&)>;

// All complaints at once, one line each: "catalog.yaml:12: model \"a/b\": pool: …".
using Complaints = std::vector<std::string>;

// Checks the file's content and builds its snapshot; version is still 0 and the digest covers
// everything else. brand: model ids <brand>/… are the refused legacy form.
BasicResult<v1::Snapshot, Complaints> BuildSnapshot(const config::v1::CatalogFile& file,
                                                    const std::string& brand,
                                                    const std::string& name, const LineOf& line_of);

// Puts the version in: on the snapshot and on every price.
void SetVersion(v1::Snapshot& snapshot, int64_t version);

}  // namespace tollgate::catalog
