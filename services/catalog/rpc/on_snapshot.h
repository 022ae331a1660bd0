// Serves admin calls of the catalog from the latest snapshot (an executor of
// common/admin/handle.h).
#pragma once

#include "common/admin/handle.h"
#include "services/catalog/rpc/catalog_publisher.h"

namespace tollgate::catalog {

// Answers immediately, because the snapshot is in memory.
struct OnSnapshot {
  using Given = const v1::Snapshot;
  const CatalogPublisher& publisher;

  template <typename Work>
  void Run(grpc::CallbackServerContext*, const admin::Call& call, const Work& work) const {
    const auto current = publisher.current();
    if (!current) return call.Refuse(Unavailable("the catalog is starting").error);
    call.Finish(work(current->snapshot()));
  }
};

}  // namespace tollgate::catalog
