// Creates one client of one service from a channel: for ClientFactory (factory.h), for tests and
// for tools that use one service. The client lives on the given loop. direct: the direct services
// of the process, used instead of the channel; may be null.
#pragma once

#include <memory>

#include "common/clients/clients.h"
#include "common/clients/direct.h"
#include "common/runtime/loop.h"

namespace grpc {
class Channel;
}

namespace tollgate {

using ChannelPtr = std::shared_ptr<grpc::Channel>;

std::unique_ptr<AuthClient> MakeAuthClient(Loop& loop, ChannelPtr channel);
std::unique_ptr<AuthAdminClient> MakeAuthAdminClient(Loop& loop, ChannelPtr channel);
std::unique_ptr<CatalogClient> MakeCatalogClient(Loop& loop, ChannelPtr channel);
std::unique_ptr<RateLimitClient> MakeRateLimitClient(Loop& loop, ChannelPtr channel,
                                                     const DirectServices* direct = nullptr);
std::unique_ptr<BillingClient> MakeBillingClient(Loop& loop, ChannelPtr channel,
                                                 const DirectServices* direct = nullptr);
std::unique_ptr<BillingAdminClient> MakeBillingAdminClient(Loop& loop, ChannelPtr channel);
std::unique_ptr<MeteringClient> MakeMeteringClient(Loop& loop, ChannelPtr channel,
                                                   const DirectServices* direct = nullptr);

}  // namespace tollgate
