// EngineAdminService: reports what this router knows of its engines, and drains and resumes them.
#pragma once

#include <functional>
#include <memory>

#include "common/base/clock.h"
#include "common/rpc/server.h"
#include "services/inference_router/admin/drained_engines.h"
#include "tollgate/inference/v1/engines.grpc.pb.h"

namespace tollgate::inference_router {

class EngineAdminRpc : public inference::v1::EngineAdminService::CallbackService {
 public:
  using TableSource = std::function<std::shared_ptr<const RoutingTable>()>;
  // drained and clock must outlive this object. The table is null until there is a catalog.
  EngineAdminRpc(TableSource table, DrainedEngines& drained, const Clock& clock)
      : table_(std::move(table)), drained_(drained), clock_(clock) {}

  grpc::ServerUnaryReactor* ReadEngines(grpc::CallbackServerContext* context,
                                        const inference::v1::ReadEnginesRequest* request,
                                        inference::v1::ReadEnginesResponse* response) override;
  grpc::ServerUnaryReactor* SetDrain(grpc::CallbackServerContext* context,
                                     const inference::v1::SetDrainRequest* request,
                                     inference::v1::SetDrainResponse* response) override;
  // Waits for a call that is writing the file. Later calls do not write it.
  void Stop() { writers_.Stop(); }

 private:
  const TableSource table_;
  DrainedEngines& drained_;
  const Clock& clock_;
  rpc::ThreadPool writers_{1, 100, "drain"};  // writing the file blocks
};

}  // namespace tollgate::inference_router
