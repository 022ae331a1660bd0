#include <algorithm>
#include <charconv>

#include "services/billing/rpc/admin_calls.h"
#include "services/billing/reports/transactions.h"
#include "tollgate/admin/v1/adjustments.grpc.pb.h"

namespace tollgate::billing {
namespace {

namespace pb = tollgate::admin::v1;

using admin::AdminResult;
using admin::Caller;
using admin::Failure;
using admin::FormatUsd;
using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

constexpr std::string_view kGrantName = "workspaces/*/creditGrants/*";
constexpr std::string_view kAdjustmentName = "workspaces/*/adjustments/*";
constexpr size_t kMaxReason = 512;
constexpr size_t kMaxReference = 128;

struct KindRow {
  pb::AdjustmentKind kind;
  CommandKind command;
};
constexpr KindRow kKinds[] = {
    {pb::ADJUSTMENT_KIND_REFUND, CommandKind::kRefund},
    {pb::ADJUSTMENT_KIND_CREDIT, CommandKind::kCreditAdjustment},
    {pb::ADJUSTMENT_KIND_DEBIT, CommandKind::kDebitAdjustment},
    {pb::ADJUSTMENT_KIND_CHARGEBACK, CommandKind::kChargeback},
    {pb::ADJUSTMENT_KIND_WRITE_OFF, CommandKind::kWriteOff},
};
std::optional<CommandKind> CommandOf(pb::AdjustmentKind kind) {
  for (const KindRow& row : kKinds) {
    if (row.kind == kind) return row.command;
  }
  return std::nullopt;
}
std::vector<CommandKind> AdjustmentCommands() {
  std::vector<CommandKind> kinds;
  for (const KindRow& row : kKinds) kinds.push_back(row.command);
  return kinds;
}
bool IsAdjustment(const Command& command) {
  return std::any_of(std::begin(kKinds), std::end(kKinds),
                     [&](const KindRow& row) { return row.command == command.kind; });
}
bool IsGrant(const Command& command) { return command.kind == CommandKind::kAddCredit; }

void Fill(const Command& command, pb::CreditGrant& into) {
  into.set_name("workspaces/" + command.workspace + "/creditGrants/" + command.command_id);
  into.set_amount_usd(FormatUsd(command.amount_nano_usd));
  into.set_paid(!command.granted);
  into.set_reason(command.reason);
  into.set_actor(command.actor);
  SetTime(command.at_us, *into.mutable_create_time());
}

void Fill(const Command& command, pb::Adjustment& into) {
  into.set_name("workspaces/" + command.workspace + "/adjustments/" + command.command_id);
  for (const KindRow& row : kKinds) {
    if (row.command == command.kind) into.set_kind(row.kind);
  }
  into.set_amount_usd(FormatUsd(command.amount_nano_usd));
  into.set_granted(command.granted);
  into.set_reason(command.reason);
  into.set_reference(command.reference);
  into.set_state(static_cast<pb::AdjustmentState>(command.state));
  into.set_actor(command.actor);
  SetTime(command.at_us, *into.mutable_create_time());
  into.set_decided_by(command.decided_by);
  if (command.decided_us > 0) SetTime(command.decided_us, *into.mutable_decide_time());
}

// Reads this command and fills the response with it.
template <typename Response>
AdminResult<void> ReadInto(sql::Database& database, const std::string& workspace,
                           const std::string& id, bool (*fits)(const Command&),
                           Response& response) {
  auto found = ReadCommandById(database, workspace, id);
  if (!found.ok()) return SqlFailure(found);
  if (!*found || !fits(**found)) {
    return admin::NotFound("nothing was executed with this request_id in the workspace " +
                           workspace + "; repeating the call with it is safe");
  }
  Fill(**found, response);
  return {};
}

AdminResult<int64_t> AmountAboveZero(const std::string& text, const std::string& field) {
  auto amount = admin::ParseUsd(text, field);
  if (amount && *amount <= 0) return admin::InvalidField(field, "the amount must be above zero");
  return amount;
}

AdminResult<AddCredit> AddCreditOf(const pb::CreateCreditGrantRequest& request,
                                   const Caller& caller, const AdminOptions& options) {
  auto parts = admin::NameParts("workspaces/*", request.parent(), "parent");
  if (!parts) return Fail{parts.error()};
  auto id = admin::RequiredRequestId(request.request_id());
  if (!id) return Fail{id.error()};
  const pb::CreditGrant& grant = request.credit_grant();
  auto amount = AmountAboveZero(grant.amount_usd(), "credit_grant.amount_usd");
  if (!amount) return Fail{amount.error()};
  if (grant.reason().size() > kMaxReason) {
    return admin::InvalidField("credit_grant.reason", "a reason has at most 512 bytes");
  }
  if (*amount > options.known_caller_above_nano_usd) {
    if (auto known = admin::RequireStepUp(caller); !known) return Fail{known.error()};
  }
  AddCredit command;
  command.workspace = parts->front();
  command.command_id = *std::move(id);
  command.amount_nano_usd = *amount;
  command.granted = !grant.paid();
  command.actor = caller.actor;
  command.address = caller.address;
  command.reason = grant.reason();
  command.open_only = true;
  return command;
}

AdminResult<Correct> CorrectOf(const pb::CreateAdjustmentRequest& request, const Caller& caller,
                               const AdminOptions& options) {
  auto parts = admin::NameParts("workspaces/*", request.parent(), "parent");
  if (!parts) return Fail{parts.error()};
  auto id = admin::RequiredRequestId(request.request_id());
  if (!id) return Fail{id.error()};
  const pb::Adjustment& adjustment = request.adjustment();
  const auto kind = CommandOf(adjustment.kind());
  if (!kind) return admin::InvalidField("adjustment.kind", "a kind of adjustment is required");
  auto amount = AmountAboveZero(adjustment.amount_usd(), "adjustment.amount_usd");
  if (!amount) return Fail{amount.error()};
  if (auto given = RequiredText(adjustment.reason(), kMaxReason, "adjustment.reason"); !given) {
    return Fail{given.error()};
  }
  if (adjustment.reference().size() > kMaxReference) {
    return admin::InvalidField("adjustment.reference", "a reference has at most 128 bytes");
  }
  // Above this amount the requester must be identified, so that the second person can be told
  // apart.
  if (*amount > options.known_caller_above_nano_usd) {
    if (auto known = admin::RequireStepUp(caller); !known) return Fail{known.error()};
  }
  Correct command;
  command.workspace = parts->front();
  command.command_id = *std::move(id);
  command.kind = *kind;
  command.amount_nano_usd = *amount;
  command.granted = adjustment.granted();
  command.actor = caller.actor;
  command.address = caller.address;
  command.reason = adjustment.reason();
  command.reference = adjustment.reference();
  return command;
}

AdminResult<CommandQuery> FilterOf(const pb::ListAdjustmentsRequest& request, CommandQuery query) {
  static constexpr std::string_view kTexts[] = {"state", "kind"};
  auto terms = admin::ParseFilter(request.filter(), kTexts);
  if (!terms) return Fail{terms.error()};
  for (const admin::FilterTerm& term : *terms) {
    if (term.field == "state") {
      pb::AdjustmentState state;
      if (!pb::AdjustmentState_Parse("ADJUSTMENT_STATE_" + term.value, &state) || state == 0) {
        return admin::InvalidField("filter", "state is POSTED, PENDING_APPROVAL or REJECTED");
      }
      query.state = static_cast<CommandState>(state);
    } else {
      pb::AdjustmentKind kind;
      if (!pb::AdjustmentKind_Parse("ADJUSTMENT_KIND_" + term.value, &kind) || kind == 0) {
        return admin::InvalidField("filter",
                                   "kind is REFUND, CREDIT, DEBIT, CHARGEBACK or WRITE_OFF");
      }
      query.kinds = {*CommandOf(kind)};
    }
  }
  return query;
}

// Parses "1763700000000000:id": time and id of the last command.
bool ParsePosition(const std::string& text, CommandQuery& query) {
  if (text.empty()) return true;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), query.after_us);
  if (error != std::errc() || *end != ':') return false;
  query.after_id = end + 1;
  return !query.after_id.empty();
}

