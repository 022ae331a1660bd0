#include "services/billing/rpc/payments_rpc.h"

#include <grpcpp/grpcpp.h>
#include <grpcpp/support/server_callback.h>
#include <algorithm>

#include <utility>

#include "common/admin/person.h"
#include "common/base/time_units.h"
#include "common/base/try.h"
#include "services/billing/rpc/admin_calls.h"
#include "services/billing/rpc/payments_convert.h"
#include "tollgate/admin/v1/payments.grpc.pb.h"

namespace tollgate::billing {
namespace {

namespace av = admin::v1;
using admin::AdminResult;
using admin::Caller;
using admin::Parts;
using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;
using payments::Payments;
using payments::ReloadChange;

constexpr int64_t kSettleUs = 300'000'000;  // younger payments may still be under way

// Limited to the years 1 to 9999, like Timestamp.
int64_t UsOf(const google::protobuf::Timestamp& time) {
  const int64_t seconds = std::clamp<int64_t>(time.seconds(), -62'135'596'800, 253'402'300'799);
  return seconds * 1'000'000 + time.nanos() / 1000;
}

// Changes of the fields in the mask, or of the fields that are set. The mask has proto or JSON
// names.
AdminResult<ReloadChange> ChangeOf(const av::UpdateAutoReloadRequest& request) {
  const av::AutoReload& reload = request.auto_reload();
  std::vector<std::string> paths(request.update_mask().paths().begin(),
                                 request.update_mask().paths().end());
  if (paths.empty()) {
    if (reload.enabled()) paths.emplace_back("enabled");
    if (!reload.threshold_usd().empty()) paths.emplace_back("threshold_usd");
    if (!reload.amount_usd().empty()) paths.emplace_back("amount_usd");
    if (!reload.monthly_ceiling_usd().empty()) paths.emplace_back("monthly_ceiling_usd");
  }
  ReloadChange change;
  for (const std::string& path : paths) {
    const auto usd = [&](const std::string& text,
                         std::optional<int64_t>& into) -> AdminResult<void> {
      TRY(auto parsed, admin::ParseUsd(text, "auto_reload." + path));
      into = parsed;
      return {};
    };
    AdminResult<void> read;
    if (path == "enabled") {
      change.enabled = reload.enabled();
    } else if (path == "threshold_usd" || path == "thresholdUsd") {
      read = usd(reload.threshold_usd(), change.threshold_nano_usd);
    } else if (path == "amount_usd" || path == "amountUsd") {
      read = usd(reload.amount_usd(), change.amount_nano_usd);
    } else if (path == "monthly_ceiling_usd" || path == "monthlyCeilingUsd") {
      read = usd(reload.monthly_ceiling_usd(), change.ceiling_nano_usd);
    } else {
      return admin::InvalidField("update_mask", "\"" + path + "\" cannot be updated");
    }
    if (!read.ok()) return Fail{read.error()};
  }
  return change;
}

class PaymentRpc : public av::PaymentService::CallbackService {
 public:
  explicit PaymentRpc(Payments& payments) : payments_{payments} {}

