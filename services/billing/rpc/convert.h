// Conversions between protos and the plain values of the ledger.
#pragma once

#include "services/billing/domain/operations.h"
#include "services/billing/storage/reports.h"
#include "services/billing/storage/verify.h"
#include "tollgate/billing/v1/billing.pb.h"

namespace tollgate::billing {

Operation ToOperation(const v1::AuthorizeItem& item);
Operation ToOperation(const v1::VoidItem& item);
Operation ToOperation(const v1::MeterOp& meter);
Operation ToOperation(const v1::AddCreditRequest& request);
Operation ToOperation(const v1::SetCapRequest& request);
Operation ToOperation(const v1::RepairClockRequest& request);
ResolveDeadLetter ToResolve(const v1::RetryDeadLetterRequest& request);
ResolveDeadLetter ToResolve(const v1::WriteOffDeadLetterRequest& request);

void FromReply(const Reply& reply, v1::AuthorizeResult& into);
void FromReply(const Reply& reply, v1::MeterResult& into);
void FromBalance(const Balance& balance, v1::Balance& into);
void FromDeadLetter(const DeadLetter& letter, v1::DeadLetter& into);
void FromEntry(const Entry& entry, v1::Entry& into);
void FromUsage(const UsageReport& report, v1::GetUsageResponse& into);
void FromVerify(const VerifyReport& report, v1::VerifyLedgerResponse& into);

}  // namespace tollgate::billing