class AdjustmentRpc : public pb::AdjustmentService::CallbackService {
 public:
  AdjustmentRpc(LedgerService& ledger, AdminOptions options) : ledger_(ledger), options_(options) {}

  ServerUnaryReactor* CreateCreditGrant(CallbackServerContext* context,
                                        const pb::CreateCreditGrantRequest* request,
                                        pb::CreditGrant* response) override {
    auto caller = admin::Admit(*context, *request);
    if (!caller) return Refused(context, caller.error());
    auto command = AddCreditOf(*request, *caller, options_);
    if (!command) return Refused(context, *caller, command.error());
    return Execute(context, *std::move(command), IsGrant, response);
  }
  ServerUnaryReactor* GetCreditGrant(CallbackServerContext* context,
                                     const pb::GetCreditGrantRequest* request,
                                     pb::CreditGrant* response) override {
    auto caller = admin::Admit(*context, *request);
    if (!caller) return Refused(context, caller.error());
    return Get(context, kGrantName, request->name(), IsGrant, response);
  }
  ServerUnaryReactor* ListCreditGrants(CallbackServerContext* context,
                                       const pb::ListCreditGrantsRequest* request,
                                       pb::ListCreditGrantsResponse* response) override {
    auto caller = admin::Admit(*context, *request);
    if (!caller) return Refused(context, caller.error());
    auto page = PageOf(*request, *caller, "ListCreditGrants", "");
    if (!page) return Refused(context, page.error());
    CommandQuery query;
    query.kinds = {CommandKind::kAddCredit};
    return List(context, request->parent(), std::move(query), *page, response,
                [response] { return response->add_credit_grants(); });
  }

