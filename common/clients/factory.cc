#include "common/clients/factory.h"

#include <grpcpp/channel.h>

#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>

#include "common/clients/link_client.h"
#include "common/clients/make_clients.h"
#include "common/rpc/channel.h"
#include "common/rpc/link_protocol.h"
#include "common/rpc/replicas.h"
#include "common/rpc/resolver.h"
#include "tollgate/billing/v1/lease_recalls.pb.h"
#include "tollgate/config/v1/config.pb.h"

namespace tollgate {
namespace {

constexpr char kRouter[] = "inference-router";

class DirectInferenceClient : public InferenceClient {
 public:
  DirectInferenceClient(Loop& loop, const DirectServices& direct) : loop_(loop), direct_(direct) {}
  std::unique_ptr<Generation> Start(inference::v1::GenerateRequest request) override {
    return direct_.generate(loop_, std::move(request));
  }
  Task<Result<inference::v1::CountTokensResponse>> CountTokens(
      inference::v1::CountTokensRequest request) override {
    if (request.members_json().size() > kMaxCountedBytes) {
      co_return FailWith(ErrorId::kServiceUnavailable, "", "the prompt is too large to be counted");
    }
    co_return co_await direct_.count_tokens(std::move(request));
  }

 private:
  Loop& loop_;
  const DirectServices& direct_;
};

class Factory : public ClientFactory {
 public:
  Factory(const config::v1::TargetsConfig& targets, rpc::ChannelSource& channels,
          const DirectServices& direct)
      : targets_(targets), channels_(channels), direct_(direct) {}

  std::unique_ptr<AuthClient> Auth(Loop& loop) override {
    return MakeAuthClient(loop, Replicas(targets_.auth(), "auth", loop));
  }
  std::unique_ptr<CatalogClient> Catalog(Loop& loop) override {
    return MakeCatalogClient(loop, Replicas(targets_.catalog(), "catalog", loop));
  }
  std::unique_ptr<RateLimitClient> RateLimit(Loop& loop) override {
    return MakeRateLimitClient(loop, Replicas(targets_.ratelimit(), "ratelimit", loop),
                               Direct(targets_.ratelimit()));
  }
  std::unique_ptr<BillingClient> Billing(Loop& loop) override {
    return MakeBillingClient(loop, Replicas(targets_.billing(), "billing", loop),
                             Direct(targets_.billing()));
  }
  std::unique_ptr<BillingAdminClient> BillingAdmin(Loop& loop) override {
    return MakeBillingAdminClient(loop, AdminReplicas(targets_.billing_admin(), "billing", loop));
  }
  std::unique_ptr<MeteringClient> Metering(Loop& loop) override {
    return MakeMeteringClient(loop, Replicas(targets_.billing(), "billing", loop),
                              Direct(targets_.billing()));
  }
  std::unique_ptr<Subscription> WatchLeaseRecalls(
      Loop& loop, WatchHandler<billing::v1::WatchLeaseRecallsResponse> handler) override {
    return tollgate::WatchLeaseRecalls(loop, Replicas(targets_.billing(), "billing", loop),
                                       std::move(handler));
  }
  std::unique_ptr<InferenceClient> Inference(Loop& loop) override {
    const auto& targets = targets_.inference_routers();
    if (targets.empty() && direct_.generate && direct_.count_tokens)
      return std::make_unique<DirectInferenceClient>(loop, direct_);
    RouterTargets routers{.targets = {targets.begin(), targets.end()},
                          .make =
                              [this, &loop](const std::string& address) {
                                return std::make_shared<rpc::Replica>(
                                    loop, kRouter, address, channels_.Channel(address, kRouter));
                              },
                          .resolver = resolver_};
    if (targets.empty()) routers.targets.emplace_back();
    return MakeLinkClient(loop, std::move(routers));
  }
  ReplicasPtr AdminReplicas(AdminTarget target, Loop& loop) override {
    switch (target) {
      case AdminTarget::kAuth:
        return AdminReplicas(targets_.auth_admin(), "auth", loop);
      case AdminTarget::kBilling:
        return AdminReplicas(targets_.billing_admin(), "billing", loop);
      case AdminTarget::kCatalog:
        return AdminReplicas(targets_.catalog_admin(), "catalog", loop);
      case AdminTarget::kRouter: {
        std::string routers;
        for (const std::string& one : targets_.router_admin()) {
          routers += (routers.empty() ? "" : ",") + one;
        }
        return AdminReplicas(routers, kRouter, loop);
      }
      case AdminTarget::kSelf:
        return AdminReplicas("", "dashboard", loop);
    }
    return nullptr;
  }
  ReplicasPtr OtherReplicas(OtherTarget target, Loop& loop) override {
    const bool gateway = target == OtherTarget::kGateway;
    const std::string& addresses = gateway ? targets_.gateways() : targets_.ratelimit();
    if (addresses.empty() || addresses == "inproc:") return nullptr;
    return Replicas(addresses, gateway ? "gateway" : "ratelimit", loop);
  }
  void Stop() override {
    std::lock_guard lock(mutex_);
    for (auto& [key, replicas] : open_) replicas->loop().RunAndWait([&] { replicas->Stop(); });
  }

 private:
  // Only an empty target means direct calls; "inproc:" uses gRPC.
  const DirectServices* Direct(const std::string& target) const {
    return target.empty() ? &direct_ : nullptr;
  }

  ReplicasPtr AdminReplicas(const std::string& target, const char* service, Loop& loop) {
    const bool own = target.empty() || target == "inproc:";
    return Replicas(own ? rpc::kInprocAdmin : target, service, loop);
  }

  // One set of replicas per target, service and loop, with a channel each. The loop's clients share
  // it.
  ReplicasPtr Replicas(const std::string& target, const char* service, Loop& loop) {
    std::lock_guard lock(mutex_);
    ReplicasPtr& replicas = open_[{target, service, loop.index()}];
    if (!replicas) {
      replicas = rpc::Replicas::Make(
          loop, service, target,
          [this, service](const std::string& address) {
            return channels_.Channel(address, service);
          },
          resolver_);
    }
    return replicas;
  }

  const config::v1::TargetsConfig targets_;
  rpc::ChannelSource& channels_;
  const DirectServices& direct_;
  std::mutex mutex_;
  const std::shared_ptr<rpc::Resolver> resolver_ = std::make_shared<rpc::Resolver>();
  std::map<std::tuple<std::string, std::string, int>, ReplicasPtr> open_;
};

}  // namespace

std::unique_ptr<ClientFactory> MakeClientFactory(const config::v1::TargetsConfig& targets,
                                                 rpc::ChannelSource& channels,
                                                 const DirectServices& direct) {
  return std::make_unique<Factory>(targets, channels, direct);
}

}  // namespace tollgate
