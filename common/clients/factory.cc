#include "common/clients/factory.h"

#include <grpcpp/channel.h>

#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "common/clients/link_client.h"
#include "common/clients/make_clients.h"
#include "common/rpc/channel.h"
#include "common/rpc/link_protocol.h"
#include "tollgate/config/v1/config.pb.h"

namespace tollgate {
namespace {

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
    return MakeAuthClient(loop, Channel(targets_.auth(), loop));
  }
  std::unique_ptr<AuthAdminClient> AuthAdmin(Loop& loop) override {
    return MakeAuthAdminClient(loop, AdminChannel(targets_.auth_admin(), loop));
  }
  std::unique_ptr<CatalogClient> Catalog(Loop& loop) override {
    return MakeCatalogClient(loop, Channel(targets_.catalog(), loop));
  }
  std::unique_ptr<RateLimitClient> RateLimit(Loop& loop) override {
    return MakeRateLimitClient(loop, Channel(targets_.ratelimit(), loop),
                               Direct(targets_.ratelimit()));
  }
  std::unique_ptr<BillingClient> Billing(Loop& loop) override {
    return MakeBillingClient(loop, Channel(targets_.billing(), loop), Direct(targets_.billing()));
  }
  std::unique_ptr<BillingAdminClient> BillingAdmin(Loop& loop) override {
    return MakeBillingAdminClient(loop, AdminChannel(targets_.billing_admin(), loop));
  }
  std::unique_ptr<MeteringClient> Metering(Loop& loop) override {
    return MakeMeteringClient(loop, Channel(targets_.billing(), loop), Direct(targets_.billing()));
  }
  std::unique_ptr<InferenceClient> Inference(Loop& loop) override {
    std::vector<ChannelPtr> routers;
    for (const std::string& target : targets_.inference_routers()) {
      routers.push_back(Channel(target, loop));
    }
    if (routers.empty() && direct_.generate && direct_.count_tokens)
      return std::make_unique<DirectInferenceClient>(loop, direct_);
    if (routers.empty()) routers.push_back(Channel("", loop));
    return MakeLinkClient(loop, std::move(routers));
  }
  ChannelPtr AdminChannel(AdminTarget target, Loop& loop) override {
    switch (target) {
      case AdminTarget::kAuth:
        return AdminChannel(targets_.auth_admin(), loop);
      case AdminTarget::kBilling:
        return AdminChannel(targets_.billing_admin(), loop);
      case AdminTarget::kCatalog:
        return AdminChannel(targets_.catalog_admin(), loop);
    }
    return nullptr;
  }

 private:
  // Direct calls are for empty targets only; "inproc:" is gRPC.
  const DirectServices* Direct(const std::string& target) const {
    return target.empty() ? &direct_ : nullptr;
  }

  ChannelPtr AdminChannel(const std::string& target, Loop& loop) {
    const bool own = target.empty() || target == "inproc:";
    return Channel(own ? rpc::kInprocAdmin : target, loop);
  }

  // One channel per target and loop, shared by the loop's clients.
  ChannelPtr Channel(const std::string& target, Loop& loop) {
    std::lock_guard lock(mutex_);
    ChannelPtr& channel = open_[{target, loop.index()}];
    if (!channel) channel = channels_.Channel(target);
    return channel;
  }

  const config::v1::TargetsConfig targets_;
  rpc::ChannelSource& channels_;
  const DirectServices& direct_;
  std::mutex mutex_;
  std::map<std::pair<std::string, int>, ChannelPtr> open_;
};

}  // namespace

std::unique_ptr<ClientFactory> MakeClientFactory(const config::v1::TargetsConfig& targets,
                                                 rpc::ChannelSource& channels,
                                                 const DirectServices& direct) {
  return std::make_unique<Factory>(targets, channels, direct);
}

}  // namespace tollgate
