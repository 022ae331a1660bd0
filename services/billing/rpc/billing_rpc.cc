#include "services/billing/rpc/billing_rpc.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/server_callback.h>

#include <utility>

#include "common/rpc/server.h"
#include "services/billing/rpc/convert.h"
#include "services/billing/rpc/dead_letter_rpc.h"
#include "services/billing/rpc/verify_runner.h"
#include "services/billing/storage/idempotency_keys.h"
#include "tollgate/billing/v1/billing.grpc.pb.h"

namespace tollgate::billing {
namespace {

using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

// Far above what any caller batches; a larger call is refused.
constexpr int kMaxOperations = 4096;

template <typename Items>
std::vector<Operation> ToOperations(const Items& items) {
  std::vector<Operation> operations;
  operations.reserve(items.size());
  for (const auto& item : items) operations.push_back(ToOperation(item));
  return operations;
}

// Replies to a call with the results of its operations, in their order.
template <typename Items, typename Response>
ServerUnaryReactor* RunAll(LedgerService& ledger, CallbackServerContext* context,
                           const Items& items, Response* response) {
  ServerUnaryReactor* reactor = context->DefaultReactor();
  if (items.size() > kMaxOperations) {
    reactor->Finish(rpc::ToStatus(BadRequest("too many operations in one call").error));
    return reactor;
  }
  ledger.Submit(ToOperations(items), [reactor, response](Result<std::vector<Reply>> replies) {
    if (!replies.ok()) return reactor->Finish(rpc::ToStatus(replies.error()));
    for (const Reply& reply : *replies) FromReply(reply, *response->add_results());
    reactor->Finish(grpc::Status::OK);
  });
  return reactor;
}

class BillingRpc : public v1::BillingService::CallbackService {
 public:
  explicit BillingRpc(LedgerService& ledger) : ledger_(ledger) {}

  ServerUnaryReactor* Authorize(CallbackServerContext* context, const v1::AuthorizeRequest* request,
                                v1::AuthorizeResponse* response) override {
    return RunAll(ledger_, context, request->items(), response);
  }
  ServerUnaryReactor* Void(CallbackServerContext* context, const v1::VoidRequest* request,
                           v1::VoidResponse* response) override {
    return RunAll(ledger_, context, request->items(), response);
  }
  ServerUnaryReactor* GetUsage(CallbackServerContext* context, const v1::GetUsageRequest* request,
                               v1::GetUsageResponse* response) override;
  ServerUnaryReactor* StoreAnswer(CallbackServerContext* context,
                                  const v1::StoreAnswerRequest* request,
                                  v1::StoreAnswerResponse* response) override;
  ServerUnaryReactor* GetAnswer(CallbackServerContext* context, const v1::GetAnswerRequest* request,
                                v1::GetAnswerResponse* response) override;

 private:
  LedgerService& ledger_;
};

class MeteringRpc : public v1::MeteringService::CallbackService {
 public:
  explicit MeteringRpc(LedgerService& ledger) : ledger_(ledger) {}

  ServerUnaryReactor* Meter(CallbackServerContext* context, const v1::MeterRequest* request,
                            v1::MeterResponse* response) override {
    return RunAll(ledger_, context, request->ops(), response);
  }

 private:
  LedgerService& ledger_;
};

// Replies to a call from a blocking read: read returns a SqlResult<T>, fill writes the T into the
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
      // Valid until Finish, which both functions above end with.
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
        auto stored =
            billing::StoreAnswer(database, request->workspace_id(),
                                 request->idempotency_key_digest(), id, request->sealed());
        if (!stored.ok()) return Fail{std::move(stored).error()};
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

class AdminRpc : public v1::BillingAdminService::CallbackService {
 public:
  explicit AdminRpc(LedgerService& ledger) : ledger_(ledger), verify_(ledger) {}

  ServerUnaryReactor* AddCredit(CallbackServerContext* context, const v1::AddCreditRequest* request,
                                v1::AddCreditResponse* response) override {
    return RunCommand(context, ToOperation(*request), WithBalance(response));
  }
  ServerUnaryReactor* SetCap(CallbackServerContext* context, const v1::SetCapRequest* request,
                             v1::SetCapResponse* response) override {
    return RunCommand(context, ToOperation(*request), WithBalance(response));
  }
  ServerUnaryReactor* RepairClock(CallbackServerContext* context,
                                  const v1::RepairClockRequest* request,
                                  v1::RepairClockResponse* response) override {
    return RunCommand(context, ToOperation(*request), [response](const Reply& reply) {
      response->set_moved_back_us(reply.moved_back_us);
    });
  }
  ServerUnaryReactor* GetBalance(CallbackServerContext* context,
                                 const v1::GetBalanceRequest* request,
                                 v1::GetBalanceResponse* response) override {
    return RunRead(
        ledger_, context,
        [request, now_us = ledger_.NowUs()](sql::Database& database) {
          return ReadBalance(database, request->workspace_id(), now_us);
        },
        [response](const Balance& balance) { FromBalance(balance, *response->mutable_balance()); });
  }
  ServerUnaryReactor* ListEntries(CallbackServerContext* context,
                                  const v1::ListEntriesRequest* request,
                                  v1::ListEntriesResponse* response) override {
    const int limit = request->limit() <= 0 ? 100 : std::min(request->limit(), 1000);
    return RunRead(
        ledger_, context,
        [request, limit](sql::Database& database) {
          return ReadEntries(database, request->workspace_id(), limit, request->before_sequence());
        },
        [response](const std::vector<Entry>& entries) {
          for (const Entry& entry : entries) FromEntry(entry, *response->add_entries());
        });
  }
  ServerUnaryReactor* ListDeadLetters(CallbackServerContext* context,
                                      const v1::ListDeadLettersRequest* request,
                                      v1::ListDeadLettersResponse* response) override {
    return billing::ListDeadLetters(ledger_, context, request, response);
  }
  ServerUnaryReactor* RetryDeadLetter(CallbackServerContext* context,
                                      const v1::RetryDeadLetterRequest* request,
                                      v1::RetryDeadLetterResponse* response) override {
    return billing::RetryDeadLetter(ledger_, context, request, response);
  }
  ServerUnaryReactor* WriteOffDeadLetter(CallbackServerContext* context,
                                         const v1::WriteOffDeadLetterRequest* request,
                                         v1::WriteOffDeadLetterResponse* response) override {
    return billing::WriteOffDeadLetter(ledger_, context, request, response);
  }
  ServerUnaryReactor* VerifyLedger(CallbackServerContext* context,
                                   const v1::VerifyLedgerRequest* request,
                                   v1::VerifyLedgerResponse* response) override {
    ServerUnaryReactor* reactor = context->DefaultReactor();
    const bool started = verify_.Start(
        request->workspace_id(), [context] { return context->IsCancelled(); },
        [reactor, response](Result<VerifyReport> report) {
          if (!report.ok()) return reactor->Finish(rpc::ToStatus(report.error()));
          if (report->stopped) return reactor->Finish(grpc::Status::CANCELLED);
          FromVerify(*report, *response);
          reactor->Finish(grpc::Status::OK);
        });
    if (!started) {
      reactor->Finish(
          {grpc::StatusCode::ABORTED,
           "ALREADY_RUNNING: a verification of the ledger is under way; wait for it, or "
           "run `tollgate verify-ledger --database URL` beside it"});
    }
    return reactor;
  }

