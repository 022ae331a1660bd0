#include "services/billing/rpc/dead_letter_rpc.h"

#include <algorithm>
#include <charconv>
#include <functional>
#include <utility>

#include "common/admin/paging.h"
#include "common/base/crypto.h"
#include "common/rpc/error_status.h"
#include "services/billing/rpc/convert.h"
#include "services/billing/storage/dead_letters.h"

namespace tollgate::billing {
namespace {

using grpc::CallbackServerContext;
using grpc::ServerUnaryReactor;

constexpr int kDefaultPage = 100;
constexpr int kMostInAPage = 1000;

std::string BindingOf(const v1::ListDeadLettersRequest& request) {
  return "ListDeadLetters " + std::string(request.resolved() ? "all " : "open ") +
         request.workspace_id();
}

std::string PositionOf(const DeadLetter& letter) {
  return std::to_string(letter.at_us) + " " + letter.id.ToHex() + " " +
         std::to_string(letter.number);
}

// False: not a position.
bool ReadPosition(const std::string& position, DeadLetterQuery& query) {
  const size_t first = position.find(' '), last = position.rfind(' ');
  if (first == std::string::npos || last == first) return false;
  const auto id = Id::FromHex(position.substr(first + 1, last - first - 1));
  if (!id) return false;
  query.before_id = *id;
  const char* data = position.data();
  return std::from_chars(data, data + first, query.before_us).ec == std::errc() &&
         std::from_chars(data + last + 1, data + position.size(), query.before_number).ec ==
             std::errc();
}

std::string WhyRefused(const ResolveDeadLetter& resolve, Deny reason) {
  if (resolve.actor.empty() || resolve.reason.empty()) return "actor and reason are missing";
  switch (reason) {
    case Deny::kUnknownDeadLetter:
      return resolve.workspace.empty() ? "there is no such dead letter without a workspace"
                                       : "there is no such dead letter in this workspace";
    case Deny::kClosed:
      return "the dead letter was resolved otherwise, or its request is closed for settlements";
    case Deny::kIdReuse:
      return "the request was settled with other values; if those are right, write the dead letter "
             "off";
    default:
      return resolve.workspace.empty()
                 ? "the settlement names no workspace that can exist, so it can never be applied; "
                   "write the dead letter off"
                 : "the ledger has no hold of this request, or the settlement's numbers are out of "
                   "bounds; the dead letter stays open: retry it when the hold is restored, or "
                   "write it off";
  }
}

ServerUnaryReactor* Resolve(LedgerService& ledger, CallbackServerContext* context,
                            ResolveDeadLetter resolve, std::function<void(const Reply&)> fill) {
  ServerUnaryReactor* reactor = context->DefaultReactor();
  std::vector<Operation> operations;
  operations.push_back(resolve);
  ledger.Submit(std::move(operations), [reactor, resolve = std::move(resolve),
                                        fill =
                                            std::move(fill)](Result<std::vector<Reply>> replies) {
    if (!replies.ok()) return reactor->Finish(rpc::ToStatus(replies.error()));
    const Reply& reply = replies->front();
    if (reply.denied_by == Deny::kUnavailable) {
      return reactor->Finish(
          rpc::ToStatus(Unavailable("billing: the workspace cannot be written now").error));
    }
    if (!reply.ok) {
      return reactor->Finish(rpc::ToStatus(BadRequest(WhyRefused(resolve, reply.denied_by)).error));
    }
    fill(reply);
    reactor->Finish(grpc::Status::OK);
  });
  return reactor;
}

}  // namespace

ServerUnaryReactor* ListDeadLetters(LedgerService& ledger, CallbackServerContext* context,
                                    const v1::ListDeadLettersRequest* request,
                                    v1::ListDeadLettersResponse* response) {
  ServerUnaryReactor* reactor = context->DefaultReactor();
  const auto position = admin::DecodePageToken(BindingOf(*request), request->page_token());
  DeadLetterQuery query;
  if (!position.ok() || (!position->empty() && !ReadPosition(*position, query))) {
    reactor->Finish(
        rpc::ToStatus(BadRequest("the page token is not one of this list", "page_token").error));
    return reactor;
  }
  query.workspace = request->workspace_id();
  query.resolved = request->resolved();
  query.limit =
      request->page_size() <= 0 ? kDefaultPage : std::min(request->page_size(), kMostInAPage);
  ledger.Read(
      [reactor, request, response, query](sql::Database& database) {
        auto letters = ReadDeadLetters(database, query);
        if (!letters.ok()) return reactor->Finish(rpc::ToStatus(sql::ToError(letters.error())));
        for (const DeadLetter& letter : *letters) {
          FromDeadLetter(letter, *response->add_dead_letters());
        }
        if (static_cast<int>(letters->size()) == query.limit) {
          response->set_next_page_token(
              admin::EncodePageToken(BindingOf(*request), PositionOf(letters->back())));
        }
        reactor->Finish(grpc::Status::OK);
      },
      [reactor](Error refused) { reactor->Finish(rpc::ToStatus(refused)); });
  return reactor;
}

ServerUnaryReactor* RetryDeadLetter(LedgerService& ledger, CallbackServerContext* context,
                                    const v1::RetryDeadLetterRequest* request,
                                    v1::RetryDeadLetterResponse* response) {
  return Resolve(ledger, context, ToResolve(*request), [response](const Reply& reply) {
    response->set_charged_nano_usd(reply.charged_nano_usd);
  });
}

ServerUnaryReactor* WriteOffDeadLetter(LedgerService& ledger, CallbackServerContext* context,
                                       const v1::WriteOffDeadLetterRequest* request,
                                       v1::WriteOffDeadLetterResponse*) {
  return Resolve(ledger, context, ToResolve(*request), [](const Reply&) {});
}

}  // namespace tollgate::billing
