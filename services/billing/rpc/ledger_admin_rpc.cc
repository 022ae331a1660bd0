#include <charconv>

#include "common/base/crypto.h"
#include "common/base/parse_number.h"
#include "common/base/try.h"
#include "common/base/utc_text.h"
#include "services/billing/reports/reports.h"
#include "services/billing/reports/transactions.h"
#include "services/billing/rpc/admin_calls.h"
#include "tollgate/admin/v1/ledger.grpc.pb.h"

namespace tollgate::billing {
namespace {

namespace pb = tollgate::admin::v1;

using admin::AdminResult;
using admin::Caller;
using admin::FormatUsd;
using admin::Parts;
using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

void Fill(const Balance& balance, bool wallet_open, pb::Balance& into) {
  into.set_name("workspaces/" + balance.workspace + "/balance");
  into.set_paid_usd(FormatUsd(balance.paid_nano_usd));
  into.set_granted_usd(FormatUsd(balance.granted_nano_usd));
  into.set_held_usd(FormatUsd(balance.held_nano_usd));
  into.set_available_usd(
      FormatUsd(balance.paid_nano_usd + balance.granted_nano_usd - balance.held_nano_usd));
  into.set_receivable_usd(FormatUsd(balance.receivable_nano_usd));
  into.set_month(UtcMonthText(balance.month));
  into.set_month_spent_usd(FormatUsd(balance.month_spent_nano_usd));
  into.set_month_held_usd(FormatUsd(balance.month_held_nano_usd));
  if (balance.cap_nano_usd) into.set_cap_usd(FormatUsd(*balance.cap_nano_usd));
  into.set_open_holds(balance.open_holds);
  into.set_frozen(static_cast<pb::FreezeReason>(balance.frozen));
  into.set_wallet_open(wallet_open);
}

void Fill(const Balance& balance, bool, pb::Cap& into) {
  into.set_name("workspaces/" + balance.workspace + "/cap");
  if (balance.cap_nano_usd) into.set_cap_usd(FormatUsd(*balance.cap_nano_usd));
  into.set_month_spent_usd(FormatUsd(balance.month_spent_nano_usd));
  into.set_month_held_usd(FormatUsd(balance.month_held_nano_usd));
}

void Fill(const PostedEntry& posted, pb::Transaction& into) {
  const Entry& entry = posted.entry;
  into.set_name("workspaces/" + entry.workspace + "/transactions/" +
                std::to_string(entry.sequence));
  into.set_kind(std::string(EntryKindName(entry.kind)));
  into.set_amount_usd(FormatUsd(entry.amount_nano_usd));
  into.set_debit_account(std::string(AccountName(entry.debit)));
  into.set_credit_account(std::string(AccountName(entry.credit)));
  into.set_change_usd(FormatUsd(PostedChange(entry)));
  into.set_balance_usd(FormatUsd(posted.balance_nano_usd));
  SetTime(entry.at_us, *into.mutable_create_time());
  into.set_request(RequestText(entry));
  into.set_memo(entry.memo);
  into.set_month(UtcMonthText(entry.month));
}

std::optional<EntryKind> KindNamed(std::string_view name) {
  for (int number = 1; number <= UINT8_MAX; ++number) {
    const auto kind = static_cast<EntryKind>(number);
    if (EntryKindName(kind) == name && name != "unknown") return kind;
  }
  return std::nullopt;
}

// Parses "17:2500": the last entry's sequence, and the posted credit after it.
bool ParsePosition(std::string_view text, EntryQuery& query) {
  const size_t colon = text.find(':');
  return colon != std::string_view::npos &&
         ParseNumber(text.substr(0, colon), query.after_sequence) && query.after_sequence > 0 &&
         ParseNumber(text.substr(colon + 1), query.after_balance_nano_usd);
}

AdminResult<EntryQuery> EntryQueryOf(const pb::ListTransactionsRequest& request,
                                     const std::string& workspace, const admin::ListPage& page) {
  EntryQuery query;
  query.workspace = workspace;
  query.limit = page.size;
  if (!page.position.empty() && !ParsePosition(page.position, query)) {
    return admin::InvalidPageToken();
  }
  static constexpr std::string_view kTexts[] = {"kind"};
  static constexpr std::string_view kRanges[] = {"create_time", "sequence"};
  TRY(auto terms, admin::ParseFilter(request.filter(), kTexts, kRanges));
  for (const admin::FilterTerm& term : terms) {
    if (term.op == admin::FilterTerm::Op::kEquals) {
      query.kind = KindNamed(term.value);
      if (!query.kind) {
        return admin::InvalidField("filter", "there is no kind \"" + term.value + "\"");
      }
      continue;
    }
    const bool at_least = term.op == admin::FilterTerm::Op::kAtLeast;
    if (term.field == "sequence") {
      if (!ParseNumber(term.value, at_least ? query.first_sequence : query.end_sequence)) {
        return admin::InvalidField("filter", "a sequence is a number");
      }
      continue;
    }
    TRY(auto us, admin::FilterTime(term));
    (at_least ? query.start_us : query.end_us) = us;
  }
  return query;
}

class LedgerAdminRpc : public pb::LedgerService::CallbackService {
 public:
  explicit LedgerAdminRpc(LedgerService& ledger) : ledger_(ledger) {}

