// Every call between our processes: one interface per service. An instance belongs to one loop (its
// methods are called there and complete there); calls of one loop to one service that wait share a
// message. Errors are catalog rows: an unreachable service is kServiceUnavailable, never anything
// that blames the caller. Deadlines and retries are the client's; retried calls are idempotent by
// id.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "common/clients/subscription.h"
#include "common/error/error.h"
#include "common/runtime/task.h"
#include "tollgate/auth/v1/auth.pb.h"
#include "tollgate/billing/v1/billing.pb.h"
#include "tollgate/catalog/v1/catalog.pb.h"
#include "tollgate/inference/v1/inference.pb.h"
#include "tollgate/ratelimit/v1/ratelimit.pb.h"

namespace tollgate {

class AuthClient {
 public:
  virtual ~AuthClient() = default;
  virtual Task<Result<auth::v1::VerifyKeyResponse>> VerifyKey(
      auth::v1::VerifyKeyRequest request) = 0;
  virtual std::unique_ptr<Subscription> WatchKeys(
      WatchHandler<auth::v1::WatchKeysResponse> handler) = 0;
};

class CatalogClient {
 public:
  virtual ~CatalogClient() = default;
  virtual std::unique_ptr<Subscription> WatchCatalog(
      WatchHandler<catalog::v1::WatchCatalogResponse> handler) = 0;
};

class RateLimitClient {
 public:
  virtual ~RateLimitClient() = default;
  virtual Task<Result<ratelimit::v1::AcquireResult>> Acquire(ratelimit::v1::AcquireItem item) = 0;
  // Ends when the limiter has applied it. Tried a few times; a lost release is repaired by the
  // lease's time-out.
  virtual Task<void> Release(ratelimit::v1::ReleaseItem item) = 0;
  virtual void Renew(std::vector<std::string> lease_ids) = 0;
  // What the given limits have left, without taking anything.
  virtual Task<Result<ratelimit::v1::PeekResponse>> Peek(ratelimit::v1::PeekRequest request) = 0;
};

class BillingClient {
 public:
  virtual ~BillingClient() = default;
  virtual Task<Result<billing::v1::AuthorizeResult>> Authorize(billing::v1::AuthorizeItem item) = 0;
  // Sent in the background and retried until it is answered or the hold has expired anyway.
  virtual void Void(billing::v1::VoidItem item) = 0;
  virtual Task<Result<billing::v1::GetUsageResponse>> GetUsage(
      billing::v1::GetUsageRequest request) = 0;
};

class MeteringClient {
 public:
  virtual ~MeteringClient() = default;
  // One attempt within the deadline; the caller decides about retries (its outbox keeps what is
  // lost).
  virtual Task<Result<billing::v1::MeterResult>> Meter(billing::v1::MeterOp op,
                                                       int64_t timeout_ms) = 0;
};

// What people and scripts may do to keys and workspaces: the dashboard.
class AuthAdminClient {
 public:
  virtual ~AuthAdminClient() = default;
  virtual Task<Result<auth::v1::CreateWorkspaceResponse>> CreateWorkspace(
      auth::v1::CreateWorkspaceRequest request) = 0;
  virtual Task<Result<auth::v1::ListWorkspacesResponse>> ListWorkspaces(
      auth::v1::ListWorkspacesRequest request) = 0;
  virtual Task<Result<auth::v1::CreateKeyResponse>> CreateKey(
      auth::v1::CreateKeyRequest request) = 0;
  virtual Task<Result<auth::v1::ListKeysResponse>> ListKeys(auth::v1::ListKeysRequest request) = 0;
  virtual Task<Result<auth::v1::SetKeyStateResponse>> SetKeyState(
      auth::v1::SetKeyStateRequest request) = 0;
  virtual Task<Result<auth::v1::ListAuditEventsResponse>> ListAuditEvents(
      auth::v1::ListAuditEventsRequest request) = 0;
};

// What people and scripts may do to credit and caps: the dashboard.
class BillingAdminClient {
 public:
  virtual ~BillingAdminClient() = default;
  virtual Task<Result<billing::v1::AddCreditResponse>> AddCredit(
      billing::v1::AddCreditRequest request) = 0;
  virtual Task<Result<billing::v1::SetCapResponse>> SetCap(billing::v1::SetCapRequest request) = 0;
  virtual Task<Result<billing::v1::GetBalanceResponse>> GetBalance(
      billing::v1::GetBalanceRequest request) = 0;
  virtual Task<Result<billing::v1::ListEntriesResponse>> ListEntries(
      billing::v1::ListEntriesRequest request) = 0;
  virtual Task<Result<billing::v1::VerifyLedgerResponse>> VerifyLedger(
      billing::v1::VerifyLedgerRequest request) = 0;
};

// One running generation, seen from the gateway. Lives on one loop. Destroying it cancels.
class Generation {
 public:
  virtual ~Generation() = default;
  // All events that have arrived since the last call, at least one; waits when there is none. After
  // the End event, or after an error, there are no more. An error means that the link broke: the
  // router settles what was produced by itself. Taking events grants the router new credit.
  virtual Task<Result<std::vector<inference::v1::Event>>> Next() = 0;
  // Aborts the engine; no more events come. The router settles what was produced.
  virtual void Cancel() = 0;
  // Whether the request may have reached a router: if not, the caller must void the hold.
  virtual bool sent() const = 0;
};

class InferenceClient {
 public:
  virtual ~InferenceClient() = default;
  // Picks a connected router (round-robin) and starts. With no router reachable the generation's
  // first Next() fails with kServiceUnavailable and sent() is false.
  virtual std::unique_ptr<Generation> Start(inference::v1::GenerateRequest request) = 0;
  // Asks one connected router. Not retried: who asks has an estimate.
  virtual Task<Result<inference::v1::CountTokensResponse>> CountTokens(
      inference::v1::CountTokensRequest request) = 0;
};

}  // namespace tollgate
