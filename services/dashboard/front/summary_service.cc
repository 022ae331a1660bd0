#include "common/base/clock.h"
#include "common/base/try.h"
#include "common/observability/log.h"
#include "common/rpc/replica_caller.h"
#include "services/dashboard/front/engines.h"
#include "services/dashboard/front/services.h"
#include "services/dashboard/front/summary.h"
#include "tollgate/admin/v1/summary.grpc.pb.h"
#include "tollgate/auth/v1/front.grpc.pb.h"
#include "tollgate/billing/v1/summary.grpc.pb.h"

namespace tollgate::dashboard {
namespace {

namespace pb = admin::v1;
using admin::AdminResult;
using auth::v1::FrontService;
using LedgerSummaryService = billing::v1::SummaryService;

struct ReadFactsMethod : rpc::UnaryMethod<FrontService, auth::v1::ReadWorkspaceFactsRequest,
                                          auth::v1::ReadWorkspaceFactsResponse> {
  static constexpr UnaryPointer kUnary = &Async::ReadWorkspaceFacts;
};
struct ReadSummaryMethod : rpc::UnaryMethod<LedgerSummaryService, billing::v1::ReadSummaryRequest,
                                            billing::v1::ReadSummaryResponse> {
  static constexpr UnaryPointer kUnary = &Async::ReadSummary;
};

constexpr int64_t kSoonUs = 7 * 86'400LL * 1'000'000;

Task<Result<auth::v1::ReadWorkspaceFactsResponse>> ReadFacts(const Peers& peers,
                                                             std::string workspace,
                                                             int64_t now_us) {
  auth::v1::ReadWorkspaceFactsRequest request;
  request.set_workspace_id(std::move(workspace));
  request.set_expire_start_us(now_us);
  request.set_expire_end_us(now_us + kSoonUs);
  return rpc::ReplicaCaller<ReadFactsMethod>(peers.loop, peers.auth)
      .Call(std::move(request), kPeerTimeoutMs);
}

Task<Result<billing::v1::ReadSummaryResponse>> ReadLedger(const Peers& peers, std::string workspace,
                                                          int64_t day_start_us) {
  billing::v1::ReadSummaryRequest request;
  request.set_workspace_id(std::move(workspace));
  request.set_day_start_us(day_start_us);
  return rpc::ReplicaCaller<ReadSummaryMethod>(peers.loop, peers.billing)
      .Call(std::move(request), kPeerTimeoutMs);
}

void LogMissing(const char* part, const Error& error) {
  log::Warn("a summary lacks a part", {{"part", part}, {"error", error.ToString()}});
}

Task<AdminResult<pb::Summary>> ReadSummary(const Peers& peers,
                                           const pb::GetSummaryRequest& request) {
  CO_TRY(auto name, admin::NameParts(request));
  const std::string& workspace = name.front();
  const int64_t now_us = SystemClock::Get().WallUs();
  const auto facts = co_await ReadFacts(peers, workspace, now_us);
  if (!facts) LogMissing("auth", facts.error());
  if (facts && facts->report_time_zone().empty()) {
    co_return admin::NotFound("there is no workspace " + workspace);
  }
  const std::string zone = facts ? facts->report_time_zone() : "UTC";
  const int64_t day_start_us = DayStartUs(now_us, zone);
  const auto ledger = co_await ReadLedger(peers, workspace, day_start_us);
  if (!ledger) LogMissing("billing", ledger.error());
  const auto engines = co_await ReadEngines(peers);
  co_return MakeSummary(workspace, zone, day_start_us,
                        {.facts = facts ? &*facts : nullptr,
                         .ledger = ledger ? &*ledger : nullptr,
                         .engines = engines ? &*engines : nullptr});
}

class SummaryService : public pb::SummaryService::CallbackService {
 public:
  explicit SummaryService(PeersSlot& slot) : slot_(slot) {}

  grpc::ServerUnaryReactor* GetSummary(grpc::CallbackServerContext* context,
                                       const pb::GetSummaryRequest* request,
                                       pb::Summary* response) override {
    return ServeFront(
        slot_, context, request, response,
        [=](const Peers& peers, const admin::Caller&) { return ReadSummary(peers, *request); });
  }

 private:
  PeersSlot& slot_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeSummaryService(PeersSlot& slot) {
  return std::make_unique<SummaryService>(slot);
}

}  // namespace tollgate::dashboard
