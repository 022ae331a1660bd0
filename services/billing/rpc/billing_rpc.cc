#include "services/billing/rpc/billing_rpc.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/server_callback.h>

#include <type_traits>
#include <utility>

#include "common/base/try.h"
#include "common/rpc/call_stream_server.h"
#include "common/rpc/server.h"
#include "common/tracing/call_spans.h"
#include "services/billing/reports/key_spend.h"
#include "services/billing/reports/receipts.h"
#include "services/billing/rpc/convert.h"
#include "services/billing/storage/idempotency_keys.h"
#include "tollgate/billing/v1/billing.grpc.pb.h"

namespace tollgate::billing {
namespace {

using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

constexpr tracing::CallName kAuthorize{"tollgate.billing",
                                       "tollgate.billing.v1.BillingService/Authorize"};
constexpr tracing::CallName kMeter{"tollgate.billing", "tollgate.billing.v1.MeteringService/Meter"};

// Far above the batch size of any caller. Larger calls are refused.
constexpr int kMaxOperations = 4096;

using rpc::CallStreams;

template <typename Items>
std::vector<Operation> ToOperations(const Items& items) {
  std::vector<Operation> operations;
  operations.reserve(items.size());
  for (const auto& item : items) operations.push_back(ToOperation(item));
  return operations;
}

// What the caller learns of the workspace of an authorization.
struct Hints {
  bool lease = false;
  bool reloading = false;
};

// Empty if no workspace has a hint, and for calls other than authorizations. Called before the
// operations are submitted: the items may not exist afterwards.
template <typename Items>
std::vector<Hints> FindHints(LedgerService& ledger, const Items& items) {
  std::vector<Hints> found;
  if constexpr (std::is_same_v<typename Items::value_type, v1::AuthorizeItem>) {
    for (int i = 0; i < items.size(); ++i) {
      const std::string& workspace = items[i].workspace_id();
      const Hints hints{ledger.HasLeases(workspace), ledger.reloading().Has(workspace)};
      if (!hints.lease && !hints.reloading) continue;
      found.resize(static_cast<size_t>(items.size()));
      found[static_cast<size_t>(i)] = hints;
    }
  }
  return found;
}

template <typename Response>
void FromReplies(const std::vector<Reply>& replies, const std::vector<Hints>& hints,
                 Response& response) {
  for (const Reply& reply : replies) FromReply(reply, *response.add_results());
  if constexpr (std::is_same_v<Response, v1::AuthorizeResponse>) {
    for (size_t i = 0; i < hints.size(); ++i) {
      auto& result = *response.mutable_results(static_cast<int>(i));
      result.set_lease(hints[i].lease && result.granted());
      result.set_reloading(hints[i].reloading && result.denied_by() == v1::DENY_REASON_NO_CREDIT);
    }
  }
}

// Responds with the lease, or without one if the workspace gets none. Giving a lease back always
// works.
void RunLease(LedgerService& ledger, const v1::TakeLeaseRequest& request,
              std::function<void(Result<v1::TakeLeaseResponse>)> done) {
  v1::TakeLeaseResponse response;
  if (request.wanted_nano_usd() > 0 && !ledger.HasLeases(request.workspace_id())) {
    response.set_denied_by(v1::DENY_REASON_NO_LEASE);
    return done(std::move(response));
  }
  ledger.Submit({ToOperation(request)},
                [done = std::move(done)](Result<std::vector<Reply>> replies) {
                  if (!replies.ok()) return done(Fail{std::move(replies).error()});
                  v1::TakeLeaseResponse response;
                  FromReply(replies->front(), response);
                  done(std::move(response));
                });
}

// Responds to a call with the results of its operations, in order. The response must live until
// done.
template <typename Items, typename Response, typename Done>
void RunItems(LedgerService& ledger, const Items& items, Response& response,
              tracing::CallSpansPtr spans, Done done) {
  if (items.size() > kMaxOperations) {
    return done(rpc::ToStatus(BadRequest("too many operations in one call").error));
  }
  ledger.Submit(ToOperations(items),
                [&response, spans = std::move(spans), hints = FindHints(ledger, items),
                 done = std::move(done)](Result<std::vector<Reply>> replies) {
                  EndCall(spans, replies.ok() ? "" : replies.error().row().name);
                  if (!replies.ok()) return done(rpc::ToStatus(replies.error()));
                  FromReplies(*replies, hints, response);
                  done(grpc::Status::OK);
                });
}

template <typename Items, typename Response>
ServerUnaryReactor* RunAll(LedgerService& ledger, CallbackServerContext* context,
                           const Items& items, Response* response,
                           tracing::CallSpansPtr spans = nullptr) {
  ServerUnaryReactor* reactor = context->DefaultReactor();
  RunItems(ledger, items, *response, std::move(spans),
           [reactor](const grpc::Status& status) { reactor->Finish(status); });
  return reactor;
}

class BillingRpc : public v1::BillingService::CallbackService {
 public:
  explicit BillingRpc(LedgerService& ledger)
      : ledger_(ledger),
        authorizes_([&ledger](const auto& request, auto& response, auto done) {
          RunItems(ledger, request.items(), response,
                   tracing::BeginCall(kAuthorize, request.items()), std::move(done));
        }),
        voids_([&ledger](const auto& request, auto& response, auto done) {
          RunItems(ledger, request.items(), response, nullptr, std::move(done));
        }) {}
  void CloseStreams() {
    authorizes_.Close();
    voids_.Close();
  }