  ServerUnaryReactor* CreatePayment(CallbackServerContext* context,
                                    const av::CreatePaymentRequest* request,
                                    av::Payment* response) override {
    return admin::Handle(
        context, request, response, payments_,
        [=](Payments& payments, const Caller& caller, const Parts& name) -> AdminResult<void> {
          TRY(auto amount, admin::ParseUsd(request->payment().amount_usd(), "payment.amount_usd"));
          TRY(RequireWallet(payments, name[0]));
          return Show(
              payments.admin().Create(name[0], amount, request->request_id(), OriginOf(caller)),
              response);
        });
  }
  ServerUnaryReactor* GetPayment(CallbackServerContext* context,
                                 const av::GetPaymentRequest* request,
                                 av::Payment* response) override {
    return admin::Handle(
        context, request, response, payments_,
        [=](Payments& payments, const Caller&, const Parts& name) -> AdminResult<void> {
          return Show(payments.admin().Get(name[0], name[1]), response);
        });
  }
  ServerUnaryReactor* ListPayments(CallbackServerContext* context,
                                   const av::ListPaymentsRequest* request,
                                   av::ListPaymentsResponse* response) override {
    return admin::Handle(context, request, response, payments_,
                         [=](Payments& payments, const Caller& caller) {
                           return List(payments, *request, caller, *response);
                         });
  }
  ServerUnaryReactor* ConfirmPayment(CallbackServerContext* context,
                                     const av::ConfirmPaymentRequest* request,
                                     av::Payment* response) override {
    return admin::Handle(
        context, request, response, payments_,
        [=](Payments& payments, const Caller& caller, const Parts& name) -> AdminResult<void> {
          return Show(payments.admin().Confirm(name[0], name[1], request->reference(),
                                               OriginOf(caller), admin::PersonOf(caller)),
                      response);
        });
  }
  ServerUnaryReactor* CancelPayment(CallbackServerContext* context,
                                    const av::CancelPaymentRequest* request,
                                    av::Payment* response) override {
    return admin::Handle(
        context, request, response, payments_,
        [=](Payments& payments, const Caller& caller, const Parts& name) -> AdminResult<void> {
          return Show(payments.admin().Cancel(name[0], name[1], request->reason(), OriginOf(caller),
                                              request->give_up()),
                      response);
        });
  }
  ServerUnaryReactor* RefundPayment(CallbackServerContext* context,
                                    const av::RefundPaymentRequest* request,
                                    av::Refund* response) override {
    return admin::Handle(context, request, response, payments_,
                         [=](Payments& payments, const Caller& caller, const Parts& name) {
                           return Refund(payments, *request, caller, name, *response);
                         });
  }
  ServerUnaryReactor* ReconcilePayments(CallbackServerContext* context,
                                        const av::ReconcilePaymentsRequest* request,
                                        av::ReconcilePaymentsResponse* response) override {
    return admin::Handle(context, request, response, payments_,
                         [=](Payments& payments, const Caller& caller) {
                           return Reconcile(payments, *request, caller, *response);
                         });
  }
  ServerUnaryReactor* ListPaymentMethods(CallbackServerContext* context,
                                         const av::ListPaymentMethodsRequest* request,
                                         av::ListPaymentMethodsResponse* response) override {
    return admin::Handle(context, request, response, payments_,
                         [=](Payments& payments, const Caller& caller, const Parts& name) {
                           return ListMethods(payments, *request, caller, name, *response);
                         });
  }
  ServerUnaryReactor* SetDefaultPaymentMethod(CallbackServerContext* context,
                                              const av::SetDefaultPaymentMethodRequest* request,
                                              av::PaymentMethod* response) override {
    return admin::Handle(
        context, request, response, payments_,
        [=](Payments& payments, const Caller& caller, const Parts& name) -> AdminResult<void> {
          auto chosen = payments.admin().ChooseMethod(name[0], name[1], OriginOf(caller));
          if (chosen.ok()) response->set_used_by_auto_reload(chosen->refused.empty());
          return Show(chosen, response);
        });
  }
  ServerUnaryReactor* DeletePaymentMethod(CallbackServerContext* context,
                                          const av::DeletePaymentMethodRequest* request,
                                          av::DeletePaymentMethodResponse* response) override {
    return admin::Handle(
        context, request, response, payments_,
        [=](Payments& payments, const Caller& caller, const Parts& name) -> AdminResult<void> {
          return payments.admin().DeleteMethod(name[0], name[1], OriginOf(caller));
        });
  }
  ServerUnaryReactor* SetupPaymentMethod(CallbackServerContext* context,
                                         const av::SetupPaymentMethodRequest* request,
                                         av::SetupPaymentMethodResponse* response) override {
    return admin::Handle(
        context, request, response, payments_,
        [=](Payments& payments, const Caller& caller, const Parts& name) -> AdminResult<void> {
          TRY(RequireWallet(payments, name[0]));
          TRY(auto url,
              payments.admin().SetupMethod(name[0], request->request_id(), OriginOf(caller)));
          response->set_setup_url(url);
          return {};
        });
  }
  ServerUnaryReactor* GetAutoReload(CallbackServerContext* context,
                                    const av::GetAutoReloadRequest* request,
                                    av::AutoReload* response) override {
    return admin::Handle(
        context, request, response, payments_,
        [=](Payments& payments, const Caller&, const Parts& name) -> AdminResult<void> {
          return Show(payments.admin().GetReload(name[0]), response);
        });
  }
  ServerUnaryReactor* UpdateAutoReload(CallbackServerContext* context,
                                       const av::UpdateAutoReloadRequest* request,
                                       av::AutoReload* response) override {
    return admin::Handle(
        context, request, response, payments_,
        [=](Payments& payments, const Caller& caller, const Parts& name) -> AdminResult<void> {
          TRY(auto change, ChangeOf(*request));
          TRY(RequireWallet(payments, name[0]));
          return Show(payments.admin().UpdateReload(name[0], change, OriginOf(caller)), response);
        });
  }
  ServerUnaryReactor* ResumeAutoReload(CallbackServerContext* context,
                                       const av::ResumeAutoReloadRequest* request,
                                       av::AutoReload* response) override {
    return admin::Handle(
        context, request, response, payments_,
        [=](Payments& payments, const Caller& caller, const Parts& name) -> AdminResult<void> {
          return Show(payments.admin().ResumeReload(name[0], OriginOf(caller)), response);
        });
  }

