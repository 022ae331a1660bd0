// Conversions between protos and the ledger's plain values.
#pragma once

#include "services/billing/domain/operations.h"
#include "services/billing/reports/receipts.h"
#include "services/billing/reports/reports.h"
#include "tollgate/billing/v1/billing.pb.h"

namespace tollgate::billing {

Operation ToOperation(const v1::AuthorizeItem& item);
Operation ToOperation(const v1::VoidItem& item);
Operation ToOperation(const v1::MeterOp& meter);
Operation ToOperation(const v1::TakeLeaseRequest& request);

void FromReply(const Reply& reply, v1::AuthorizeResult& into);
void FromReply(const Reply& reply, v1::MeterResult& into);
void FromReply(const Reply& reply, v1::TakeLeaseResponse& into);
void FromBalance(const Balance& balance, v1::Balance& into);
void FromReceipt(const ReceiptRecord& record, v1::GetReceiptResponse& into);
void FromUsage(const UsageReport& report, v1::GetUsageResponse& into);

}  // namespace tollgate::billing