  ServerUnaryReactor* CreateAdjustment(CallbackServerContext* context,
                                       const pb::CreateAdjustmentRequest* request,
                                       pb::Adjustment* response) override {
    auto caller = admin::Admit(*context, *request);
    if (!caller) return Refused(context, caller.error());
    auto command = CorrectOf(*request, *caller, options_);
    if (!command) return Refused(context, *caller, command.error());
    return Execute(context, *std::move(command), IsAdjustment, response);
  }
  ServerUnaryReactor* GetAdjustment(CallbackServerContext* context,
                                    const pb::GetAdjustmentRequest* request,
                                    pb::Adjustment* response) override {
    auto caller = admin::Admit(*context, *request);
    if (!caller) return Refused(context, caller.error());
    return Get(context, kAdjustmentName, request->name(), IsAdjustment, response);
  }
  ServerUnaryReactor* ListAdjustments(CallbackServerContext* context,
                                      const pb::ListAdjustmentsRequest* request,
                                      pb::ListAdjustmentsResponse* response) override {
    auto caller = admin::Admit(*context, *request);
    if (!caller) return Refused(context, caller.error());
    auto page = PageOf(*request, *caller, "ListAdjustments", request->filter());
    if (!page) return Refused(context, page.error());
    CommandQuery all;
    all.kinds = AdjustmentCommands();
    auto query = FilterOf(*request, std::move(all));
    if (!query) return Refused(context, query.error());
    return List(context, request->parent(), *std::move(query), *page, response,
                [response] { return response->add_adjustments(); });
  }

  ServerUnaryReactor* ApproveAdjustment(CallbackServerContext* context,
                                        const pb::ApproveAdjustmentRequest* request,
                                        pb::Adjustment* response) override {
    auto caller = admin::Admit(*context, *request);
    if (!caller) return Refused(context, caller.error());
    return DecideOn(context, *caller, *request, true, response);
  }
  ServerUnaryReactor* RejectAdjustment(CallbackServerContext* context,
                                       const pb::RejectAdjustmentRequest* request,
                                       pb::Adjustment* response) override {
    auto caller = admin::Admit(*context, *request);
    if (!caller) return Refused(context, caller.error());
    return DecideOn(context, *caller, *request, false, response);
  }

 private:
  // Runs the command and returns it as stored.
  template <typename Command, typename Response>
  ServerUnaryReactor* Execute(CallbackServerContext* context, Command command,
                              bool (*fits)(const billing::Command&), Response* response) {
    ServerUnaryReactor* reactor = context->DefaultReactor();
    const std::string workspace = command.workspace;
    const std::string id = command.command_id;
    SubmitAdmin(ledger_, reactor, std::move(command),
                [this, context, reactor, workspace, id, fits, response](const Reply&) {
                  ReadAndFinish(ledger_, context, reactor, [=](sql::Database& database) {
                    return ReadInto(database, workspace, id, fits, *response);
                  });
                });
    return reactor;
  }