 private:
  template <typename T, typename Response>
  static AdminResult<void> Show(const AdminResult<T>& result, Response* response) {
    if (!result.ok()) return Fail{result.error()};
    ToResource(*result, *response);
    return {};
  }

  // A payment for a workspace that does not exist would have no owner.
  static AdminResult<void> RequireWallet(Payments& payments, const std::string& workspace) {
    auto open = payments.engine().ledger().HasWallet(workspace);
    if (!open.ok()) return Fail{admin::FromError(open.error())};
    if (!*open) return Fail{NoWallet(workspace)};
    return {};
  }

  static AdminResult<payments::PaymentStore::Position> WantedOf(const std::string& filter) {
    static constexpr std::string_view kFields[] = {"state", "origin"};
    TRY(auto terms, admin::ParseFilter(filter, kFields));
    payments::PaymentStore::Position wanted;
    for (const admin::FilterTerm& term : terms) {
      if (term.field == "origin") {
        if (term.value != "CUSTOMER" && term.value != "AUTO_RELOAD") {
          return admin::InvalidField("filter", "origin is CUSTOMER or AUTO_RELOAD");
        }
        wanted.reload = term.value == "AUTO_RELOAD";
        continue;
      }
      av::PaymentState state;
      if (!av::PaymentState_Parse("PAYMENT_STATE_" + term.value, &state) || state == 0) {
        return admin::InvalidField("filter", "there is no state \"" + term.value + "\"");
      }
      wanted.state = static_cast<payments::PaymentState>(state);
    }
    return wanted;
  }
  static AdminResult<void> List(Payments& payments, const av::ListPaymentsRequest& request,
                                const Caller& caller, av::ListPaymentsResponse& response) {
    // "" means all workspaces. Admit allows it only to callers who may read everything.
    std::string workspace;
    if (request.parent() != "workspaces/-") {
      TRY(auto parts, admin::NameParts(request));
      workspace = parts.front();
    }
    TRY(auto page, admin::PageOfList(request, caller));
    TRY(auto wanted, WantedOf(request.filter()));
    payments::PaymentStore::Position& before = wanted;
    const std::string& position = page.position;
    if (const size_t comma = position.find(','); comma != std::string::npos) {
      before.created_us = std::strtoll(position.c_str(), nullptr, 10);
      before.id = position.substr(comma + 1);
    }
    TRY(auto found, payments.admin().List(workspace, page.size + 1, before));
    admin::FillPage(
        page, found, response,
        [&](const payments::Payment& payment) { ToResource(payment, *response.add_payments()); },
        [](const payments::Payment& last) {
          return std::to_string(last.created_us) + "," + last.id;
        });
    return {};
  }