 private:
  template <typename Response>
  static std::function<void(const Reply&)> WithBalance(Response* response) {
    return [response](const Reply& reply) {
      FromBalance(reply.balance, *response->mutable_balance());
    };
  }

  ServerUnaryReactor* RunCommand(CallbackServerContext* context, Operation operation,
                                 std::function<void(const Reply&)> fill) {
    ServerUnaryReactor* reactor = context->DefaultReactor();
    std::vector<Operation> operations;
    operations.push_back(std::move(operation));
    ledger_.Submit(std::move(operations), [reactor, fill = std::move(fill)](
                                              Result<std::vector<Reply>> replies) {
      if (!replies.ok()) return reactor->Finish(rpc::ToStatus(replies.error()));
      const Reply& reply = replies->front();
      if (!reply.ok && reply.denied_by == Deny::kUnavailable) {
        return reactor->Finish(rpc::ToStatus(
            Unavailable("the ledger of this workspace cannot be written at the moment").error));
      }
      if (!reply.ok) {
        if (reply.denied_by == Deny::kUnknownWorkspace) {
          return reactor->Finish(
              rpc::ToStatus(Error{.id = ErrorId::kNotFound,
                                  .message = "The workspace has no wallet: tollgate workspace open",
                                  .param = "workspace_id"}));
        }
        const bool reused = reply.denied_by == Deny::kIdReuse;
        return reactor->Finish(rpc::ToStatus(
            BadRequest(reused ? "this request id was used before with other values"
                              : "the workspace, the amount or the request id is not valid",
                       reused ? "request_id" : "")
                .error));
      }
      fill(reply);
      reactor->Finish(grpc::Status::OK);
    });
    return reactor;
  }

  LedgerService& ledger_;
  VerifyRunner verify_;
};

template <typename Response, typename Items>
void RunDirect(LedgerService& ledger, const Items& items,
               std::function<void(Result<Response>)> done) {
  ledger.Submit(ToOperations(items), [done = std::move(done)](Result<std::vector<Reply>> replies) {
    if (!replies.ok()) return done(Fail{std::move(replies).error()});
    Response response;
    for (const Reply& reply : *replies) FromReply(reply, *response.add_results());
    done(std::move(response));
  });
}

}  // namespace

void OfferDirect(LedgerService& ledger, DirectServices& direct) {
  direct.authorize = [&ledger](const v1::AuthorizeRequest& request, auto done) {
    RunDirect<v1::AuthorizeResponse>(ledger, request.items(), std::move(done));
  };
  direct.void_holds = [&ledger](const v1::VoidRequest& request, auto done) {
    RunDirect<v1::VoidResponse>(ledger, request.items(), std::move(done));
  };
  direct.meter = [&ledger](const v1::MeterRequest& request, auto done) {
    RunDirect<v1::MeterResponse>(ledger, request.ops(), std::move(done));
  };
}

std::vector<std::unique_ptr<grpc::Service>> MakeRpcServices(LedgerService& ledger) {
  std::vector<std::unique_ptr<grpc::Service>> services;
  services.push_back(std::make_unique<BillingRpc>(ledger));
  services.push_back(std::make_unique<MeteringRpc>(ledger));
  return services;
}

std::vector<std::unique_ptr<grpc::Service>> MakeAdminServices(LedgerService& ledger,
                                                              AdminOptions admin) {
  std::vector<std::unique_ptr<grpc::Service>> services;
  services.push_back(std::make_unique<AdminRpc>(ledger));
  services.push_back(MakeLedgerAdmin(ledger));
  services.push_back(MakeAdjustmentAdmin(ledger, admin));
  services.push_back(MakeUsageAdmin(ledger));
  services.push_back(MakeStatementAdmin(ledger));
  services.push_back(MakeDeadLetterAdmin(ledger));
  return services;
}

}  // namespace tollgate::billing
