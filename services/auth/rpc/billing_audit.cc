#include "services/auth/rpc/billing_audit.h"

#include <future>
#include <utility>

#include "common/rpc/replica_caller.h"
#include "common/runtime/task.h"
#include "tollgate/billing/v1/audit.grpc.pb.h"

namespace tollgate::auth {
namespace {

using billing::v1::AuditSourceService;
using Promise = std::promise<Result<audit::Page>>;

struct ReadAuditEntriesMethod
    : rpc::UnaryMethod<AuditSourceService, billing::v1::ReadAuditEntriesRequest,
                       billing::v1::ReadAuditEntriesResponse> {
  static constexpr UnaryPointer kUnary = &Async::ReadAuditEntries;
  static constexpr int64_t kTimeoutMs = 5'000;
};

audit::Page PageOf(const billing::v1::ReadAuditEntriesResponse& response) {
  audit::Page page;
  page.head = {response.head_sequence(), response.head_hash()};
  for (const billing::v1::AuditSourceEntry& entry : response.entries()) {
    page.records.push_back({.sequence = entry.sequence(),
                            .at_us = entry.at_us(),
                            .actor = entry.actor(),
                            .action = entry.action(),
                            .workspace_id = entry.workspace_id(),
                            .subject = entry.subject(),
                            .detail = entry.detail(),
                            .hash = entry.hash(),
                            .address = entry.address(),
                            .format = entry.format(),
                            .request_id = entry.request_id()});
  }
  return page;
}

Task<void> Read(rpc::ReplicaCaller<ReadAuditEntriesMethod> caller,
                billing::v1::ReadAuditEntriesRequest request, std::shared_ptr<Promise> promise) {
  auto read = co_await caller.Call(std::move(request));
  if (read) {
    promise->set_value(PageOf(*read));
  } else {
    promise->set_value(Fail{read.error()});
  }
}

}  // namespace

AuditSource BillingAuditSource(Loop& loop, std::shared_ptr<rpc::Replicas> replicas) {
  // weak_ptr: the caller keeps the replicas alive and destroys them on the loop.
  const std::weak_ptr<rpc::Replicas> weak = replicas;
  return {"billing", [&loop, weak](int64_t after, int limit) -> Result<audit::Page> {
            billing::v1::ReadAuditEntriesRequest request;
            request.set_after(after);
            request.set_limit(limit);
            const auto promise = std::make_shared<Promise>();
            auto page = promise->get_future();
            loop.Post([&loop, weak, request = std::move(request), promise]() mutable {
              auto running = weak.lock();
              if (!running) return promise->set_value(Unavailable("auth is stopping"));
              loop.Spawn(Read({loop, std::move(running)}, std::move(request), promise));
            });
            return page.get();
          }};
}

}  // namespace tollgate::auth
