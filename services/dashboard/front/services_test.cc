// The dashboard's own services, over gRPC, with scripted routers and a scripted auth.
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <mutex>

#include "common/admin/caller.h"
#include "common/rpc/channel.h"
#include "services/dashboard/front/services.h"
#include "tollgate/admin/v1/engines.grpc.pb.h"
#include "tollgate/admin/v1/processes.grpc.pb.h"
#include "tollgate/auth/v1/front.grpc.pb.h"
#include "tollgate/common/v1/identity.pb.h"
#include "tollgate/common/v1/process.grpc.pb.h"
#include "tollgate/inference/v1/engines.grpc.pb.h"

namespace tollgate::dashboard {
namespace {

namespace pb = admin::v1;
namespace inf = inference::v1;

// Records the events of all of them in order.
struct Journal {
  void Add(std::string line) {
    const std::lock_guard lock(mutex);
    lines.push_back(std::move(line));
  }
  std::mutex mutex;
  std::vector<std::string> lines;
};

class Router : public inf::EngineAdminService::Service,
               public common::v1::ProcessInfoService::Service {
 public:
  Router(std::string name, Journal& journal) : name_(std::move(name)), journal_(journal) {}
  grpc::Status ReadEngines(grpc::ServerContext*, const inf::ReadEnginesRequest*,
                           inf::ReadEnginesResponse* response) override {
    if (silent) return {grpc::StatusCode::UNAVAILABLE, "silent"};
    for (const auto& [id, engine] : engines) *response->add_engines() = engine;
    return grpc::Status::OK;
  }
  grpc::Status SetDrain(grpc::ServerContext*, const inf::SetDrainRequest* request,
                        inf::SetDrainResponse* response) override {
    if (fails_drains) return {grpc::StatusCode::UNAVAILABLE, "disk"};
    journal_.Add(name_ + (request->drained() ? " drains " : " resumes ") + request->engine_id());
    const auto found = engines.find(request->engine_id());
    response->set_known(found != engines.end());
    if (response->known()) found->second.set_drained(request->drained());
    return grpc::Status::OK;
  }
  grpc::Status GetProcessInfo(grpc::ServerContext*, const common::v1::GetProcessInfoRequest*,
                              common::v1::GetProcessInfoResponse* response) override {
    response->set_id("id-of-" + name_);
    response->set_service("inference-router");
    response->set_version("1.2.3");
    response->set_start_us(5'000'000);
    response->add_not_ready("outbox");
    return grpc::Status::OK;
  }
  inf::EngineReport& Has(const std::string& id, int64_t running = 0, bool healthy = true) {
    inf::EngineReport& engine = engines[id];
    engine.set_id(id);
    engine.set_kind("vllm");
    engine.set_pool("main");
    engine.set_running(running);
    engine.set_healthy(healthy);
    engine.set_max_concurrency(8);
    return engine;
  }

  std::map<std::string, inf::EngineReport> engines;
  bool silent = false, fails_drains = false;

 private:
  const std::string name_;
  Journal& journal_;
};

class Auth : public auth::v1::FrontService::Service {
 public:
  explicit Auth(Journal& journal) : journal_(journal) {}
  grpc::Status NoteChange(grpc::ServerContext*, const auth::v1::NoteChangeRequest* request,
                          auth::v1::NoteChangeResponse* response) override {
    if (down) return {grpc::StatusCode::UNAVAILABLE, "down"};
    journal_.Add("noted " + request->actor() + " " + request->action() + " " + request->subject() +
                 " " + request->detail() + " " + request->request_id());
    response->set_reused(reused);
    return grpc::Status::OK;
  }
  bool down = false, reused = false;

