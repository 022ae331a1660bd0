// Who may call the methods of catalog between processes (common/rpc/callers.h). The API keys of
// engines go to inference routers only (catalog_rpc.h).
#pragma once

#include "common/rpc/callers.h"

namespace tollgate::catalog {

inline constexpr rpc::CallerSet kReaders = rpc::kGateway | rpc::kInferenceRouter;
inline constexpr rpc::MethodCallers kCallers[] = {
    {"tollgate.catalog.v1.CatalogService/WatchCatalog", kReaders},
    {"tollgate.catalog.v1.CatalogService/GetCatalog", kReaders},
};

}  // namespace tollgate::catalog
