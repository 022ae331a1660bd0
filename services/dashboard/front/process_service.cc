#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "common/rpc/channel.h"
#include "services/dashboard/front/ask_all.h"
#include "services/dashboard/front/services.h"
#include "tollgate/admin/v1/processes.grpc.pb.h"
#include "tollgate/common/v1/process.grpc.pb.h"

namespace tollgate::dashboard {
namespace {

namespace pb = admin::v1;
using admin::AdminResult;
using common::v1::GetProcessInfoResponse;
using common::v1::ProcessInfoService;

// A process to ask, and the service of its target.
struct Asked {
  std::string service;
  std::shared_ptr<rpc::Replica> replica;
};

// More than any installation has. A bound is needed, because a host name may have any number of
// addresses.
constexpr size_t kMaxAsked = 1000;

std::vector<Asked> Fleet(const Peers& peers) {
  std::vector<Asked> fleet;
  const auto add = [&](const char* service, const ReplicasPtr& replicas) {
    if (replicas == nullptr) return;
    for (auto& replica : replicas->All()) {
      // This process is asked once, not once for each service in it.
      const bool own = replica->address() == rpc::kInprocAdmin;
      if (fleet.size() >= kMaxAsked) return;
      if (!own || replicas == peers.self) fleet.push_back({service, std::move(replica)});
    }
  };
  add("auth", peers.auth);
  add("billing", peers.billing);
  add("catalog", peers.catalog);
  add("gateway", peers.gateways);
  add("inference-router", peers.routers);
  add("ratelimit", peers.ratelimits);
  add("dashboard", peers.self);
  return fleet;
}

void Fill(const Asked& asked, const Result<GetProcessInfoResponse>& answer, pb::Process& into) {
  into.set_service(asked.service);
  if (asked.replica->address() != rpc::kInprocAdmin) into.set_address(asked.replica->address());
  into.set_answers(answer.ok());
  if (!answer) return;
  into.set_name("processes/" + answer->id());
  into.set_service(answer->service());
  into.set_version(answer->version());
  into.set_ready(answer->ready());
  *into.mutable_not_ready() = answer->not_ready();
  *into.mutable_start_time() = admin::ToTimestamp(answer->start_us());
}

Task<AdminResult<pb::ListProcessesResponse>> AllProcesses(const Peers& peers) {
  const std::vector<Asked> fleet = Fleet(peers);
  std::vector<std::shared_ptr<rpc::Replica>> replicas;
  for (const Asked& one : fleet) replicas.push_back(one.replica);
  const auto answers = co_await AskAll<ProcessInfoService>(
      peers.loop, std::move(replicas),
      &ProcessInfoService::StubInterface::async_interface::GetProcessInfo, {}, kPeerTimeoutMs);
  std::map<std::pair<std::string, std::string>, pb::Process> processes;
  std::set<std::string> seen;  // one process may have several addresses
  for (size_t i = 0; i < answers.size(); ++i) {
    pb::Process process;
    Fill(fleet[i], answers[i].answer, process);
    if (!process.name().empty() && !seen.insert(process.name()).second) continue;
    processes[{process.service(), process.address()}] = std::move(process);
  }
  pb::ListProcessesResponse response;
  for (auto& [key, process] : processes) *response.add_processes() = std::move(process);
  co_return response;
}

class ProcessService : public pb::ProcessService::CallbackService {
 public:
  explicit ProcessService(PeersSlot& slot) : slot_(slot) {}

  grpc::ServerUnaryReactor* ListProcesses(grpc::CallbackServerContext* context,
                                          const pb::ListProcessesRequest* request,
                                          pb::ListProcessesResponse* response) override {
    return ServeFront(slot_, context, request, response,
                      [](const Peers& peers, const admin::Caller&) { return AllProcesses(peers); });
  }

 private:
  PeersSlot& slot_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeProcessService(PeersSlot& slot) {
  return std::make_unique<ProcessService>(slot);
}

}  // namespace tollgate::dashboard