 private:
  Journal& journal_;
};

class FrontTest : public ::testing::Test {
 protected:
  void SetUp() override {
    loops_.Start();
    const std::string auth = Serve({&auth_});
    routers_address_ = {Serve({static_cast<inf::EngineAdminService::Service*>(&one_),
                               static_cast<common::v1::ProcessInfoService::Service*>(&one_)}),
                        Serve({static_cast<inf::EngineAdminService::Service*>(&two_),
                               static_cast<common::v1::ProcessInfoService::Service*>(&two_)})};
    const auto make = [](const std::string& target) {
      return grpc::CreateChannel(target, grpc::InsecureChannelCredentials());
    };
    Loop& loop = loops_.loop(0);
    loop.RunAndWait([&] {
      const auto replicas = [&](const char* service, const std::string& target) {
        return rpc::Replicas::Make(loop, service, target, make, nullptr);
      };
      slot_.peers = std::make_shared<const Peers>(Peers{
          .loop = loop,
          .auth = replicas("auth", auth),
          .billing = nullptr,
          .catalog = nullptr,
          .self = nullptr,
          .routers = replicas("inference-router", routers_address_[0] + "," + routers_address_[1]),
          .ratelimits = nullptr,
          .gateways = nullptr});
    });
    slot_.loop = &loop;
    services_.push_back(MakeEngineService(slot_));
    services_.push_back(MakeProcessService(slot_));
    grpc::ServerBuilder builder;
    for (const auto& service : services_) builder.RegisterService(service.get());
    server_ = builder.BuildAndStart();
    engines_ = pb::EngineService::NewStub(server_->InProcessChannel({}));
    processes_ = pb::ProcessService::NewStub(server_->InProcessChannel({}));
  }
  void TearDown() override {
    server_->Shutdown();
    loops_.loop(0).RunAndWait([&] { slot_.peers.reset(); });
    for (const auto& server : servers_) server->Shutdown();
    loops_.Stop();
  }
  std::string Serve(std::vector<grpc::Service*> services) {
    grpc::ServerBuilder builder;
    int port = 0;
    builder.AddListeningPort("127.0.0.1:0", grpc::InsecureServerCredentials(), &port);
    for (grpc::Service* service : services) builder.RegisterService(service);
    servers_.push_back(builder.BuildAndStart());
    return "127.0.0.1:" + std::to_string(port);
  }
  static void As(grpc::ClientContext& context, bool platform_operator) {
    common::v1::Identity identity;
    identity.set_actor("user:ann");
    identity.set_user_id("ann");
    identity.set_platform_operator(platform_operator);
    context.AddMetadata(admin::kIdentityKey, identity.SerializeAsString());
  }
  grpc::Status Get(const std::string& id, pb::Engine& engine) {
    grpc::ClientContext context;
    pb::GetEngineRequest request;
    request.set_name("engines/" + id);
    return engines_->GetEngine(&context, request, &engine);
  }
  grpc::Status Drain(const std::string& id, pb::Engine& engine, const std::string& reason = "") {
    grpc::ClientContext context;
    As(context, true);
    pb::DrainEngineRequest request;
    request.set_name("engines/" + id);
    request.set_request_id("r1");
    request.set_reason(reason);
    return engines_->DrainEngine(&context, request, &engine);
  }

