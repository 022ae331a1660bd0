// Reads the operator's catalog file: strict YAML, then the rules of catalog_rules.h, with the line
// of every complaint.
#pragma once

#include <string>

#include "services/catalog/domain/catalog_rules.h"

namespace tollgate::catalog {

// Reads and checks a file. text is its content, base_dir where ${file:…} starts.
BasicResult<v1::Snapshot, Complaints> ReadCatalog(const std::string& text, const std::string& name,
                                                  const std::string& base_dir,
                                                  const std::string& brand);

}  // namespace tollgate::catalog