  template <typename Response>
  ServerUnaryReactor* Get(CallbackServerContext* context, std::string_view pattern,
                          const std::string& name, bool (*fits)(const Command&),
                          Response* response) {
    auto parts = admin::NameParts(pattern, name, "name");
    if (!parts) return Refused(context, parts.error());
    return RunAdminRead(ledger_, context, [=, parts = *parts](sql::Database& database) {
      return ReadInto(database, parts[0], parts[1], fits, *response);
    });
  }

  template <typename Response, typename AddFn>
  ServerUnaryReactor* List(CallbackServerContext* context, const std::string& parent,
                           CommandQuery query, const Page& page, Response* response, AddFn add) {
    // "workspaces/-" means all workspaces. Admit allows it only to callers who may read everything.
    if (parent != "workspaces/-") {
      auto parts = admin::NameParts("workspaces/*", parent, "parent");
      if (!parts) return Refused(context, parts.error());
      query.workspace = parts->front();
    }
    query.limit = page.size;
    if (!ParsePosition(page.position, query)) {
      return Refused(
          context,
          admin::InvalidField("page_token", "the page_token is not one of this list").error);
    }
    return RunAdminRead(
        ledger_, context,
        [query = std::move(query), binding = page.binding, response,
         add](sql::Database& database) -> AdminResult<void> {
          auto rows = ReadCommands(database, query);
          if (!rows.ok()) return SqlFailure(rows);
          const bool more = rows->size() > static_cast<size_t>(query.limit);
          if (more) rows->pop_back();
          for (const Command& command : *rows) Fill(command, *add());
          if (more) {
            response->set_next_page_token(admin::EncodePageToken(
                binding, std::to_string(rows->back().at_us) + ":" + rows->back().command_id));
          }
          return {};
        });
  }

  template <typename Request>
  ServerUnaryReactor* DecideOn(CallbackServerContext* context, const Caller& caller,
                               const Request& request, bool approve, pb::Adjustment* response) {
    auto parts = admin::NameParts(kAdjustmentName, request.name(), "name");
    if (!parts) return Refused(context, parts.error());
    if (request.reason().size() > kMaxReason) {
      return Refused(context,
                     admin::InvalidField("reason", "a reason has at most 512 bytes").error);
    }
    if (auto id = OptionalRequestId(request.request_id()); !id) return Refused(context, id.error());
    Decide decide;
    decide.workspace = parts->front();
    decide.command_id = parts->back();
    decide.approve = approve;
    decide.actor = caller.actor;
    decide.reason = request.reason();
    decide.address = caller.address;
    decide.call_id = caller.request_id;
    ServerUnaryReactor* reactor = context->DefaultReactor();
    // Reads first: deciding an adjustment that does not exist is NOT_FOUND, deciding one that was
    // decided before is a failed precondition.
    ledger_.Read(
        [this, context, reactor, decide, response](sql::Database& database) {
          auto found =
              ReadInto(database, decide.workspace, decide.command_id, IsAdjustment, *response);
          if (!found) return FinishAdmin(reactor, found);
          const bool pending = response->state() == pb::ADJUSTMENT_STATE_PENDING_APPROVAL;
          const auto wanted =
              decide.approve ? pb::ADJUSTMENT_STATE_POSTED : pb::ADJUSTMENT_STATE_REJECTED;
          const bool repeated =
              response->state() == wanted && response->decided_by() == decide.actor;
          if (repeated) return FinishAdmin(reactor, {});
          if (!pending) {
            return FinishAdmin(reactor,
                               admin::Precondition("ALREADY_DECIDED",
                                                   "the adjustment is not waiting for a decision"));
          }
          SubmitAdmin(ledger_, reactor, decide,
                      [this, context, reactor, decide, response](const Reply&) {
                        ReadAndFinish(ledger_, context, reactor, [=](sql::Database& again) {
                          return ReadInto(again, decide.workspace, decide.command_id, IsAdjustment,
                                          *response);
                        });
                      });
        },
        [reactor](const Error& refused) { FinishAdmin(reactor, Fail{admin::FromError(refused)}); });
    return reactor;
  }

  LedgerService& ledger_;
  const AdminOptions options_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeAdjustmentAdmin(LedgerService& ledger, AdminOptions options) {
  return std::make_unique<AdjustmentRpc>(ledger, options);
}

}  // namespace tollgate::billing
