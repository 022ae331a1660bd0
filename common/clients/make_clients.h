// The clients of one service each, from a channel: for the factory, for tests and for programs that
// talk to one service only. Each lives on the given loop. direct is what the process offers itself
// instead of the channel, or null.
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