  ServerUnaryReactor* Authorize(CallbackServerContext* context, const v1::AuthorizeRequest* request,
                                v1::AuthorizeResponse* response) override {
    return RunAll(ledger_, context, request->items(), response,
                  tracing::BeginCall(kAuthorize, request->items()));
  }
  grpc::ServerBidiReactor<v1::AuthorizeCallsRequest, v1::AuthorizeCallsResponse>* AuthorizeCalls(
      CallbackServerContext*) override {
    return authorizes_.Open();
  }
  ServerUnaryReactor* Void(CallbackServerContext* context, const v1::VoidRequest* request,
                           v1::VoidResponse* response) override {
    return RunAll(ledger_, context, request->items(), response);
  }
  grpc::ServerBidiReactor<v1::VoidCallsRequest, v1::VoidCallsResponse>* VoidCalls(
      CallbackServerContext*) override {
    return voids_.Open();
  }
  ServerUnaryReactor* GetUsage(CallbackServerContext* context, const v1::GetUsageRequest* request,
                               v1::GetUsageResponse* response) override;
  ServerUnaryReactor* GetReceipt(CallbackServerContext* context,
                                 const v1::GetReceiptRequest* request,
                                 v1::GetReceiptResponse* response) override;
  ServerUnaryReactor* StoreAnswer(CallbackServerContext* context,
                                  const v1::StoreAnswerRequest* request,
                                  v1::StoreAnswerResponse* response) override;
  ServerUnaryReactor* GetAnswer(CallbackServerContext* context, const v1::GetAnswerRequest* request,
                                v1::GetAnswerResponse* response) override;

 private:
  LedgerService& ledger_;
  CallStreams<v1::AuthorizeCallsRequest, v1::AuthorizeCallsResponse> authorizes_;
  CallStreams<v1::VoidCallsRequest, v1::VoidCallsResponse> voids_;
};

class MeteringRpc : public v1::MeteringService::CallbackService {
 public:
  explicit MeteringRpc(LedgerService& ledger)
      : ledger_(ledger), meters_([&ledger](const auto& request, auto& response, auto done) {
          RunItems(ledger, request.ops(), response, tracing::BeginCall(kMeter, request.ops()),
                   std::move(done));
        }) {}
  void CloseStreams() { meters_.Close(); }

  ServerUnaryReactor* Meter(CallbackServerContext* context, const v1::MeterRequest* request,
                            v1::MeterResponse* response) override {
    return RunAll(ledger_, context, request->ops(), response,
                  tracing::BeginCall(kMeter, request->ops()));
  }
  grpc::ServerBidiReactor<v1::MeterCallsRequest, v1::MeterCallsResponse>* MeterCalls(
      CallbackServerContext*) override {
    return meters_.Open();
  }
  ServerUnaryReactor* TakeLease(CallbackServerContext* context, const v1::TakeLeaseRequest* request,
                                v1::TakeLeaseResponse* response) override {
    ServerUnaryReactor* reactor = context->DefaultReactor();
    RunLease(ledger_, *request, [reactor, response](Result<v1::TakeLeaseResponse> result) {
      if (!result.ok()) return reactor->Finish(rpc::ToStatus(result.error()));
      *response = std::move(*result);
      reactor->Finish(grpc::Status::OK);
    });
    return reactor;
  }

