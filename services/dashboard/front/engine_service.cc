#include <algorithm>

#include "common/base/text.h"
#include "common/base/try.h"
#include "common/rpc/replica_caller.h"
#include "services/dashboard/front/engines.h"
#include "services/dashboard/front/services.h"
#include "tollgate/admin/v1/engines.grpc.pb.h"
#include "tollgate/auth/v1/front.grpc.pb.h"
#include "tollgate/inference/v1/engines.grpc.pb.h"

namespace tollgate::dashboard {
namespace {

namespace pb = admin::v1;
using admin::AdminResult;
using admin::Caller;
using auth::v1::FrontService;
using inference::v1::EngineAdminService;

constexpr size_t kMaxReason = 500;

struct NoteChangeMethod
    : rpc::UnaryMethod<FrontService, auth::v1::NoteChangeRequest, auth::v1::NoteChangeResponse> {
  static constexpr UnaryPointer kUnary = &Async::NoteChange;
};

// A validated drain or resume.
struct Drain {
  std::string engine;
  bool drained = false;
  std::string reason;
  std::string request_id;  // may be empty
};

template <typename Request>
AdminResult<Drain> DrainOf(const Request& request, bool drained) {
  TRY(auto parts, admin::NameParts(request));
  if (request.reason().size() > kMaxReason) {
    return admin::InvalidField("reason", "reason has at most 500 bytes");
  }
  return Drain{parts.front(), drained, request.reason(), request.request_id()};
}

Task<AdminResult<pb::Engine>> Find(const Peers& peers, std::string id) {
  CO_TRY(auto engines, co_await ReadEngines(peers));
  const auto found = engines.find(id);
  if (found == engines.end()) {
    co_return admin::NotFound("there is no engine " + id + " in the catalog");
  }
  co_return std::move(found->second);
}

Fail<admin::Failure> RouterSilent(const std::string& address) {
  admin::Failure failure = admin::FromError(Unavailable("a router did not answer").error);
  failure.message = "the inference router " + (address.empty() ? "of this process" : address) +
                    " did not answer or does not know the engine yet: repeat the call";
  return Fail{std::move(failure)};
}

// Writes the audit entry first, because routers have no audit log. Without it, nothing is changed.
Task<AdminResult<void>> Note(const Peers& peers, const Caller& caller, const Drain& drain) {
  auth::v1::NoteChangeRequest note;
  note.set_actor(caller.actor);
  note.set_address(caller.address);
  note.set_action(drain.drained ? "engine.drain" : "engine.resume");
  note.set_subject(drain.engine);
  note.set_detail(drain.reason);
  note.set_request_id(drain.request_id);
  auto noted = co_await rpc::ReplicaCaller<NoteChangeMethod>(peers.loop, peers.auth)
                   .Call(std::move(note), kPeerTimeoutMs, nullptr,
                         drain.request_id.empty() ? rpc::Moves::kNo : rpc::Moves::kYes);
  if (!noted) co_return Fail{admin::FromError(noted.error())};
  if (noted->reused()) co_return admin::RequestIdReused();
  co_return AdminResult<void>();
}

Task<AdminResult<void>> SetAtRouters(const Peers& peers, const Drain& drain) {
  inference::v1::SetDrainRequest set;
  set.set_engine_id(drain.engine);
  set.set_drained(drain.drained);
  const auto answers = co_await AskAll<EngineAdminService>(
      peers.loop, peers.routers->All(),
      &EngineAdminService::StubInterface::async_interface::SetDrain, set, kPeerTimeoutMs);
  for (const auto& one : answers) {
    // A router whose catalog lacks the engine so far would send it requests later.
    if (!one.answer || (drain.drained && !one.answer->known())) {
      co_return RouterSilent(AddressOf(*one.replica));
    }
  }
  co_return AdminResult<void>();
}

// Idempotent: repeating the call also updates a router that missed the first one.
Task<AdminResult<pb::Engine>> Apply(const Peers& peers, const Caller& caller,
                                    AdminResult<Drain> drain) {
  if (!drain) co_return Fail{drain.error()};
  CO_TRY(auto engine, co_await Find(peers, drain->engine));
  if (engine.silent_routers_size() > 0) co_return RouterSilent(engine.silent_routers(0));
  CO_TRY(co_await Note(peers, caller, *drain));
  CO_TRY(co_await SetAtRouters(peers, *drain));
  co_return co_await Find(peers, drain->engine);
}

Task<AdminResult<pb::Engine>> OneEngine(const Peers& peers, const pb::GetEngineRequest& request) {
  CO_TRY(auto parts, admin::NameParts(request));
  co_return co_await Find(peers, parts.front());
}

Task<AdminResult<pb::ListEnginesResponse>> EnginesPage(const Peers& peers, const Caller& caller,
                                                       const pb::ListEnginesRequest& request) {
  CO_TRY(auto page, admin::PageOfList(request, caller));
  CO_TRY(auto engines, co_await ReadEngines(peers));
  pb::ListEnginesResponse response;
  auto at = engines.upper_bound(page.position);
  for (; at != engines.end() && response.engines_size() < page.size; ++at) {
    *response.add_engines() = std::move(at->second);
  }
  if (at != engines.end()) {
    response.set_next_page_token(admin::EncodePageToken(page.binding, std::prev(at)->first));
  }
  co_return response;
}

class EngineService : public pb::EngineService::CallbackService {
 public:
  explicit EngineService(PeersSlot& slot) : slot_(slot) {}

  grpc::ServerUnaryReactor* GetEngine(grpc::CallbackServerContext* context,
                                      const pb::GetEngineRequest* request,
                                      pb::Engine* response) override {
    return ServeFront(slot_, context, request, response, [=](const Peers& peers, const Caller&) {
      return OneEngine(peers, *request);
    });
  }
  grpc::ServerUnaryReactor* ListEngines(grpc::CallbackServerContext* context,
                                        const pb::ListEnginesRequest* request,
                                        pb::ListEnginesResponse* response) override {
    return ServeFront(slot_, context, request, response,
                      [=](const Peers& peers, const Caller& caller) {
                        return EnginesPage(peers, caller, *request);
                      });
  }
  grpc::ServerUnaryReactor* DrainEngine(grpc::CallbackServerContext* context,
                                        const pb::DrainEngineRequest* request,
                                        pb::Engine* response) override {
    return Change(context, request, true, response);
  }
  grpc::ServerUnaryReactor* ResumeEngine(grpc::CallbackServerContext* context,
                                         const pb::ResumeEngineRequest* request,
                                         pb::Engine* response) override {
    return Change(context, request, false, response);
  }

 private:
  template <typename Request>
  grpc::ServerUnaryReactor* Change(grpc::CallbackServerContext* context, const Request* request,
                                   bool drained, pb::Engine* response) {
    return ServeFront(slot_, context, request, response,
                      [=](const Peers& peers, const Caller& caller) {
                        return Apply(peers, caller, DrainOf(*request, drained));
                      });
  }

  PeersSlot& slot_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeEngineService(PeersSlot& slot) {
  return std::make_unique<EngineService>(slot);
}

}  // namespace tollgate::dashboard
