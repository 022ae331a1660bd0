// Calls of PaymentService and of the command line, without gRPC types. Calls block.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "common/admin/failure.h"
#include "common/admin/person.h"
#include "common/audit/log.h"
#include "services/billing/payments/payment_engine.h"

namespace tollgate::billing::payments {

template <typename T>
using AdminResult = admin::AdminResult<T>;

struct ReloadChange {
  std::optional<bool> enabled;
  std::optional<int64_t> threshold_nano_usd;
  std::optional<int64_t> amount_nano_usd;
  std::optional<int64_t> ceiling_nano_usd;

  // All fields as text.
  std::string Content() const {
    const auto text = [](const std::optional<int64_t>& value) {
      return " " + (value ? std::to_string(*value) : std::string("-"));
    };
    return "reload " +
           std::string(!enabled   ? "-"
                       : *enabled ? "on"
                                  : "off") +
           text(threshold_nano_usd) + text(amount_nano_usd) + text(ceiling_nano_usd);
  }
};

class PaymentAdmin {
 public:
  explicit PaymentAdmin(PaymentEngine& engine) : engine_(engine), store_(engine.store()) {}

  AdminResult<Payment> Create(const std::string& workspace, int64_t amount_nano_usd,
                              const std::string& request_id, const audit::Origin& by);
  AdminResult<Payment> Get(const std::string& workspace, const std::string& id);
  AdminResult<std::vector<Payment>> List(const std::string& workspace, int limit,
                                         const PaymentStore::Position& before);
  // Above the limit for one person it takes two calls by two persons (ADR 0053).
  AdminResult<Payment> Confirm(const std::string& workspace, const std::string& id,
                               const std::string& reference, const audit::Origin& by,
                               const admin::Person& person);
  // give_up: ends a payment whose result is unknown, whatever the provider says.
  AdminResult<Payment> Cancel(const std::string& workspace, const std::string& id,
                              const std::string& reason, const audit::Origin& by,
                              bool give_up = false);
  // adopt: the provider's id of a refund that was made there; only its credit is taken.
  AdminResult<Refund> RefundPayment(const std::string& workspace, const std::string& id,
                                    int64_t amount_nano_usd, const std::string& reason,
                                    const std::string& request_id, const audit::Origin& by,
                                    const std::string& adopt = "");

  AdminResult<std::vector<PaymentMethod>> Methods(const std::string& workspace);
  // Makes it the card that auto-reload charges first.
  AdminResult<PaymentMethod> ChooseMethod(const std::string& workspace, const std::string& id,
                                          const audit::Origin& by);
  AdminResult<void> DeleteMethod(const std::string& workspace, const std::string& id,
                                 const audit::Origin& by);
  // Returns the URL of the page.
  AdminResult<std::string> SetupMethod(const std::string& workspace, const std::string& request_id,
                                       const audit::Origin& by);

  // Called before a workspace closes. If it has no credit, holds or debt, switches auto-reload off
  // and deletes the cards. Returns whether it may close: no charge is on its way either.
  AdminResult<bool> PrepareClose(const std::string& workspace, const audit::Origin& by);

  AdminResult<AutoReload> GetReload(const std::string& workspace);
  AdminResult<AutoReload> UpdateReload(const std::string& workspace, const ReloadChange& change,
                                       const audit::Origin& by);
  AdminResult<AutoReload> ResumeReload(const std::string& workspace, const audit::Origin& by);

 private:
  AdminResult<Refund> CheckRefund(Refund refund, const std::string& adopt);
  AdminResult<void> MakeRoom(const Payment& payment, const Refund& adopted);
  // Whether the transfer is confirmed now: not so if it waits for a second person.
  sql::SqlResult<AdminResult<bool>> ConfirmBy(WorkspaceTx& tx, Payment& payment,
                                              const std::string& reference,
                                              const admin::Person& person) const;
  AdminResult<void> RemoveMethod(const std::string& workspace, const std::string& id,
                                 const std::string& reason, const audit::Origin& by);
  AdminResult<void> DeleteMethods(const std::string& workspace, const audit::Origin& by);
  AdminResult<void> NeedsProvider() const;
  AdminResult<void> CheckReload(const AutoReload& reload) const;

  PaymentEngine& engine_;
  PaymentStore& store_;
};

}  // namespace tollgate::billing::payments
