// The interfaces of all internal services. An instance belongs to one loop: its methods are called
// and complete there. Waiting calls to one service are batched. Errors are rows of the catalog; an
// unreachable service is kServiceUnavailable, never an error of the end client. Deadlines and
// retries are up to the implementation; retried calls are idempotent by id.
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
  virtual Task<Result<auth::v1::ReadVersionResponse>> ReadVersion(
      auth::v1::ReadVersionRequest request) = 0;
  // One attempt; the caller reports again after a failure.
  virtual Task<Result<auth::v1::ReportKeyUseResponse>> ReportKeyUse(
      auth::v1::ReportKeyUseRequest request) = 0;
  virtual std::unique_ptr<Subscription> WatchKeys(
      WatchHandler<auth::v1::WatchKeysResponse> handler) = 0;
};

// Whether a catalog comes with the API keys of engines. Only inference routers get them.
enum class EngineKeys { kWithout, kWith };

class CatalogClient {
 public:
  virtual ~CatalogClient() = default;
  virtual std::unique_ptr<Subscription> WatchCatalog(
      EngineKeys keys, WatchHandler<catalog::v1::WatchCatalogResponse> handler) = 0;
};

class RateLimitClient {
 public:
  virtual ~RateLimitClient() = default;
  virtual Task<Result<ratelimit::v1::AcquireResult>> Acquire(ratelimit::v1::AcquireItem item) = 0;
  // Announces this gateway, so that the limiter counts it even without traffic.
  virtual Task<void> Present() = 0;
  // Returns when the limiter has applied the release, or after a few attempts. The slot of a lost
  // release expires.
  virtual Task<void> Release(ratelimit::v1::ReleaseItem item) = 0;
  // Extends the slots. Returns the ids that the limiter had lost and counts again.
  virtual Task<std::vector<std::string>> Renew(std::vector<ratelimit::v1::RenewItem> slots) = 0;
  // Reads the remaining amount of the given limits.
  virtual Task<Result<ratelimit::v1::PeekResponse>> Peek(ratelimit::v1::PeekRequest request) = 0;
  // Reads the use of limits in the last hour.
  virtual Task<Result<ratelimit::v1::GetUseResponse>> GetUse(
      ratelimit::v1::GetUseRequest request) = 0;
};

class BillingClient {
 public:
  virtual ~BillingClient() = default;
  // One attempt within the timeout. Idempotent by the item's id: a repetition returns the same
  // answer without a second hold.
  virtual Task<Result<billing::v1::AuthorizeResult>> Authorize(billing::v1::AuthorizeItem item,
                                                               int64_t timeout_ms) = 0;
  // Runs in the background and is retried until it succeeds or the hold has expired; for a refusal
  // up to ten minutes.
  virtual void Void(billing::v1::VoidItem item) = 0;
  virtual Task<Result<billing::v1::GetUsageResponse>> GetUsage(
      billing::v1::GetUsageRequest request) = 0;
  virtual Task<Result<billing::v1::GetReceiptResponse>> GetReceipt(
      billing::v1::GetReceiptRequest request) = 0;
  // Answers of requests with an Idempotency-Key. One attempt each. If an answer could not be
  // stored, repetitions of the request get 409.
  virtual Task<Result<billing::v1::StoreAnswerResponse>> StoreAnswer(
      billing::v1::StoreAnswerRequest request) = 0;
  virtual Task<Result<billing::v1::GetAnswerResponse>> GetAnswer(
      billing::v1::GetAnswerRequest request) = 0;
};

class MeteringClient {
 public:
  virtual ~MeteringClient() = default;
  // One attempt within the deadline; the caller retries (see the router's outbox).
  virtual Task<Result<billing::v1::MeterResult>> Meter(billing::v1::MeterOp op,
                                                       int64_t timeout_ms) = 0;
  // Credit of a workspace that the caller may spend by itself. Idempotent: another replica is asked
  // if one is lost. A ledger that cannot be written is an error, never DENY_REASON_UNAVAILABLE.
  virtual Task<Result<billing::v1::TakeLeaseResponse>> TakeLease(
      billing::v1::TakeLeaseRequest request, int64_t timeout_ms) = 0;
};

// Client of billing's admin address, used by auth.
class BillingAdminClient {
 public:
  virtual ~BillingAdminClient() = default;
  // Opens the wallet of a new workspace. Repeating it has no effect (decision 64).
  virtual Task<Result<void>> OpenWallet(std::string workspace_id) = 0;
  // Whether the workspace may close: it has no credit, holds or debt, and no payment is under way.
  // If so, its auto-reload is off now and its cards are deleted.
  virtual Task<Result<bool>> PrepareClose(std::string workspace_id) = 0;
  virtual Task<Result<billing::v1::ListKeySpendResponse>> ListKeySpend(
      billing::v1::ListKeySpendRequest request) = 0;
};

// The gateway's handle of one running generation. Lives on one loop. Destroying it cancels.
class Generation {
 public:
  virtual ~Generation() = default;
  // Returns all events received since the last call, at least one; waits if there are none. No
  // events follow End or an error. An error means that the link was lost; the router settles what
  // was produced. Taking events reopens the router's window.
  virtual Task<Result<std::vector<inference::v1::Event>>> Next() = 0;
  // Aborts the engine; no more events follow. The router settles what was produced.
  virtual void Cancel() = 0;
  // Whether the request may have reached a router. If not, the caller must void the hold.
  virtual bool sent() const = 0;
};

class InferenceClient {
 public:
  virtual ~InferenceClient() = default;
  // Starts on a connected router (round-robin). If none is reachable, the first Next() fails with
  // kServiceUnavailable and sent() is false.
  virtual std::unique_ptr<Generation> Start(inference::v1::GenerateRequest request) = 0;
  // Sent once to a connected router, without retries, since the caller has an estimate.
  virtual Task<Result<inference::v1::CountTokensResponse>> CountTokens(
      inference::v1::CountTokensRequest request) = 0;
};

}  // namespace tollgate
