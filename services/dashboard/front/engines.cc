#include "services/dashboard/front/engines.h"

#include <algorithm>

#include "common/admin/requests.h"
#include "common/rpc/channel.h"
#include "tollgate/inference/v1/engines.grpc.pb.h"

namespace tollgate::dashboard {
namespace {

namespace pb = admin::v1;
using inference::v1::EngineAdminService;
using inference::v1::EngineReport;

bool IsUsable(const pb::EngineAtRouter& at) { return at.healthy() && !at.drained(); }

void Add(const EngineReport& report, const std::string& router, pb::Engine& engine) {
  engine.set_name("engines/" + report.id());
  // Routers may have different catalogs for a moment: the first one counts.
  if (engine.routers_size() == 0) {
    engine.set_kind(report.kind());
    engine.set_pool(report.pool());
    *engine.mutable_models() = report.models();
  }
  engine.set_running_requests(engine.running_requests() + report.running());
  engine.set_max_requests(engine.max_requests() + report.max_concurrency());
  pb::EngineAtRouter& at = *engine.add_routers();
  at.set_router(router);
  at.set_healthy(report.healthy());
  at.set_drained(report.drained());
  at.set_running_requests(report.running());
  at.set_health_check_us(report.health_check_us());
  at.set_first_output_us(report.first_output_us());
  at.set_last_failure(report.last_failure());
  if (report.last_failure_us() > 0) {
    *at.mutable_last_failure_time() = admin::ToTimestamp(report.last_failure_us());
  }
}

pb::EngineState StateOf(const pb::Engine& engine) {
  int usable = 0, drained = 0;
  for (const pb::EngineAtRouter& at : engine.routers()) {
    usable += IsUsable(at) ? 1 : 0;
    drained += at.drained() ? 1 : 0;
  }
  if (usable == engine.routers_size()) return pb::ENGINE_STATE_UP;
  if (drained == engine.routers_size()) return pb::ENGINE_STATE_DRAINED;
  return usable > 0 ? pb::ENGINE_STATE_PARTLY_UP : pb::ENGINE_STATE_DOWN;
}

}  // namespace

std::string AddressOf(const rpc::Replica& replica) {
  return replica.address() == rpc::kInprocAdmin ? "" : replica.address();
}

std::map<std::string, pb::Engine> MergeEngines(const std::vector<RouterAnswer>& answers) {
  std::map<std::string, pb::Engine> engines;
  for (const RouterAnswer& one : answers) {
    if (!one.answer) continue;
    for (const EngineReport& report : one.answer->engines()) {
      Add(report, AddressOf(*one.replica), engines[report.id()]);
    }
  }
  for (auto& [id, engine] : engines) {
    engine.set_state(StateOf(engine));
    for (const RouterAnswer& one : answers) {
      if (!one.answer) engine.add_silent_routers(AddressOf(*one.replica));
    }
  }
  return engines;
}

Task<admin::AdminResult<std::map<std::string, pb::Engine>>> ReadEngines(const Peers& peers) {
  if (peers.routers == nullptr) {
    co_return admin::Precondition(
        "ROUTERS_UNKNOWN", "targets.router_admin is not set in the configuration of the dashboard");
  }
  const auto answers = co_await AskAll<EngineAdminService>(
      peers.loop, peers.routers->All(),
      &EngineAdminService::StubInterface::async_interface::ReadEngines, {}, kPeerTimeoutMs);
  const bool any = std::ranges::any_of(answers, [](const auto& one) { return one.answer.ok(); });
  if (!any) co_return Fail{admin::FromError(Unavailable("no inference router answers").error)};
  co_return MergeEngines(answers);
}

}  // namespace tollgate::dashboard
