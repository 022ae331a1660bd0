#include <charconv>

#include "common/admin/person.h"
#include "common/base/parse_number.h"
#include "common/base/try.h"
#include "common/base/workspace_id.h"
#include "services/billing/domain/dead_letter.h"
#include "services/billing/rpc/admin_calls.h"
#include "services/billing/storage/dead_letters.h"
#include "tollgate/admin/v1/dead_letters.grpc.pb.h"
#include "tollgate/billing/v1/billing.pb.h"

namespace tollgate::billing {
namespace {

namespace pb = tollgate::admin::v1;

using admin::AdminResult;
using admin::Caller;
using admin::Parts;
using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

constexpr char kNoWorkspace[] = "_";
constexpr size_t kMaxDiscardReason = 512;

struct Key {
  std::string workspace;
  Id id;
  int32_t number = 0;
};

AdminResult<Key> KeyOf(const Parts& name) {
  const std::string& text = name.front();
  const size_t first = text.find('.'), last = text.rfind('.');
  Key key;
  std::optional<Id> id;
  if (first != std::string::npos && first < last) {
    key.workspace = text.substr(0, first);
    id = Id::FromHex(text.substr(first + 1, last - first - 1));
  }
  if (!id || !ParseNumber(text.substr(last + 1), key.number) || key.number < 1 ||
      (key.workspace != kNoWorkspace && !IsWorkspaceId(key.workspace))) {
    return admin::InvalidField("name", "deadLetters/{workspace}.{request}.{number} is required");
  }
  key.id = *id;
  if (key.workspace == kNoWorkspace) key.workspace.clear();
  return key;
}

// Returns DENY_REASON_ID_REUSE as "id_reuse", for example.
std::string ReasonText(Deny reason) {
  std::string name = v1::DenyReason_Name(static_cast<v1::DenyReason>(reason));
  constexpr std::string_view kPrefix = "DENY_REASON_";
  if (name.starts_with(kPrefix)) name.erase(0, kPrefix.size());
  for (char& c : name) c = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  return name;
}

void Fill(const DeadLetter& letter, pb::DeadLetter& into) {
  into.set_name("deadLetters/" + (letter.workspace.empty() ? kNoWorkspace : letter.workspace) +
                "." + letter.id.ToHex() + "." + std::to_string(letter.number));
  into.set_workspace(letter.workspace);
  into.set_request(letter.id.ToHex());
  into.set_number(letter.number);
  SetTime(letter.at_us, *into.mutable_create_time());
  into.set_reason(ReasonText(letter.reason));
  if (const auto settle = DecodeSettle(letter.operation, letter.id, letter.workspace)) {
    into.set_outcome(std::string(OutcomeName(settle->outcome)));
    into.set_prompt_tokens(settle->usage.prompt);
    into.set_completion_tokens(settle->usage.completion);
    into.set_engine(settle->engine);
  }
  into.set_state(static_cast<pb::DeadLetterState>(letter.state));
  if (letter.state == DeadLetterState::kAdjusted) {
    into.set_adjustment("workspaces/" + letter.workspace + "/adjustments/" +
                        AdjustmentIdOf(letter.id));
  }
  if (letter.resolved_us > 0) SetTime(letter.resolved_us, *into.mutable_resolve_time());
  into.set_actor(letter.actor);
  into.set_note(letter.note);
}

AdminResult<void> ReadInto(sql::Database& database, const Key& key, pb::DeadLetter& response) {
  auto found = FindDeadLetter(database, key.workspace, key.id, key.number);
  if (!found.ok()) return SqlFailure(found);
  if (!*found) return admin::NotFound("there is no such dead letter");
  Fill(**found, response);
  return {};
}

AdminResult<void> RefusedAgain(const std::string& why) {
  return admin::Precondition("REFUSED_AGAIN",
                             "the ledger refuses the settlement again, and it stays open: " + why);
}

// Why an open letter was not resolved.
AdminResult<void> WhyRefused(Deny denied, const Caller& caller) {
  switch (denied) {
    case Deny::kUnavailable:
      return Fail{admin::FromError(Unavailable("the workspace cannot be written now").error)};
    case Deny::kUnknownDeadLetter:
      return admin::NotFound("there is no such dead letter");
    case Deny::kSamePerson:
      return admin::RequireProved(admin::PersonOf(caller));
    case Deny::kClosed:
      return RefusedAgain(
          "its request was ended without a charge, or its hold expired long ago and owes nothing, "
          "or another person resolved it meanwhile. Write it off");
    case Deny::kIdReuse:
      return RefusedAgain(
          "its request was charged already with another usage, or another settlement of it asked "
          "for an adjustment. Compare it with the receipt and the adjustment; then write it off");
    case Deny::kInvalid:
      return RefusedAgain(
          "the ledger has no hold of the request, and no price for it: the hold was lost or is in "
          "the archive. Restore the hold, or charge what a receipt or the log of the gateway shows "
          "with `tollgate adjustment create debit`, and write it off");
    default:
      return RefusedAgain(ReasonText(denied));
  }
}

class DeadLetterRpc : public pb::DeadLetterService::CallbackService {
 public:
  explicit DeadLetterRpc(LedgerService& ledger) : ledger_(ledger) {}

  ServerUnaryReactor* GetDeadLetter(CallbackServerContext* context,
                                    const pb::GetDeadLetterRequest* request,
                                    pb::DeadLetter* response) override {
    return admin::Handle(
        context, request, response, OnLedger{ledger_},
        [=](sql::Database& database, const Caller&, const Parts& name) -> AdminResult<void> {
          TRY(auto key, KeyOf(name));
          return ReadInto(database, key, *response);
        });
  }

