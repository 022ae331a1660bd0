// tollgate.admin.v1.PaymentService for the payments of this process.
#pragma once

#include <memory>

#include "services/billing/payments/payments.h"

namespace grpc {
class Service;
}

namespace tollgate::billing {

// payments must outlive it.
std::unique_ptr<grpc::Service> MakePaymentRpc(payments::Payments& payments);

// tollgate.billing.v1.ClosingService.
std::unique_ptr<grpc::Service> MakeClosingRpc(payments::Payments& payments);

}  // namespace tollgate::billing
