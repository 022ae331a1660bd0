// Shared by the calls of people (payment_admin.cc, reload_admin.cc).
#pragma once

#include <optional>
#include <string>
#include <utility>

#include "common/admin/values.h"
#include "common/money/money.h"
#include "services/billing/payments/payment_admin.h"

namespace tollgate::billing::payments {

inline Fail<admin::Failure> SqlFailure(const sql::SqlError& error) {
  return Fail{admin::FromError(sql::ToError(error))};
}

inline Fail<admin::Failure> WrongState(const Payment& payment) {
  return admin::Precondition("PAYMENT_STATE", "the payment is " + std::string(Name(payment.state)) +
                                                  " (" + payment.provider + ")");
}

// One USD to 100,000 USD, in whole cents.
inline constexpr int64_t kMinNanoUsd = kNanoPerUsd;
inline constexpr int64_t kMaxNanoUsd = 100'000 * kNanoPerUsd;

inline AdminResult<void> CheckAmount(int64_t amount_nano_usd, const std::string& field) {
  if (amount_nano_usd % kNanoPerCent != 0)
    return admin::InvalidField(field, "whole cents are required");
  if (amount_nano_usd < kMinNanoUsd || amount_nano_usd > kMaxNanoUsd) {
    return admin::InvalidField(field, "an amount from 1 to 100000 USD is required");
  }
  return {};
}

// Finishes a change that may have found an error of the caller.
template <typename T>
AdminResult<T> FinishChange(const sql::SqlResult<void>& done,
                            std::optional<admin::Failure>& failure, T value) {
  if (!done.ok()) return SqlFailure(done.error());
  if (failure) return Fail{*std::move(failure)};
  return value;
}

}  // namespace tollgate::billing::payments
