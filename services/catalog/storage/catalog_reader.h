// Parses the catalog file as strict YAML, refuses one without models that does not say so, and
// applies the rules of domain/catalog_rules.h. Every problem has its line number.
#pragma once

#include <string>

#include "services/catalog/domain/catalog_rules.h"

namespace tollgate::catalog {

// text: the content of the file. name: shown in problems. base_dir: folder to which ${file:…} is
// relative.
BasicResult<v1::Snapshot, Problems> ReadCatalog(const std::string& text, const std::string& name,
                                                const std::string& base_dir,
                                                const std::string& brand);

}  // namespace tollgate::catalog