  ServerUnaryReactor* ListDeadLetters(CallbackServerContext* context,
                                      const pb::ListDeadLettersRequest* request,
                                      pb::ListDeadLettersResponse* response) override {
    return admin::Handle(
        context, request, response, OnLedger{ledger_},
        [=](sql::Database& database, const Caller& caller) -> AdminResult<void> {
          TRY(auto page, admin::PageOfList(*request, caller));
          TRY(auto query, QueryOf(*request, page.position));
          query.limit = page.size + 1;
          auto letters = ReadDeadLetters(database, query);
          if (!letters.ok()) return SqlFailure(letters);
          admin::FillPage(
              page, *letters, *response,
              [&](const DeadLetter& letter) { Fill(letter, *response->add_dead_letters()); },
              [](const DeadLetter& last) {
                return std::to_string(last.at_us) + " " + last.id.ToHex() + " " +
                       std::to_string(last.number);
              });
          return {};
        });
  }

  ServerUnaryReactor* RetryDeadLetter(CallbackServerContext* context,
                                      const pb::RetryDeadLetterRequest* request,
                                      pb::DeadLetter* response) override {
    return Resolve(context, request, DeadLetterState::kRetried, response);
  }
  ServerUnaryReactor* WriteOffDeadLetter(CallbackServerContext* context,
                                         const pb::WriteOffDeadLetterRequest* request,
                                         pb::DeadLetter* response) override {
    return Resolve(context, request, DeadLetterState::kWrittenOff, response);
  }

 private:
  static AdminResult<DeadLetterQuery> QueryOf(const pb::ListDeadLettersRequest& request,
                                              const std::string& position) {
    DeadLetterQuery query;
    query.resolved = request.show_resolved();
    static constexpr std::string_view kTexts[] = {"workspace"};
    TRY(auto terms, admin::ParseFilter(request.filter(), kTexts));
    for (const admin::FilterTerm& term : terms) {
      if (!IsWorkspaceId(term.value)) {
        return admin::InvalidField("filter", "\"" + term.value + "\" is not a workspace's id");
      }
      query.workspace = term.value;
    }
    if (position.empty()) return query;
    const size_t first = position.find(' '), last = position.rfind(' ');
    const auto id = first < last ? Id::FromHex(position.substr(first + 1, last - first - 1))
                                 : std::optional<Id>();
    if (!id || !ParseNumber(std::string_view(position).substr(0, first), query.before_us) ||
        !ParseNumber(std::string_view(position).substr(last + 1), query.before_number)) {
      return admin::InvalidPageToken();
    }
    query.before_id = *id;
    return query;
  }

  // The request_id need not be remembered, since a dead letter is resolved only once.
  template <typename Request>
  ServerUnaryReactor* Resolve(CallbackServerContext* context, const Request* request,
                              DeadLetterState to, pb::DeadLetter* response) {
    return admin::Start(context, request, [=, this](const admin::Call& call) {
      auto name = admin::NameParts(*request);
      if (!name) return call.Finish(Fail{name.error()});
      auto key = KeyOf(*name);
      if (!key) return call.Finish(Fail{key.error()});
      if (auto given = RequiredText(request->reason(), kMaxDiscardReason, "reason"); !given) {
        return call.Finish(given);
      }
      ResolveDeadLetter resolve{key->id,
                                key->workspace,
                                key->number,
                                to,
                                call.caller().actor,
                                request->reason(),
                                call.caller().address,
                                call.caller().request_id};
      resolve.proved = admin::RequireProved(admin::PersonOf(call.caller())).ok();
      // Reads first, because a retry changes the rows that the settle names.
      OnLedger{ledger_}.Post(call, [=, this, key = *key](sql::Database& database) {
        auto found = FindDeadLetter(database, key.workspace, key.id, key.number);
        if (!found.ok()) return call.Finish(SqlFailure(found));
        if (!*found) return call.Finish(admin::NotFound("there is no such dead letter"));
        ResolveNow(context, call, resolve, **found, response);
      });
    });
  }

  void ResolveNow(CallbackServerContext* context, const admin::Call& call,
                  ResolveDeadLetter resolve, const DeadLetter& letter, pb::DeadLetter* response) {
    const bool open = letter.state == DeadLetterState::kOpen;
    if (const auto settle = DecodeSettle(letter.operation, letter.id, letter.workspace)) {
      resolve.letter_admission = settle->admission;
    }
    const Key key{letter.workspace, letter.id, letter.number};
    std::vector<Operation> operations;
    operations.push_back(std::move(resolve));
    ledger_.Submit(std::move(operations), [=, this](const Result<std::vector<Reply>>& replies) {
      if (!replies.ok()) return call.Refuse(replies.error());
      const Reply& reply = replies->front();
      if (reply.denied_by == Deny::kClosed && !open) {
        return call.Finish(
            admin::Precondition("ALREADY_DECIDED", "the dead letter was resolved differently"));
      }
      if (!reply.ok) return call.Finish(WhyRefused(reply.denied_by, call.caller()));
      response->set_charged_usd(admin::FormatUsd(reply.charged_nano_usd));
      OnLedger{ledger_}.Run(context, call, [key, response](sql::Database& database) {
        return ReadInto(database, key, *response);
      });
    });
  }

  LedgerService& ledger_;
};

}  // namespace

std::unique_ptr<grpc::Service> MakeDeadLetterAdmin(LedgerService& ledger) {
  return std::make_unique<DeadLetterRpc>(ledger);
}

}  // namespace tollgate::billing