 private:
  LedgerService& ledger_;
  CallStreams<v1::MeterCallsRequest, v1::MeterCallsResponse> meters_;
};

// Responds to a call from a blocking read: read returns a SqlResult<T>, fill writes the T into the
// response.
template <typename ReadFn, typename FillFn>
ServerUnaryReactor* RunRead(LedgerService& ledger, CallbackServerContext* context, ReadFn read,
                            FillFn fill) {
  ServerUnaryReactor* reactor = context->DefaultReactor();
  ledger.Read(
      [reactor, read = std::move(read), fill = std::move(fill)](sql::Database& database) {
        auto result = read(database);
        if (!result.ok()) return reactor->Finish(rpc::ToStatus(sql::ToError(result.error())));
        fill(*result);
        reactor->Finish(grpc::Status::OK);
      },
      [reactor](Error refused) { reactor->Finish(rpc::ToStatus(refused)); },
      // context is valid until Finish, which both functions above call last.
      [context] { return context->IsCancelled(); });
  return reactor;
}

ServerUnaryReactor* BillingRpc::GetUsage(CallbackServerContext* context,
                                         const v1::GetUsageRequest* request,
                                         v1::GetUsageResponse* response) {
  return RunRead(
      ledger_, context,
      [request, now_us = ledger_.NowUs()](sql::Database& database) {
        return ReadUsage(database, request->workspace_id(), request->key_id(), request->start_us(),
                         request->end_us(), now_us);
      },
      [response](const UsageReport& report) { FromUsage(report, *response); });
}

ServerUnaryReactor* BillingRpc::GetReceipt(CallbackServerContext* context,
                                           const v1::GetReceiptRequest* request,
                                           v1::GetReceiptResponse* response) {
  // A key belongs to one workspace, so a search of all workspaces is refused.
  if (request->workspace_id().empty() || request->workspace_id() == kAnyWorkspace) {
    ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(rpc::ToStatus(BadRequest("one workspace must be named", "workspace_id").error));
    return reactor;
  }
  return RunRead(
      ledger_, context,
      [request](sql::Database& database) {
        return ReadReceipt(database, request->workspace_id(), request->id());
      },
      [response](const std::optional<ReceiptRecord>& found) {
        if (found) FromReceipt(*found, *response);
      });
}

ServerUnaryReactor* BillingRpc::StoreAnswer(CallbackServerContext* context,
                                            const v1::StoreAnswerRequest* request,
                                            v1::StoreAnswerResponse*) {
  const auto id = Id::FromBytes(request->request_id());
  if (!id || request->sealed().empty() || request->sealed().size() > kMaxSealedBytes) {
    ServerUnaryReactor* reactor = context->DefaultReactor();
    reactor->Finish(rpc::ToStatus(BadRequest("not a request id, or an answer too large").error));
    return reactor;
  }
  return RunRead(
      ledger_, context,
      [request, id = *id](sql::Database& database) -> sql::SqlResult<bool> {
        TRY(billing::StoreAnswer(database, request->workspace_id(),
                                 request->idempotency_key_digest(), id, request->sealed()));
        return true;
      },
      [](bool) {});
}

ServerUnaryReactor* BillingRpc::GetAnswer(CallbackServerContext* context,
                                          const v1::GetAnswerRequest* request,
                                          v1::GetAnswerResponse* response) {
  return RunRead(
      ledger_, context,
      [request](sql::Database& database) {
        return ReadAnswer(database, request->workspace_id(), request->idempotency_key_digest());
      },
      [response](std::string& sealed) { response->set_sealed(std::move(sealed)); });
}

// Far above the largest page of a list.
constexpr int kMaxSpends = 200;

class KeySpendRpc : public v1::KeySpendService::CallbackService {
 public:
  explicit KeySpendRpc(LedgerService& ledger) : ledger_(ledger) {}