  ServerUnaryReactor* GetBalance(CallbackServerContext* context,
                                 const pb::GetBalanceRequest* request,
                                 pb::Balance* response) override {
    return ReadBalanceOf(context, request, response);
  }

  ServerUnaryReactor* OpenWallet(CallbackServerContext* context,
                                 const pb::OpenWalletRequest* request,
                                 pb::Balance* response) override {
    return Execute(context, request, response,
                   [](const Caller& caller, const Parts& name) -> AdminResult<Operation> {
                     return Operation(billing::OpenWallet{name[0], caller.actor, caller.address,
                                                          caller.request_id});
                   });
  }

  ServerUnaryReactor* RepairClock(CallbackServerContext* context,
                                  const pb::RepairClockRequest* request,
                                  pb::RepairClockResponse* response) override {
    return admin::Start(context, request, [=, this](const admin::Call& call) {
      auto command = RepairClockOf(*request, call.caller());
      if (!command) return call.Finish(Fail{command.error()});
      OnLedger{ledger_}.Post(call, [=, this, command = *command](sql::Database& database) {
        auto open = HasWallet(database, command.workspace);
        if (!open.ok()) return call.Finish(SqlFailure(open));
        if (!*open) return call.Finish(Fail{NoWallet(command.workspace)});
        SubmitAdmin(ledger_, call, command, [=](const Reply& reply) {
          response->set_moved_back_us(reply.moved_back_us);
          call.Finish({});
        });
      });
    });
  }

  ServerUnaryReactor* GetCap(CallbackServerContext* context, const pb::GetCapRequest* request,
                             pb::Cap* response) override {
    return ReadBalanceOf(context, request, response);
  }

  ServerUnaryReactor* UpdateCap(CallbackServerContext* context, const pb::UpdateCapRequest* request,
                                pb::Cap* response) override {
    return Execute(context, request, response, [request](const Caller& caller, const Parts& name) {
      return SetCapOf(*request, caller, name);
    });
  }

  ServerUnaryReactor* GetTransaction(CallbackServerContext* context,
                                     const pb::GetTransactionRequest* request,
                                     pb::Transaction* response) override {
    return admin::Handle(
        context, request, response, OnLedger{ledger_},
        [=](sql::Database& database, const Caller&, const Parts& name) -> AdminResult<void> {
          int64_t sequence = 0;
          if (!ParseNumber(name[1], sequence) || sequence <= 0) {
            return admin::InvalidField("name", "a transaction's id is a number above 0");
          }
          auto found = ReadTransaction(database, name[0], sequence);
          if (!found.ok()) return SqlFailure(found);
          if (!*found) return admin::NotFound("there is no such transaction");
          Fill(**found, *response);
          return {};
        });
  }

  ServerUnaryReactor* ListTransactions(CallbackServerContext* context,
                                       const pb::ListTransactionsRequest* request,
                                       pb::ListTransactionsResponse* response) override {
    return admin::Handle(
        context, request, response, OnReports{ledger_},
        [=](sql::Database& database, const Caller& caller, const Parts& name) -> AdminResult<void> {
          TRY(auto page, admin::PageOfList(*request, caller));
          TRY(auto query, EntryQueryOf(*request, name[0], page));
          auto rows = ReadTransactions(database, query);
          if (!rows.ok()) return SqlFailure(rows);
          admin::FillPage(
              page, *rows, *response,
              [&](const PostedEntry& posted) { Fill(posted, *response->add_transactions()); },
              [](const PostedEntry& last) {
                return std::to_string(last.entry.sequence) + ":" +
                       std::to_string(last.balance_nano_usd);
              });
          return {};
        });
  }

