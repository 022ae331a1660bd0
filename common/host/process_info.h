// ProcessInfoService: information about this process, on each of its gRPC servers.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "common/base/clock.h"
#include "common/rpc/callers.h"
#include "tollgate/common/v1/process.grpc.pb.h"

namespace tollgate::host {

inline constexpr rpc::MethodCallers kProcessInfoCallers = {
    "tollgate.common.v1.ProcessInfoService/*", rpc::kAdmins};

struct ProcessStart {
  // Generates a random id.
  ProcessStart(std::string service_name, int64_t now_us);

  std::string id;
  std::string service;
  int64_t start_us = 0;
};

class ProcessInfoRpc : public common::v1::ProcessInfoService::CallbackService {
 public:
  // Name and readiness of each module. Called from any thread.
  using ReadyReport = std::function<std::vector<std::pair<std::string, bool>>()>;
  ProcessInfoRpc(ProcessStart start, ReadyReport ready, const Clock& clock)
      : start_(std::move(start)), ready_(std::move(ready)), clock_(clock) {}

  grpc::ServerUnaryReactor* GetProcessInfo(grpc::CallbackServerContext* context,
                                           const common::v1::GetProcessInfoRequest* request,
                                           common::v1::GetProcessInfoResponse* response) override;

 private:
  const ProcessStart start_;
  const ReadyReport ready_;
  const Clock& clock_;
};

}  // namespace tollgate::host
