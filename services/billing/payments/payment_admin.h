// What people do with payments: the calls of PaymentService and of the command line, without gRPC's
// messages. Calls block.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/admin/failure.h"
#include "services/billing/payments/payment_engine.h"

namespace tollgate::billing::payments {

template <typename T>
using AdminResult = admin::AdminResult<T>;

struct ReloadChange {
  std::optional<bool> enabled;
  std::optional<int64_t> threshold_nano_usd;
  std::optional<int64_t> amount_nano_usd;
  std::optional<int64_t> ceiling_nano_usd;
};

class PaymentAdmin {
 public:
  explicit PaymentAdmin(PaymentEngine& engine) : engine_(engine), store_(engine.store()) {}

  AdminResult<Payment> Create(const std::string& workspace, int64_t amount_nano_usd,
                              const std::string& request_id, const std::string& actor);
  AdminResult<Payment> Get(const std::string& workspace, const std::string& id);
  AdminResult<std::vector<Payment>> List(const std::string& workspace, int limit,
                                         const PaymentStore::Position& before);
  AdminResult<Payment> Confirm(const std::string& workspace, const std::string& id,
                               const std::string& reference, const std::string& actor);
  AdminResult<Payment> Cancel(const std::string& workspace, const std::string& id,
                              const std::string& reason, const std::string& actor);
  AdminResult<Refund> RefundPayment(const std::string& workspace, const std::string& id,
                                    int64_t amount_nano_usd, const std::string& reason,
                                    const std::string& request_id, const std::string& actor);

  AdminResult<std::vector<PaymentMethod>> Methods(const std::string& workspace);
  AdminResult<void> DeleteMethod(const std::string& workspace, const std::string& id,
                                 const std::string& actor);
  // The page's URL.
  AdminResult<std::string> SetupMethod(const std::string& workspace, const std::string& request_id);

  AdminResult<AutoReload> GetReload(const std::string& workspace);
  AdminResult<AutoReload> UpdateReload(const std::string& workspace, const ReloadChange& change,
                                       const std::string& actor);
  AdminResult<AutoReload> ResumeReload(const std::string& workspace, const std::string& actor);

 private:
  AdminResult<void> NeedsProvider() const;
  AdminResult<void> CheckReload(const AutoReload& reload) const;

  PaymentEngine& engine_;
  PaymentStore& store_;
};

}  // namespace tollgate::billing::payments
