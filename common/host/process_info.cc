#include "common/host/process_info.h"

#include "common/base/id.h"

namespace tollgate::host {

ProcessStart::ProcessStart(std::string service_name, int64_t now_us)
    : id(Id::New().ToHex()), service(std::move(service_name)), start_us(now_us) {}

grpc::ServerUnaryReactor* ProcessInfoRpc::GetProcessInfo(
    grpc::CallbackServerContext* context, const common::v1::GetProcessInfoRequest*,
    common::v1::GetProcessInfoResponse* response) {
  response->set_id(start_.id);
  response->set_service(start_.service);
  response->set_version(TOLLGATE_VERSION);
  response->set_start_us(start_.start_us);
  for (const auto& [part, ready] : ready_()) {
    if (!ready) response->add_not_ready(part);
  }
  response->set_now_us(clock_.WallUs());
  response->set_ready(response->not_ready_size() == 0);
  grpc::ServerUnaryReactor* reactor = context->DefaultReactor();
  reactor->Finish(grpc::Status::OK);
  return reactor;
}

}  // namespace tollgate::host