  Journal journal_;
  Router one_{"one", journal_}, two_{"two", journal_};
  Auth auth_{journal_};
  LoopPool loops_{1};
  PeersSlot slot_;
  std::vector<std::string> routers_address_;
  std::vector<std::unique_ptr<grpc::Server>> servers_;
  std::vector<std::unique_ptr<grpc::Service>> services_;
  std::unique_ptr<grpc::Server> server_;
  std::unique_ptr<pb::EngineService::Stub> engines_;
  std::unique_ptr<pb::ProcessService::Stub> processes_;
};

TEST_F(FrontTest, AnEngineIsWhatAllRoutersSayOfIt) {
  one_.Has("a", 2).add_models("ns/m");
  two_.Has("a", 3, false).set_last_failure("health check: refused");
  two_.engines["a"].set_last_failure_us(9'000'000);
  pb::Engine engine;
  ASSERT_TRUE(Get("a", engine).ok());
  EXPECT_EQ(engine.state(), pb::ENGINE_STATE_PARTLY_UP);
  EXPECT_EQ(engine.running_requests(), 5);
  EXPECT_EQ(engine.max_requests(), 16);
  EXPECT_EQ(engine.pool(), "main");
  EXPECT_EQ(engine.models(0), "ns/m");
  ASSERT_EQ(engine.routers_size(), 2);
  EXPECT_EQ(engine.routers(0).router(), routers_address_[0]);
  EXPECT_FALSE(engine.routers(0).has_last_failure_time());
  EXPECT_EQ(engine.routers(1).last_failure(), "health check: refused");
  EXPECT_EQ(engine.routers(1).last_failure_time().seconds(), 9);
  one_.engines["a"].set_healthy(false);
  ASSERT_TRUE(Get("a", engine).ok());
  EXPECT_EQ(engine.state(), pb::ENGINE_STATE_DOWN);
  EXPECT_EQ(Get("none", engine).error_code(), grpc::StatusCode::NOT_FOUND);
}

TEST_F(FrontTest, ASilentRouterIsNamedAndIsNoReasonToHideTheOther) {
  one_.Has("a");
  two_.silent = true;
  pb::Engine engine;
  ASSERT_TRUE(Get("a", engine).ok());
  EXPECT_EQ(engine.state(), pb::ENGINE_STATE_UP);
  ASSERT_EQ(engine.silent_routers_size(), 1);
  EXPECT_EQ(engine.silent_routers(0), routers_address_[1]);
  one_.silent = true;
  EXPECT_EQ(Get("a", engine).error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(FrontTest, ListsEnginesByNameInPages) {
  for (const char* id : {"c", "a"}) one_.Has(id);
  two_.Has("b");
  pb::ListEnginesRequest request;
  request.set_page_size(2);
  std::string seen;
  int pages = 0;
  do {
    grpc::ClientContext context;
    pb::ListEnginesResponse page;
    ASSERT_TRUE(engines_->ListEngines(&context, request, &page).ok());
    for (const auto& engine : page.engines()) seen += engine.name() + " ";
    request.set_page_token(page.next_page_token());
    ++pages;
  } while (!request.page_token().empty());
  EXPECT_EQ(seen, "engines/a engines/b engines/c ");
  EXPECT_EQ(pages, 2);
}

TEST_F(FrontTest, ADrainIsInTheAuditLogBeforeAnyRouterDrains) {
  one_.Has("a");
  two_.Has("a");
  pb::Engine engine;
  ASSERT_TRUE(Drain("a", engine, "new driver").ok());
  EXPECT_EQ(engine.state(), pb::ENGINE_STATE_DRAINED);
  ASSERT_EQ(journal_.lines.size(), 3U);
  EXPECT_EQ(journal_.lines[0], "noted user:ann engine.drain a new driver r1");
  grpc::ClientContext context;
  pb::ResumeEngineRequest resume;
  resume.set_name("engines/a");
  ASSERT_TRUE(engines_->ResumeEngine(&context, resume, &engine).ok());
  EXPECT_EQ(engine.state(), pb::ENGINE_STATE_UP);
}

TEST_F(FrontTest, WithoutTheAuditLogOrARouterNothingIsDrained) {
  one_.Has("a");
  two_.Has("a");
  pb::Engine engine;
  auth_.down = true;
  EXPECT_EQ(Drain("a", engine).error_code(), grpc::StatusCode::UNAVAILABLE);
  auth_.down = false;
  auth_.reused = true;
  EXPECT_EQ(Drain("a", engine).error_code(), grpc::StatusCode::ALREADY_EXISTS);
  auth_.reused = false;
  two_.silent = true;
  EXPECT_EQ(Drain("a", engine).error_code(), grpc::StatusCode::UNAVAILABLE);
  two_.silent = false;
  EXPECT_EQ(Drain("none", engine).error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_EQ(Drain("a/b", engine).error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(Drain("a", engine, std::string(501, 'x')).error_code(),
            grpc::StatusCode::INVALID_ARGUMENT);
  for (const std::string& line : journal_.lines) EXPECT_EQ(line.find("drains"), std::string::npos);
}

TEST_F(FrontTest, ARepeatedDrainReachesTheRouterThatMissedIt) {
  one_.Has("a");
  two_.Has("a");
  two_.fails_drains = true;
  pb::Engine engine;
  EXPECT_EQ(Drain("a", engine).error_code(), grpc::StatusCode::UNAVAILABLE);
  two_.fails_drains = false;
  ASSERT_TRUE(Drain("a", engine).ok());
  EXPECT_EQ(engine.state(), pb::ENGINE_STATE_DRAINED);
}

TEST_F(FrontTest, EnginesAndProcessesAreForOperatorsOfThePlatform) {
  one_.Has("a");
  grpc::ClientContext engines, processes;
  As(engines, false);
  As(processes, false);
  pb::ListEnginesResponse list;
  EXPECT_EQ(engines_->ListEngines(&engines, {}, &list).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
  pb::ListProcessesResponse fleet;
  EXPECT_EQ(processes_->ListProcesses(&processes, {}, &fleet).error_code(),
            grpc::StatusCode::PERMISSION_DENIED);
}

TEST_F(FrontTest, ProcessesSayWhatTheyAreAndSilentOnesAreListed) {
  grpc::ClientContext context;
  pb::ListProcessesResponse fleet;
  ASSERT_TRUE(processes_->ListProcesses(&context, {}, &fleet).ok());
  ASSERT_EQ(fleet.processes_size(), 3);
  const pb::Process& auth = fleet.processes(0);
  EXPECT_EQ(auth.service(), "auth");
  EXPECT_FALSE(auth.answers()) << "the scripted auth does not report itself";
  EXPECT_EQ(auth.name(), "");
  const pb::Process& router = fleet.processes(1);
  EXPECT_EQ(router.service(), "inference-router");
  EXPECT_TRUE(router.answers());
  EXPECT_FALSE(router.ready());
  EXPECT_EQ(router.not_ready(0), "outbox");
  EXPECT_EQ(router.version(), "1.2.3");
  EXPECT_EQ(router.start_time().seconds(), 5);
  EXPECT_NE(router.name(), fleet.processes(2).name());
}

// A target may have any number of addresses, and the list has no pages, so it needs a bound.
TEST_F(FrontTest, AtMostAThousandProcessesAreAskedAndListed) {
  std::string many;
  for (int i = 0; i < 1100; ++i) {
    many += (i > 0 ? ",127.0." : "127.0.") + std::to_string(i / 250) + "." +
            std::to_string(i % 250 + 1) + ":1";
  }
  Loop& loop = loops_.loop(0);
  loop.RunAndWait([&] {
    Peers peers = *slot_.peers;
    peers.gateways = rpc::Replicas::Make(
        loop, "gateway", many,
        [](const std::string& target) {
          return grpc::CreateChannel(target, grpc::InsecureChannelCredentials());
        },
        nullptr);
    slot_.peers = std::make_shared<const Peers>(std::move(peers));
  });
  grpc::ClientContext context;
  pb::ListProcessesResponse fleet;
  ASSERT_TRUE(processes_->ListProcesses(&context, {}, &fleet).ok());
  EXPECT_EQ(fleet.processes_size(), 1000);
}

}  // namespace
}  // namespace tollgate::dashboard
