#include "services/people/storage/support_store.h"

#include "common/base/id.h"
#include "common/base/text.h"
#include "common/base/try.h"
#include "common/mail/mail.h"

namespace tollgate::people {
namespace {

constexpr size_t kMaxReason = 500;
constexpr size_t kMaxUse = 200;

constexpr std::string_view kSupportColumns =
    "SELECT session_id, workspace_id, user_id, actor, reason, created_at_us, expires_at_us, uses, "
    "used_at_us FROM support_session";

SupportSession Read(const sql::Row& row) {
  return {.id = row.Text(0),
          .workspace = row.Text(1),
          .user_id = row.Text(2),
          .actor = row.Text(3),
          .reason = row.Text(4),
          .created_us = row.Int(5),
          .expires_us = row.Int(6),
          .uses = row.Int(7),
          .used_us = row.Int(8)};
}

AuditRecord Event(const Actor& actor, std::string action, const SupportSession& session,
                  std::string detail) {
  return RecordOf(actor, std::move(action), session.workspace, "support_session:" + session.id,
                  std::move(detail));
}

AdminResult<std::optional<SupportSession>> FindOne(PeopleTx& tx, const std::string& workspace,
                                                   const std::string& id) {
  std::optional<SupportSession> found;
  TRY(tx.Query(std::string(kSupportColumns) + " WHERE workspace_id = $1 AND session_id = $2",
               {workspace, id}, [&](const sql::Row& row) { found = Read(row); }));
  return found;
}

AdminResult<void> CheckNew(const SupportSession& session, int64_t now_us) {
  if (session.reason.empty() || mail::OneLine(session.reason, kMaxReason) != session.reason) {
    return admin::InvalidField("support_session.reason",
                               "a reason of 1 to 500 bytes in one line is required");
  }
  if (session.expires_us <= now_us || session.expires_us > now_us + SupportStore::kLongestUs) {
    return admin::InvalidField("support_session.expire_time", "a time within an hour is required");
  }
  return {};
}

// Whether the creator of the session is still an operator.
AdminResult<bool> StillOperator(PeopleTx& tx, const SupportSession& session) {
  if (session.user_id.empty()) return true;
  TRY(auto person, FindPerson(tx, session.user_id));
  return person && person->active() && person->platform_operator;
}

}  // namespace

AdminResult<SupportStore::Made> SupportStore::Create(const Actor& actor, SupportSession wanted,
                                                     const std::string& request_id) {
  const std::string key = "support:" + actor.name + ":" + request_id;
  const std::string content =
      wanted.workspace + "\n" + std::to_string(wanted.expires_us) + "\n" + wanted.reason;
  Made made;
  auto done = database_.Write([&](PeopleTx& tx) -> AdminResult<void> {
    made = {.session = wanted, .secret = ""};
    SupportSession& session = made.session;
    TRY(auto before, AnswerOfRequest(tx, key, content));
    if (before) {
      TRY(auto found, FindOne(tx, wanted.workspace, *before));
      session = found.value_or(session);
      return {};
    }
    if (session.expires_us == 0) session.expires_us = tx.now_us() + kLongestUs;
    TRY(CheckNew(session, tx.now_us()));
    TRY(auto known, tx.HasWorkspace(session.workspace));
    if (!known) return admin::NotFound("there is no such workspace");
    made.secret = std::string(kSupportPrefix) + NewSecret();
    session.id = Id::New().ToHex();
    session.actor = actor.name;
    session.created_us = tx.now_us();
    const std::string hash = HashSecret(made.secret);
    TRY(tx.Execute(
        "INSERT INTO support_session (session_id, token_hash, workspace_id, user_id, actor, "
        "reason, created_at_us, expires_at_us, uses, used_at_us) VALUES ($1, $2, $3, $4, $5, $6, "
        "$7, $8, 0, 0)",
        {session.id, sql::Param::Blob(hash), session.workspace, session.user_id, session.actor,
         session.reason, session.created_us, session.expires_us}));
    TRY(RememberRequest(tx, key, content, session.id));
    return tx.Audit(Event(actor, "support_session.create", session, session.reason));
  });
  if (!done) return Fail{done.error()};
  return made;
}

AdminResult<std::vector<SupportSession>> SupportStore::List(const std::string& workspace, int limit,
                                                            const std::string& after) {
  std::vector<SupportSession> sessions;
  auto done = database_.Read([&](PeopleTx& tx) {
    sessions.clear();
    // Ids sort by time of creation.
    return tx.Query(std::string(kSupportColumns) +
                        " WHERE workspace_id = $1 AND session_id < $2 ORDER BY session_id DESC "
                        "LIMIT $3",
                    {workspace, after.empty() ? std::string("g") : after, limit},
                    [&](const sql::Row& row) { sessions.push_back(Read(row)); });
  });
  if (!done) return Fail{done.error()};
  return sessions;
}

AdminResult<SupportSession> SupportStore::End(const Actor& actor, const std::string& workspace,
                                              const std::string& id) {
  SupportSession session;
  auto done = database_.Write([&](PeopleTx& tx) -> AdminResult<void> {
    TRY(auto found, FindOne(tx, workspace, id));
    if (!found) return admin::NotFound("there is no such support session");
    session = *std::move(found);
    if (session.expires_us <= tx.now_us()) return {};
    session.expires_us = tx.now_us();
    TRY(tx.Execute("UPDATE support_session SET expires_at_us = $1 WHERE session_id = $2",
                   {session.expires_us, id}));
    return tx.Audit(Event(actor, "support_session.end", session, ""));
  });
  if (!done) return Fail{done.error()};
  return session;
}

AdminResult<std::optional<common::v1::Identity>> SupportStore::Use(std::string_view secret,
                                                                   const std::string& address,
                                                                   std::string_view use) {
  std::optional<common::v1::Identity> identity;
  const std::string hash = HashSecret(secret);
  auto done = database_.Write([&](PeopleTx& tx) -> AdminResult<void> {
    identity.reset();
    std::optional<SupportSession> found;
    TRY(tx.Query(std::string(kSupportColumns) +
                     " WHERE token_hash = $1 AND expires_at_us > $2 AND uses < $3",
                 {sql::Param::Blob(hash), tx.now_us(), kMostUses},
                 [&](const sql::Row& row) { found = Read(row); }));
    if (!found) return {};
    TRY(auto still, StillOperator(tx, *found));
    if (!still) return {};
    TRY(tx.Execute(
        "UPDATE support_session SET uses = uses + 1, used_at_us = $1 WHERE session_id = $2",
        {tx.now_us(), found->id}));
    const std::string actor = "support:" + found->id;
    TRY(tx.Audit(Event({.name = actor, .address = address}, "support_session.use", *found,
                       mail::OneLine(use, kMaxUse))));
    identity.emplace();
    identity->set_actor(actor);
    identity->set_display_name("Support");
    identity->set_support(true);
    identity->set_address(address);
    auto* membership = identity->add_memberships();
    membership->set_workspace(found->workspace);
    membership->set_role(Role::ROLE_OWNER);
    return {};
  });
  if (!done) return Fail{done.error()};
  return identity;
}

}  // namespace tollgate::people