  ServerUnaryReactor* FreezeWorkspace(CallbackServerContext* context,
                                      const pb::FreezeWorkspaceRequest* request,
                                      pb::Balance* response) override {
    return ChangeFreeze(context, request, CommandKind::kFreeze, response);
  }
  ServerUnaryReactor* UnfreezeWorkspace(CallbackServerContext* context,
                                        const pb::UnfreezeWorkspaceRequest* request,
                                        pb::Balance* response) override {
    return ChangeFreeze(context, request, CommandKind::kUnfreeze, response);
  }

 private:
  template <typename Request, typename Response>
  ServerUnaryReactor* ReadBalanceOf(CallbackServerContext* context, const Request* request,
                                    Response* response) {
    return admin::Handle(
        context, request, response, OnLedger{ledger_},
        [=, this](sql::Database& database, const Caller&, const Parts& name) -> AdminResult<void> {
          auto balance = ReadBalance(database, name[0], ledger_.NowUs());
          if (!balance.ok()) return SqlFailure(balance);
          auto open = HasWallet(database, name[0]);
          if (!open.ok()) return SqlFailure(open);
          Fill(*balance, *open, *response);
          return {};
        });
  }

  // Runs the operation parse(caller, name) and returns the new balance.
  template <typename Request, typename Response, typename Parse>
  ServerUnaryReactor* Execute(CallbackServerContext* context, const Request* request,
                              Response* response, Parse parse) {
    return admin::Start(context, request, [=, this](const admin::Call& call) {
      auto name = admin::NameParts(*request);
      if (!name) return call.Finish(Fail{name.error()});
      AdminResult<Operation> operation = parse(call.caller(), *name);
      if (!operation) return call.Finish(Fail{operation.error()});
      SubmitAdmin(ledger_, call, *std::move(operation), [=](const Reply& reply) {
        Fill(reply.balance, true, *response);
        call.Finish({});
      });
    });
  }

  static AdminResult<billing::RepairClock> RepairClockOf(const pb::RepairClockRequest& request,
                                                         const Caller& caller) {
    TRY(auto name, admin::NameParts(request));
    TRY(RequiredText(request.reason(), 512, "reason"));
    return billing::RepairClock{name.front(), caller.request_id, caller.actor, request.reason(),
                                caller.address};
  }

  static AdminResult<Operation> SetCapOf(const pb::UpdateCapRequest& request, const Caller& caller,
                                         const Parts& name) {
    for (const std::string& path : request.update_mask().paths()) {
      if (path != "cap_usd" && path != "capUsd") {
        return admin::InvalidField("update_mask", "the only field to update is cap_usd");
      }
    }
    SetCap command;
    command.workspace = name[0];
    command.command_id = CommandIdOf(caller);
    command.actor = caller.actor;
    command.address = caller.address;
    command.open_only = true;
    if (request.cap().has_cap_usd()) {
      TRY(auto usd, admin::ParseUsd(request.cap().cap_usd(), "cap.cap_usd"));
      if (usd < 0) return admin::InvalidField("cap.cap_usd", "a cap must not be negative");
      command.cap_nano_usd = usd;
    }
    return Operation(std::move(command));
  }

  template <typename Request>
  ServerUnaryReactor* ChangeFreeze(CallbackServerContext* context, const Request* request,
                                   CommandKind kind, pb::Balance* response) {
    return Execute(context, request, response,
                   [=](const Caller& caller, const Parts& name) -> AdminResult<Operation> {
                     TRY(RequiredText(request->reason(), 512, "reason"));
                     Correct command;
                     command.workspace = name[0];
                     command.command_id = CommandIdOf(caller);
                     command.kind = kind;
                     command.actor = caller.actor;
                     command.address = caller.address;
                     command.reason = request->reason();
                     return Operation(std::move(command));
                   });
  }

  LedgerService& ledger_;
};

}  // namespace

std::string RequestText(const Entry& entry) {
  return IsRequestEntry(entry.kind) ? HexEncode(entry.request) : entry.request;
}

std::unique_ptr<grpc::Service> MakeLedgerAdmin(LedgerService& ledger) {
  return std::make_unique<LedgerAdminRpc>(ledger);
}

}  // namespace tollgate::billing
