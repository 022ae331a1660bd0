// Columns of the tables, in the order of their fields.
#pragma once

#include <string>
#include <vector>

#include "common/sql/sql.h"
#include "services/billing/payments/payment_types.h"

namespace tollgate::billing::payments {

inline constexpr std::string_view kPaymentColumns =
    "workspace, id, provider, state, reload, amount, customer, method, provider_id, checkout_id,"
    " checkout_url, reason, reference, actor, credited, refunded, disputed, created_us, updated_us,"
    " sent_us, check_us, attempts, last_sent_us, cancel_us, confirmed_by, idempotency_keys,"
    " failed_us, watch_us";
Payment ReadPayment(const sql::Row& row);
inline constexpr std::string_view kReloadColumns =
    "workspace, enabled, threshold, amount, ceiling, state, pause_reason, reload_id, next_us,"
    " declines, month, month_charged, version, actor, updated_us, confirmed_us, confirm_page";
AutoReload ReadReload(const sql::Row& row);
inline constexpr std::string_view kRefundColumns =
    "workspace, id, payment, state, amount, provider_id, reason, actor, created_us, updated_us,"
    " check_us, attempts, extra_charge";
Refund ReadRefundRow(const sql::Row& row);
inline constexpr std::string_view kMethodColumns =
    "workspace, id, provider, brand, last4, expiry, created_us, deleted_us, chosen_us, refused";
PaymentMethod ReadMethodRow(const sql::Row& row);
inline constexpr std::string_view kDisputeColumns =
    "workspace, id, payment, state, amount, taken, fraud_warning, due_us, opened_us, closed_us";
Dispute ReadDisputeRow(const sql::Row& row);
inline constexpr std::string_view kEventColumns =
    "workspace, id, type, object, payment, received_us, check_us, attempts";
ProviderEvent ReadEventRow(const sql::Row& row);

// Values of the columns, shard first. The values must outlive the result.
std::vector<sql::Param> Cells(const Payment& payment);
std::vector<sql::Param> Cells(const AutoReload& reload);
std::vector<sql::Param> Cells(const Refund& refund);
std::vector<sql::Param> Cells(const PaymentMethod& method);
std::vector<sql::Param> Cells(const Dispute& dispute);
std::vector<sql::Param> Cells(const ProviderEvent& event);

std::string EventHash(const std::string& before, const PaymentEvent& event);

}  // namespace tollgate::billing::payments