  static AdminResult<void> ListMethods(Payments& payments,
                                       const av::ListPaymentMethodsRequest& request,
                                       const Caller& caller, const Parts& name,
                                       av::ListPaymentMethodsResponse& response) {
    TRY(auto page, admin::PageOfList(request, caller));
    TRY(auto methods, payments.admin().Methods(name[0]));
    // The position is the last method of the previous page.
    size_t at = 0;
    if (!page.position.empty()) {
      const auto last = std::ranges::find(methods, page.position, &payments::PaymentMethod::id);
      if (last == methods.end()) {
        return admin::InvalidField("page_token", "the list has changed: begin again");
      }
      at = static_cast<size_t>(last - methods.begin()) + 1;
    }
    const size_t end = std::min(methods.size(), at + static_cast<size_t>(page.size));
    const auto used = std::ranges::find(methods, "", &payments::PaymentMethod::refused);
    const auto used_index = static_cast<size_t>(used - methods.begin());
    for (size_t i = at; i < end; ++i) {
      av::PaymentMethod& method = *response.add_payment_methods();
      ToResource(methods[i], method);
      method.set_used_by_auto_reload(i == used_index);
    }
    if (end < methods.size()) {
      response.set_next_page_token(admin::EncodePageToken(page.binding, methods[end - 1].id));
    }
    return {};
  }

  static AdminResult<void> Refund(Payments& payments, const av::RefundPaymentRequest& request,
                                  const Caller& caller, const Parts& name, av::Refund& response) {
    TRY(auto amount, admin::ParseUsd(request.amount_usd(), "amount_usd"));
    if (amount > payments.engine().second_person_above_nano_usd()) {
      TRY(admin::RequireProved(admin::PersonOf(caller)));
    }
    TRY(auto refund,
        payments.admin().RefundPayment(name[0], name[1], amount, request.reason(),
                                       request.request_id(), OriginOf(caller), request.adopt()));
    response.set_payment(request.name());
    response.set_amount_usd(admin::FormatUsd(refund.amount_nano_usd));
    response.set_submitted(refund.state == payments::RefundState::kSubmitted);
    response.set_state(std::string(Name(refund.state)));
    response.set_provider_id(refund.provider_id);
    return {};
  }

  static AdminResult<void> Reconcile(Payments& payments,
                                     const av::ReconcilePaymentsRequest& request,
                                     const Caller& caller,
                                     av::ReconcilePaymentsResponse& response) {
    const int64_t now_us = payments.engine().NowUs();
    int64_t end_us = request.has_end_time() ? UsOf(request.end_time()) : now_us;
    auto restored = payments.engine().store().FindRestored();
    if (!restored.ok()) return Fail{admin::FromError(sql::ToError(restored.error()))};
    // What was paid just before a restore is lost, too.
    end_us = std::min(end_us, *restored ? now_us : now_us - kSettleUs);
    const int64_t start_us =
        request.has_start_time() ? UsOf(request.start_time()) : end_us - 30 * kDayUs;
    if (start_us >= end_us) {
      return admin::InvalidField("start_time", "the start must be before the end");
    }
    auto result = payments::Reconcile(payments.engine(), start_us, end_us, request.adopt());
    if (!result.ok()) return Fail{admin::FromError(result.error())};
    auto logged = payments.engine().store().Log(audit::RecordOf(
        OriginOf(caller), now_us, "payment.reconcile", "", "",
        std::to_string(result->payments) + " payments, " +
            std::to_string(result->differences.size()) + " differences" +
            (request.adopt() ? ", adopted " + std::to_string(result->adopted) : "")));
    if (!logged.ok()) return Fail{admin::FromError(sql::ToError(logged.error()))};
    ToResource(*result, response);
    return {};
  }

  const OnPart<Payments> payments_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakePaymentRpc(payments::Payments& payments) {
  return std::make_unique<PaymentRpc>(payments);
}

}  // namespace tollgate::billing
