#include <charconv>

#include "common/base/crypto.h"
#include "common/base/parse_number.h"
#include "common/base/utc_text.h"
#include "services/billing/rpc/admin_calls.h"
#include "services/billing/reports/reports.h"
#include "services/billing/reports/transactions.h"
#include "tollgate/admin/v1/ledger.grpc.pb.h"

namespace tollgate::billing {
namespace {

namespace pb = tollgate::admin::v1;

using admin::AdminResult;
using admin::Caller;
using admin::FormatUsd;
using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

constexpr std::string_view kBalanceName = "workspaces/*/balance";
constexpr std::string_view kCapName = "workspaces/*/cap";
constexpr std::string_view kTransactionName = "workspaces/*/transactions/*";

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

void Fill(const Balance& balance, pb::Cap& into) {
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

AdminResult<EntryQuery> EntryQueryOf(const pb::ListTransactionsRequest& request, const Page& page) {
  auto parts = admin::NameParts("workspaces/*", request.parent(), "parent");
  if (!parts) return Fail{parts.error()};
  EntryQuery query;
  query.workspace = parts->front();
  query.limit = page.size;
  if (!page.position.empty() && !ParsePosition(page.position, query)) {
    return admin::InvalidField("page_token", "the page_token is not one of this list");
  }
  static constexpr std::string_view kTexts[] = {"kind"};
  static constexpr std::string_view kRanges[] = {"create_time", "sequence"};
  auto terms = admin::ParseFilter(request.filter(), kTexts, kRanges);
  if (!terms) return Fail{terms.error()};
  for (const admin::FilterTerm& term : *terms) {
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
    auto us = admin::FilterTime(term);
    if (!us) return Fail{us.error()};
    (at_least ? query.start_us : query.end_us) = *us;
  }
  return query;
}

class LedgerAdminRpc : public pb::LedgerService::CallbackService {
 public:
  explicit LedgerAdminRpc(LedgerService& ledger) : ledger_(ledger) {}

  ServerUnaryReactor* GetBalance(CallbackServerContext* context,
                                 const pb::GetBalanceRequest* request,
                                 pb::Balance* response) override {
    auto caller = admin::Admit(*context, *request);
    if (!caller) return Refused(context, caller.error());
    return ReadBalanceOf(context, request->name(), kBalanceName,
                         [response](const Balance& balance, bool wallet_open) {
                           Fill(balance, wallet_open, *response);
                         });
  }

  ServerUnaryReactor* OpenWallet(CallbackServerContext* context,
                                 const pb::OpenWalletRequest* request,
                                 pb::Balance* response) override {
    auto caller = admin::Admit(*context, *request);
    if (!caller) return Refused(context, caller.error());
    auto parts = admin::NameParts(kBalanceName, request->name(), "name");
    if (!parts) return Refused(context, parts.error());
    return ChangeBalance(
        context,
        billing::OpenWallet{parts->front(), caller->actor, caller->address, caller->request_id},
        response);
  }

  ServerUnaryReactor* RepairClock(CallbackServerContext* context,
                                  const pb::RepairClockRequest* request,
                                  pb::RepairClockResponse* response) override {
    auto caller = admin::Admit(*context, *request);
    if (!caller) return Refused(context, caller.error());
    auto command = RepairClockOf(*request, *caller);
    if (!command) return Refused(context, command.error());
    ServerUnaryReactor* reactor = context->DefaultReactor();
    ledger_.Read(
        [this, reactor, command = *std::move(command), response](sql::Database& database) {
          auto open = HasWallet(database, command.workspace);
          if (!open.ok()) return FinishAdmin(reactor, SqlFailure(open));
          if (!*open) return FinishAdmin(reactor, Fail{NoWallet(command.workspace)});
          SubmitAdmin(ledger_, reactor, command, [reactor, response](const Reply& reply) {
            response->set_moved_back_us(reply.moved_back_us);
            FinishAdmin(reactor, {});
          });
        },
        [reactor](const Error& refused) { FinishAdmin(reactor, Fail{admin::FromError(refused)}); });
    return reactor;
  }

  ServerUnaryReactor* GetCap(CallbackServerContext* context, const pb::GetCapRequest* request,
                             pb::Cap* response) override {
    auto caller = admin::Admit(*context, *request);
    if (!caller) return Refused(context, caller.error());
    return ReadBalanceOf(context, request->name(), kCapName,
                         [response](const Balance& balance, bool) { Fill(balance, *response); });
  }

  ServerUnaryReactor* UpdateCap(CallbackServerContext* context, const pb::UpdateCapRequest* request,
                                pb::Cap* response) override {
    auto caller = admin::Admit(*context, *request);
    if (!caller) return Refused(context, caller.error());
    auto command = SetCapOf(*request, *caller);
    if (!command) return Refused(context, command.error());
    ServerUnaryReactor* reactor = context->DefaultReactor();
    SubmitAdmin(ledger_, reactor, *std::move(command), [reactor, response](const Reply& reply) {
      Fill(reply.balance, *response);
      FinishAdmin(reactor, {});
    });
    return reactor;
  }

  ServerUnaryReactor* GetTransaction(CallbackServerContext* context,
                                     const pb::GetTransactionRequest* request,
                                     pb::Transaction* response) override {
    auto caller = admin::Admit(*context, *request);
    if (!caller) return Refused(context, caller.error());
    auto parts = admin::NameParts(kTransactionName, request->name(), "name");
    if (!parts) return Refused(context, parts.error());
    int64_t sequence = 0;
    if (!ParseNumber(parts->back(), sequence) || sequence <= 0) {
      return Refused(context,
                     admin::InvalidField("name", "a transaction's id is a number above 0").error);
    }
    return RunAdminRead(ledger_, context,
                        [response, workspace = parts->front(),
                         sequence](sql::Database& database) -> AdminResult<void> {
                          auto found = ReadTransaction(database, workspace, sequence);
                          if (!found.ok()) return SqlFailure(found);
                          if (!*found) return admin::NotFound("there is no such transaction");
                          Fill(**found, *response);
                          return {};
                        });
  }

  ServerUnaryReactor* ListTransactions(CallbackServerContext* context,
                                       const pb::ListTransactionsRequest* request,
                                       pb::ListTransactionsResponse* response) override {
    auto caller = admin::Admit(*context, *request);
    if (!caller) return Refused(context, caller.error());
    auto page = PageOf(*request, *caller, "ListTransactions", request->filter());
    if (!page) return Refused(context, page.error());
    auto query = EntryQueryOf(*request, *page);
    if (!query) return Refused(context, query.error());
    return RunAdminReport(ledger_, context,
                          [response, query = *std::move(query),
                           binding = page->binding](sql::Database& database) -> AdminResult<void> {
                            auto rows = ReadTransactions(database, query);
                            if (!rows.ok()) return SqlFailure(rows);
                            const bool more = rows->size() > static_cast<size_t>(query.limit);
                            if (more) rows->pop_back();
                            for (const PostedEntry& posted : *rows)
                              Fill(posted, *response->add_transactions());
                            if (more) {
                              const PostedEntry& last = rows->back();
                              response->set_next_page_token(admin::EncodePageToken(
                                  binding, std::to_string(last.entry.sequence) + ":" +
                                               std::to_string(last.balance_nano_usd)));
                            }
                            return {};
                          });
  }

  ServerUnaryReactor* FreezeWorkspace(CallbackServerContext* context,
                                      const pb::FreezeWorkspaceRequest* request,
                                      pb::Balance* response) override {
    auto caller = admin::Admit(*context, *request);
    if (!caller) return Refused(context, caller.error());
    return ChangeFreeze(context, *caller, *request, CommandKind::kFreeze, response);
  }
  ServerUnaryReactor* UnfreezeWorkspace(CallbackServerContext* context,
                                        const pb::UnfreezeWorkspaceRequest* request,
                                        pb::Balance* response) override {
    auto caller = admin::Admit(*context, *request);
    if (!caller) return Refused(context, caller.error());
    return ChangeFreeze(context, *caller, *request, CommandKind::kUnfreeze, response);
  }

 private:
  ServerUnaryReactor* ReadBalanceOf(CallbackServerContext* context, const std::string& name,
                                    std::string_view pattern,
                                    std::function<void(const Balance&, bool)> fill) {
    auto parts = admin::NameParts(pattern, name, "name");
    if (!parts) return Refused(context, parts.error());
    return RunAdminRead(ledger_, context,
                        [workspace = parts->front(), now_us = ledger_.NowUs(),
                         fill = std::move(fill)](sql::Database& database) -> AdminResult<void> {
                          auto balance = ReadBalance(database, workspace, now_us);
                          if (!balance.ok()) return SqlFailure(balance);
                          auto open = HasWallet(database, workspace);
                          if (!open.ok()) return SqlFailure(open);
                          fill(*balance, *open);
                          return {};
                        });
  }

  ServerUnaryReactor* ChangeBalance(CallbackServerContext* context, Operation operation,
                                    pb::Balance* response) {
    ServerUnaryReactor* reactor = context->DefaultReactor();
    SubmitAdmin(ledger_, reactor, std::move(operation), [reactor, response](const Reply& reply) {
      Fill(reply.balance, true, *response);
      FinishAdmin(reactor, {});
    });
    return reactor;
  }

  static AdminResult<billing::RepairClock> RepairClockOf(const pb::RepairClockRequest& request,
                                                         const Caller& caller) {
    auto parts = admin::NameParts(kBalanceName, request.name(), "name");
    if (!parts) return Fail{parts.error()};
    if (auto given = RequiredText(request.reason(), 512, "reason"); !given) {
      return Fail{given.error()};
    }
    auto id = admin::RequiredRequestId(request.request_id());
    if (!id) return Fail{id.error()};
    return billing::RepairClock{parts->front(), *std::move(id), caller.actor, request.reason(),
                                caller.address};
  }

  static AdminResult<Operation> SetCapOf(const pb::UpdateCapRequest& request,
                                         const Caller& caller) {
    auto parts = admin::NameParts(kCapName, request.cap().name(), "cap.name");
    if (!parts) return Fail{parts.error()};
    for (const std::string& path : request.update_mask().paths()) {
      if (path != "cap_usd" && path != "capUsd") {
        return admin::InvalidField("update_mask", "the only field to update is cap_usd");
      }
    }
    auto id = OptionalRequestId(request.request_id());
    if (!id) return Fail{id.error()};
    SetCap command;
    command.workspace = parts->front();
    command.command_id = *std::move(id);
    command.actor = caller.actor;
    command.address = caller.address;
    command.open_only = true;
    if (request.cap().has_cap_usd()) {
      auto usd = admin::ParseUsd(request.cap().cap_usd(), "cap.cap_usd");
      if (!usd) return Fail{usd.error()};
      if (*usd < 0) return admin::InvalidField("cap.cap_usd", "a cap must not be negative");
      command.cap_nano_usd = *usd;
    }
    return Operation(std::move(command));
  }

  template <typename Request>
  ServerUnaryReactor* ChangeFreeze(CallbackServerContext* context, const Caller& caller,
                                   const Request& request, CommandKind kind,
                                   pb::Balance* response) {
    auto parts = admin::NameParts("workspaces/*", request.name(), "name");
    if (!parts) return Refused(context, parts.error());
    if (auto given = RequiredText(request.reason(), 512, "reason"); !given) {
      return Refused(context, given.error());
    }
    auto id = OptionalRequestId(request.request_id());
    if (!id) return Refused(context, id.error());
    Correct command;
    command.workspace = parts->front();
    command.command_id = *std::move(id);
    command.kind = kind;
    command.actor = caller.actor;
    command.address = caller.address;
    command.reason = request.reason();
    return ChangeBalance(context, std::move(command), response);
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
