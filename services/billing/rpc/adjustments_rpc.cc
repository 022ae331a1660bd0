#include <algorithm>
#include <charconv>

#include "common/admin/person.h"
#include "common/base/try.h"
#include "services/billing/reports/transactions.h"
#include "services/billing/rpc/admin_calls.h"
#include "services/billing/storage/credit_by_hand.h"
#include "tollgate/admin/v1/adjustments.grpc.pb.h"

namespace tollgate::billing {
namespace {

namespace pb = tollgate::admin::v1;

using admin::AdminResult;
using admin::Caller;
using admin::FormatUsd;
using admin::Parts;
using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

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
                                   const Caller& caller) {
  TRY(auto name, admin::NameParts(request));
  const pb::CreditGrant& grant = request.credit_grant();
  TRY(auto amount, AmountAboveZero(grant.amount_usd(), "credit_grant.amount_usd"));
  if (grant.reason().size() > kMaxReason) {
    return admin::InvalidField("credit_grant.reason", "a reason has at most 512 bytes");
  }
  AddCredit command;
  command.workspace = name.front();
  command.command_id = caller.request_id;
  command.amount_nano_usd = amount;
  command.granted = !grant.paid();
  command.actor = caller.actor;
  command.address = caller.address;
  command.reason = grant.reason();
  command.open_only = true;
  return command;
}

AdminResult<Correct> CorrectOf(const pb::CreateAdjustmentRequest& request, const Caller& caller) {
  TRY(auto name, admin::NameParts(request));
  const pb::Adjustment& adjustment = request.adjustment();
  const auto kind = CommandOf(adjustment.kind());
  if (!kind) return admin::InvalidField("adjustment.kind", "a kind of adjustment is required");
  TRY(auto amount, AmountAboveZero(adjustment.amount_usd(), "adjustment.amount_usd"));
  TRY(RequiredText(adjustment.reason(), kMaxReason, "adjustment.reason"));
  if (adjustment.reference().size() > kMaxReference) {
    return admin::InvalidField("adjustment.reference", "a reference has at most 128 bytes");
  }
  Correct command;
  command.workspace = name.front();
  command.command_id = caller.request_id;
  command.kind = *kind;
  command.amount_nano_usd = amount;
  command.granted = adjustment.granted();
  command.actor = caller.actor;
  command.address = caller.address;
  command.reason = adjustment.reason();
  command.reference = adjustment.reference();
  return command;
}

bool MakesCredit(CommandKind kind) {
  return kind == CommandKind::kCreditAdjustment || kind == CommandKind::kWriteOff;
}

// Whether the caller may make this credit without a second person. Also true for a command that the
// ledger has already.
template <typename Command>
AdminResult<bool> MayMakeAlone(sql::Database& database, const Command& command,
                               const Caller& caller, int64_t limit_nano_usd, int64_t now_us) {
  auto wallet = HasWallet(database, command.workspace);
  if (!wallet.ok()) return SqlFailure(wallet);
  if (!*wallet) return Fail{NoWallet(command.workspace)};
  auto known = ReadCommandById(database, command.workspace, command.command_id);
  if (!known.ok()) return SqlFailure(known);
  if (*known) return true;
  const CreditByHand credit = {admin::PersonOf(caller).account, command.workspace,
                               command.command_id, command.amount_nano_usd};
  bool alone = false;
  auto done =
      database.Transact(sql::TxMode::kWrite, [&](sql::Connection& db) -> sql::SqlResult<void> {
        TRY(auto counted, CountCreditByHand(db, credit, limit_nano_usd, now_us));
        alone = counted;
        return {};
      });
  if (!done.ok()) return SqlFailure(done);
  return alone;
}

// Fails if the command needs a second person and cannot wait for one; sets whether it waits.
AdminResult<void> CheckPersons(sql::Database& database, const Caller& caller, AddCredit& command,
                               int64_t limit_nano_usd, int64_t now_us) {
  TRY(auto alone, MayMakeAlone(database, command, caller, limit_nano_usd, now_us));
  if (alone) return {};
  return admin::Precondition(
      "SECOND_PERSON_REQUIRED",
      "one person may make credit of " + FormatUsd(limit_nano_usd) +
          " USD within 24 h: ask for an adjustment of the kind credit, which waits for a second "
          "operator (tollgate adjustment create credit)");
}
AdminResult<void> CheckPersons(sql::Database& database, const Caller& caller, Correct& command,
                               int64_t limit_nano_usd, int64_t now_us) {
  const bool large = command.amount_nano_usd > limit_nano_usd;
  if (large && command.kind == CommandKind::kChargeback) return admin::RequireStepUp(caller);
  command.second_person = large;
  if (MakesCredit(command.kind)) {
    TRY(auto alone, MayMakeAlone(database, command, caller, limit_nano_usd, now_us));
    command.second_person = !alone;
  }
  return command.second_person ? admin::RequireProved(admin::PersonOf(caller))
                               : AdminResult<void>();
}

// "workspaces/-" means all workspaces. Admit allows it only to callers who may read everything.
template <typename Request>
AdminResult<CommandQuery> QueryOf(const Request& request, std::vector<CommandKind> kinds) {
  CommandQuery query;
  query.kinds = std::move(kinds);
  if (request.parent() == "workspaces/-") return query;
  TRY(auto name, admin::NameParts(request));
  query.workspace = name.front();
  return query;
}
AdminResult<CommandQuery> QueryOf(const pb::ListCreditGrantsRequest& request) {
  return QueryOf(request, {CommandKind::kAddCredit});
}
AdminResult<CommandQuery> QueryOf(const pb::ListAdjustmentsRequest& request) {
  auto query = QueryOf(request, AdjustmentCommands());
  if (!query) return query;
  static constexpr std::string_view kTexts[] = {"state", "kind"};
  TRY(auto terms, admin::ParseFilter(request.filter(), kTexts));
  for (const admin::FilterTerm& term : terms) {
    if (term.field == "state") {
      pb::AdjustmentState state;
      if (!pb::AdjustmentState_Parse("ADJUSTMENT_STATE_" + term.value, &state) || state == 0) {
        return admin::InvalidField("filter", "state is POSTED, PENDING_APPROVAL or REJECTED");
      }
      query->state = static_cast<CommandState>(state);
    } else {
      pb::AdjustmentKind kind;
      if (!pb::AdjustmentKind_Parse("ADJUSTMENT_KIND_" + term.value, &kind) || kind == 0) {
        return admin::InvalidField("filter",
                                   "kind is REFUND, CREDIT, DEBIT, CHARGEBACK or WRITE_OFF");
      }
      query->kinds = {*CommandOf(kind)};
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
    return Execute(context, request, response, AddCreditOf, IsGrant);
  }
  ServerUnaryReactor* GetCreditGrant(CallbackServerContext* context,
                                     const pb::GetCreditGrantRequest* request,
                                     pb::CreditGrant* response) override {
    return Get(context, request, response, IsGrant);
  }
  ServerUnaryReactor* ListCreditGrants(CallbackServerContext* context,
                                       const pb::ListCreditGrantsRequest* request,
                                       pb::ListCreditGrantsResponse* response) override {
    return List(context, request, response, &pb::ListCreditGrantsResponse::add_credit_grants);
  }

  ServerUnaryReactor* CreateAdjustment(CallbackServerContext* context,
                                       const pb::CreateAdjustmentRequest* request,
                                       pb::Adjustment* response) override {
    return Execute(context, request, response, CorrectOf, IsAdjustment);
  }
  ServerUnaryReactor* GetAdjustment(CallbackServerContext* context,
                                    const pb::GetAdjustmentRequest* request,
                                    pb::Adjustment* response) override {
    return Get(context, request, response, IsAdjustment);
  }
  ServerUnaryReactor* ListAdjustments(CallbackServerContext* context,
                                      const pb::ListAdjustmentsRequest* request,
                                      pb::ListAdjustmentsResponse* response) override {
    return List(context, request, response, &pb::ListAdjustmentsResponse::add_adjustments);
  }

  ServerUnaryReactor* ApproveAdjustment(CallbackServerContext* context,
                                        const pb::ApproveAdjustmentRequest* request,
                                        pb::Adjustment* response) override {
    return DecideOn(context, request, true, response);
  }
  ServerUnaryReactor* RejectAdjustment(CallbackServerContext* context,
                                       const pb::RejectAdjustmentRequest* request,
                                       pb::Adjustment* response) override {
    return DecideOn(context, request, false, response);
  }

 private:
  // Runs the command and returns it as stored.
  template <typename Request, typename Response, typename Command>
  ServerUnaryReactor* Execute(CallbackServerContext* context, const Request* request,
                              Response* response,
                              AdminResult<Command> (*parse)(const Request&, const Caller&),
                              bool (*fits)(const billing::Command&)) {
    return admin::Start(context, request, [=, this](const admin::Call& call) {
      auto parsed = parse(*request, call.caller());
      if (!parsed) return call.Finish(Fail{parsed.error()});
      OnLedger{ledger_}.Post(call, [=, this, command = *parsed](sql::Database& database) mutable {
        auto checked = CheckPersons(database, call.caller(), command,
                                    options_.second_person_above_nano_usd, ledger_.NowUs());
        if (!checked) return call.Finish(checked);
        SubmitAdmin(ledger_, call, command, [=, this](const Reply&) {
          OnLedger{ledger_}.Run(context, call, [=](sql::Database& again) {
            return ReadInto(again, command.workspace, command.command_id, fits, *response);
          });
        });
      });
    });
  }

  template <typename Request, typename Response>
  ServerUnaryReactor* Get(CallbackServerContext* context, const Request* request,
                          Response* response, bool (*fits)(const Command&)) {
    return admin::Handle(context, request, response, OnLedger{ledger_},
                         [=](sql::Database& database, const Caller&, const Parts& name) {
                           return ReadInto(database, name[0], name[1], fits, *response);
                         });
  }

  template <typename Request, typename Response, typename Resource>
  ServerUnaryReactor* List(CallbackServerContext* context, const Request* request,
                           Response* response, Resource* (Response::*add)()) {
    return admin::Handle(context, request, response, OnLedger{ledger_},
                         [=](sql::Database& database, const Caller& caller) -> AdminResult<void> {
                           TRY(auto query, QueryOf(*request));
                           TRY(auto page, admin::PageOfList(*request, caller));
                           query.limit = page.size;
                           if (!ParsePosition(page.position, query))
                             return admin::InvalidPageToken();
                           auto rows = ReadCommands(database, query);
                           if (!rows.ok()) return SqlFailure(rows);
                           admin::FillPage(
                               page, *rows, *response,
                               [&](const Command& command) { Fill(command, *(response->*add)()); },
                               [](const Command& last) {
                                 return std::to_string(last.at_us) + ":" + last.command_id;
                               });
                           return {};
                         });
  }

  template <typename Request>
  ServerUnaryReactor* DecideOn(CallbackServerContext* context, const Request* request, bool approve,
                               pb::Adjustment* response) {
    return admin::Start(context, request, [=, this](const admin::Call& call) {
      auto name = admin::NameParts(*request);
      if (!name) return call.Finish(Fail{name.error()});
      if (request->reason().size() > kMaxReason) {
        return call.Finish(admin::InvalidField("reason", "a reason has at most 512 bytes"));
      }
      Decide decide;
      decide.workspace = name->front();
      decide.command_id = name->back();
      decide.approve = approve;
      decide.actor = call.caller().actor;
      decide.reason = request->reason();
      decide.address = call.caller().address;
      decide.call_id = call.caller().request_id;
      // Reads first: deciding an adjustment that does not exist is NOT_FOUND, deciding one that was
      // decided before is a failed precondition.
      OnLedger{ledger_}.Post(call, [=, this](sql::Database& database) {
        DecideNow(database, context, call, decide, response);
      });
    });
  }

  void DecideNow(sql::Database& database, CallbackServerContext* context, const admin::Call& call,
                 const Decide& decide, pb::Adjustment* response) {
    auto found = ReadInto(database, decide.workspace, decide.command_id, IsAdjustment, *response);
    if (!found) return call.Finish(found);
    const auto wanted =
        decide.approve ? pb::ADJUSTMENT_STATE_POSTED : pb::ADJUSTMENT_STATE_REJECTED;
    const bool repeated = response->state() == wanted && response->decided_by() == decide.actor;
    if (repeated) return call.Finish({});
    if (response->state() != pb::ADJUSTMENT_STATE_PENDING_APPROVAL) {
      return call.Finish(
          admin::Precondition("ALREADY_DECIDED", "the adjustment is not waiting for a decision"));
    }
    if (decide.approve) {
      auto second = admin::RequireSecondPerson(admin::PersonOf(call.caller()), response->actor());
      if (!second) return call.Finish(second);
    }
    SubmitAdmin(ledger_, call, decide, [=, this](const Reply&) {
      OnLedger{ledger_}.Run(context, call, [=](sql::Database& again) {
        return ReadInto(again, decide.workspace, decide.command_id, IsAdjustment, *response);
      });
    });
  }

  LedgerService& ledger_;
  const AdminOptions options_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeAdjustmentAdmin(LedgerService& ledger, AdminOptions options) {
  return std::make_unique<AdjustmentRpc>(ledger, options);
}

}  // namespace tollgate::billing