  ServerUnaryReactor* ListKeySpend(CallbackServerContext* context,
                                   const v1::ListKeySpendRequest* request,
                                   v1::ListKeySpendResponse* response) override {
    if (request->key_ids_size() > kMaxSpends || request->top() > kMaxSpends) {
      ServerUnaryReactor* reactor = context->DefaultReactor();
      reactor->Finish(rpc::ToStatus(BadRequest("at most 200 keys at once").error));
      return reactor;
    }
    return RunRead(
        ledger_, context,
        [request, now_us = ledger_.NowUs()](sql::Database& database) {
          if (request->top() > 0) {
            return ReadTopSpent(database, request->workspace_id(), request->top(), now_us);
          }
          return ReadKeySpend(database, request->workspace_id(),
                              {request->key_ids().begin(), request->key_ids().end()}, now_us);
        },
        [response](const std::vector<KeySpend>& spends) {
          for (const KeySpend& spend : spends) {
            auto& into = *response->add_spends();
            into.set_key_id(spend.key_id);
            into.set_spent_nano_usd(spend.spent_nano_usd);
          }
        });
  }

 private:
  LedgerService& ledger_;
};

template <typename Response, typename Items>
void RunDirect(LedgerService& ledger, const Items& items,
               std::function<void(Result<Response>)> done, tracing::CallSpansPtr spans = nullptr) {
  ledger.Submit(ToOperations(items),
                [done = std::move(done), spans,
                 hints = FindHints(ledger, items)](Result<std::vector<Reply>> replies) {
                  EndCall(spans, replies.ok() ? "" : replies.error().row().name);
                  if (!replies.ok()) return done(Fail{std::move(replies).error()});
                  Response response;
                  FromReplies(*replies, hints, response);
                  done(std::move(response));
                });
}

}  // namespace

void OfferDirect(LedgerService& ledger, DirectServices& direct) {
  direct.authorize = [&ledger](const v1::AuthorizeRequest& request, auto done) {
    RunDirect<v1::AuthorizeResponse>(ledger, request.items(), std::move(done),
                                     tracing::BeginCall(kAuthorize, request.items()));
  };
  direct.void_holds = [&ledger](const v1::VoidRequest& request, auto done) {
    RunDirect<v1::VoidResponse>(ledger, request.items(), std::move(done));
  };
  direct.meter = [&ledger](const v1::MeterRequest& request, auto done) {
    RunDirect<v1::MeterResponse>(ledger, request.ops(), std::move(done),
                                 tracing::BeginCall(kMeter, request.ops()));
  };
  direct.take_lease = [&ledger](const v1::TakeLeaseRequest& request, auto done) {
    RunLease(ledger, request, std::move(done));
  };
}

RpcServices MakeRpcServices(LedgerService& ledger) {
  auto billing = std::make_unique<BillingRpc>(ledger);
  auto metering = std::make_unique<MeteringRpc>(ledger);
  RpcServices made;
  made.close_streams = [billing = billing.get(), metering = metering.get()] {
    billing->CloseStreams();
    metering->CloseStreams();
  };
  made.services.push_back(std::move(billing));
  made.services.push_back(std::move(metering));
  return made;
}

std::vector<std::unique_ptr<grpc::Service>> MakeAdminServices(LedgerService& ledger,
                                                              AdminOptions admin) {
  std::vector<std::unique_ptr<grpc::Service>> services;
  services.push_back(std::make_unique<KeySpendRpc>(ledger));
  services.push_back(MakeLedgerAdmin(ledger));
  services.push_back(MakeAdjustmentAdmin(ledger, admin));
  services.push_back(MakeUsageAdmin(ledger));
  services.push_back(MakeStatementAdmin(ledger));
  services.push_back(MakeDeadLetterAdmin(ledger));
  services.push_back(MakeVerificationAdmin(ledger));
  services.push_back(MakeAuditSource(ledger));
  services.push_back(MakeSummaryRpc(ledger));
  return services;
}

}  // namespace tollgate::billing
