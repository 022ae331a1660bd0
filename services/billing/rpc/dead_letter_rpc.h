// The part of BillingAdminService that is about dead letters.
#pragma once

#include <grpcpp/support/server_callback.h>

#include "services/billing/commit/ledger_service.h"
#include "tollgate/billing/v1/billing.pb.h"

namespace tollgate::billing {

grpc::ServerUnaryReactor* ListDeadLetters(LedgerService& ledger,
                                          grpc::CallbackServerContext* context,
                                          const v1::ListDeadLettersRequest* request,
                                          v1::ListDeadLettersResponse* response);
grpc::ServerUnaryReactor* RetryDeadLetter(LedgerService& ledger,
                                          grpc::CallbackServerContext* context,
                                          const v1::RetryDeadLetterRequest* request,
                                          v1::RetryDeadLetterResponse* response);
grpc::ServerUnaryReactor* WriteOffDeadLetter(LedgerService& ledger,
                                             grpc::CallbackServerContext* context,
                                             const v1::WriteOffDeadLetterRequest* request,
                                             v1::WriteOffDeadLetterResponse* response);

}  // namespace tollgate::billing
