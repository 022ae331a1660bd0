// The members of workspaces, and invitations.
#include "common/base/id.h"
#include "common/base/try.h"
#include "services/people/storage/people_store.h"
#include "services/people/storage/try_limits.h"

namespace tollgate::people {
namespace {

constexpr int64_t kInvitationUs = int64_t{7} * 24 * 3600 * 1'000'000;

Fail<admin::Failure> NoMember() { return admin::NotFound("there is no such member"); }

AdminResult<Member> FindMember(PeopleTx& tx, const std::string& workspace,
                               const std::string& user_id) {
  Member member;
  auto read = tx.Query(
      "SELECT role, created_at_us FROM membership WHERE workspace_id = $1 AND user_id = $2",
      {workspace, user_id}, [&](const sql::Row& row) {
        member.role = static_cast<Role>(row.Int(0));
        member.since_us = row.Int(1);
      });
  if (!read) return Fail{read.error()};
  if (member.role == Role::ROLE_UNSPECIFIED) return NoMember();
  TRY(auto person, FindPerson(tx, user_id));
  if (!person) return NoMember();
  member.person = *std::move(person);
  return member;
}

Invitation ReadInvitation(const sql::Row& row) {
  return {.id = row.Text(0),
          .workspace = row.Text(1),
          .email = row.Text(2),
          .role = static_cast<Role>(row.Int(3)),
          .actor = row.Text(4),
          .created_us = row.Int(5),
          .expires_us = row.Int(6)};
}
constexpr std::string_view kInvitationColumns =
    "SELECT invitation_id, workspace_id, email, role, actor, created_at_us, expires_at_us FROM "
    "invitation";

// Withdraws the open invitations that a member could not make in the role `now`. Otherwise a
// removed member could come back through one.
AdminResult<void> WithdrawInvitations(PeopleTx& tx, const Actor& actor,
                                      const std::string& workspace, const std::string& user_id,
                                      Role now) {
  std::vector<Invitation> made;
  TRY(tx.Query(std::string(kInvitationColumns) + " WHERE workspace_id = $1 AND actor = $2",
               {workspace, "user:" + user_id},
               [&](const sql::Row& row) { made.push_back(ReadInvitation(row)); }));
  for (const Invitation& one : made) {
    if (MayManage(now, one.role)) continue;
    TRY(tx.Execute("DELETE FROM invitation WHERE invitation_id = $1", {one.id}));
    TRY(tx.Audit(RecordOf(actor, "invitation.delete", workspace, "invitation:" + one.id,
                          "the role of the inviter changed")));
  }
  return {};
}

// Returns whether the link goes by mail.
AdminResult<bool> MailInvitation(PeopleTx& tx, const MailOutbox& outbox,
                                 const Invitation& invitation, const std::string& token) {
  if (!outbox.on()) return false;
  // Otherwise an inviter could flood a mailbox.
  TRY(TakeTries(tx, {RecipientSubject(invitation.email)}));
  std::string inviter;
  constexpr std::string_view kUser = "user:";
  if (invitation.actor.starts_with(kUser)) {
    TRY(auto person, FindPerson(tx, std::string_view(invitation.actor).substr(kUser.size())));
    if (person) inviter = person->email;
  }
  return outbox.Put(tx, MailOutbox::kInvitation, invitation.email,
                    InvitationMail(inviter, invitation.workspace, admin::RoleName(invitation.role),
                                   outbox.Link("/session/v1/invitation?token=" + token)),
                    kInvitationUs);
}

}  // namespace

AdminResult<void> KeepAnOwner(PeopleTx& tx, const std::string& workspace,
                              const std::string& without) {
  int64_t owners = 0;
  TRY(
      tx.Query("SELECT count(*) FROM membership m JOIN person p ON p.user_id = m.user_id WHERE "
               "m.workspace_id = $1 AND m.user_id <> $2 AND m.role = $3 AND p.state = 1",
               {workspace, without, static_cast<int64_t>(Role::ROLE_OWNER)},
               [&](const sql::Row& row) { owners = row.Int(0); }));
  if (owners > 0) return {};
  return admin::Precondition("LAST_OWNER",
                             "this is the last owner of the workspace: make another member owner "
                             "first");
}

AdminResult<Member> PeopleStore::GetMember(const std::string& workspace,
                                           const std::string& user_id) {
  Member member;
  auto done = database_.Read([&](PeopleTx& tx) -> AdminResult<void> {
    TRY(auto found, FindMember(tx, workspace, user_id));
    member = std::move(found);
    return {};
  });
  if (!done) return Fail{done.error()};
  return member;
}

AdminResult<std::vector<Member>> PeopleStore::ListMembers(const std::string& workspace,
                                                          const std::string& query, int limit,
                                                          const std::string& after) {
  std::string pattern;
  for (const char c : query) {
    if (c == '%' || c == '_' || c == '!') pattern += '!';
    pattern += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  pattern += '%';
  std::vector<Member> members;
  auto done = database_.Read([&](PeopleTx& tx) -> AdminResult<void> {
    members.clear();
    std::vector<std::string> ids;
    TRY(
        tx.Query("SELECT m.user_id FROM membership m JOIN person p ON p.user_id = m.user_id WHERE "
                 "m.workspace_id = $1 AND m.user_id < $2 AND (lower(p.email) LIKE $3 ESCAPE '!' OR "
                 "lower(p.display_name) LIKE $3 ESCAPE '!') ORDER BY m.user_id DESC LIMIT $4",
                 {workspace, after.empty() ? std::string("g") : after, pattern, limit},
                 [&](const sql::Row& row) { ids.push_back(row.Text(0)); }));
    for (const std::string& id : ids) {
      TRY(auto member, FindMember(tx, workspace, id));
      members.push_back(std::move(member));
    }
    return {};
  });
  if (!done) return Fail{done.error()};
  return members;
}

AdminResult<Member> PeopleStore::SetRole(const Actor& actor, const std::string& workspace,
                                         const std::string& user_id, Role role) {
  Member member;
  auto done = database_.Write([&](PeopleTx& tx) -> AdminResult<void> {
    TRY(auto found, FindMember(tx, workspace, user_id));
    member = std::move(found);
    if (member.role == role) return {};
    if (member.role == Role::ROLE_OWNER) {
      TRY(KeepAnOwner(tx, workspace, user_id));
    }
    const std::string detail =
        std::string(admin::RoleName(member.role)) + " to " + std::string(admin::RoleName(role));
    member.role = role;
    TRY(PutMembership(tx, workspace, user_id, role));
    TRY(WithdrawInvitations(tx, actor, workspace, user_id, role));
    TRY(DeleteSessions(tx, user_id));
    return tx.Audit(RecordOf(actor, "member.update", workspace, "user:" + user_id, detail));
  });
  if (!done) return Fail{done.error()};
  return member;
}

AdminResult<void> PeopleStore::RemoveMember(const Actor& actor, const std::string& workspace,
                                            const std::string& user_id,
                                            std::optional<Role> manager) {
  return database_.Write([&](PeopleTx& tx) -> AdminResult<void> {
    TRY(auto member, FindMember(tx, workspace, user_id));
    if (manager && !MayManage(*manager, member.role)) {
      return admin::PermissionDenied("PERMISSION_DENIED",
                                     "only an owner may remove an owner or an admin");
    }
    if (member.role == Role::ROLE_OWNER) {
      TRY(KeepAnOwner(tx, workspace, user_id));
    }
    TRY(tx.Execute("DELETE FROM membership WHERE workspace_id = $1 AND user_id = $2",
                   {workspace, user_id}));
    TRY(WithdrawInvitations(tx, actor, workspace, user_id, Role::ROLE_UNSPECIFIED));
    TRY(DeleteSessions(tx, user_id));
    return tx.Audit(RecordOf(actor, "member.delete", workspace, "user:" + user_id,
                             std::string(admin::RoleName(member.role))));
  });
}

AdminResult<PeopleStore::MadeInvitation> PeopleStore::CreateInvitation(
    const Actor& actor, Invitation invitation, const std::string& request_id) {
  const std::string key = "invitations:" + actor.name + ":" + request_id;
  const std::string content = invitation.workspace + "\n" + invitation.email + "\n" +
                              std::string(admin::RoleName(invitation.role));
  MadeInvitation made;
  auto done = database_.Write([&](PeopleTx& tx) -> AdminResult<void> {
    made = {.invitation = invitation, .token = "", .mailed = false};
    TRY(auto before, AnswerOfRequest(tx, key, content));
    if (before) {
      made.invitation.id = *before;
      return tx.Query(std::string(kInvitationColumns) + " WHERE invitation_id = $1",
                      {made.invitation.id},
                      [&](const sql::Row& row) { made.invitation = ReadInvitation(row); });
    }
    int64_t members = 0;
    TRY(
        tx.Query("SELECT count(*) FROM membership m JOIN person p ON p.user_id = m.user_id WHERE "
                 "m.workspace_id = $1 AND p.email = $2",
                 {invitation.workspace, invitation.email},
                 [&](const sql::Row& row) { members = row.Int(0); }));
    if (members > 0) {
      return Fail{admin::Failure{.code = grpc::StatusCode::ALREADY_EXISTS,
                                 .reason = "MEMBER_EXISTS",
                                 .message = "the person is a member already; change the role "
                                            "instead"}};
    }
    TRY(auto known, tx.HasWorkspace(invitation.workspace));
    if (!known) return admin::NotFound("there is no such workspace");
    TRY(tx.Execute("DELETE FROM invitation WHERE workspace_id = $1 AND email = $2",
                   {invitation.workspace, invitation.email}));
    made.token = NewSecret();
    made.invitation.id = Id::New().ToHex();
    if (made.invitation.actor.empty()) made.invitation.actor = actor.name;
    made.invitation.created_us = tx.now_us();
    made.invitation.expires_us = tx.now_us() + kInvitationUs;
    const std::string hash = HashSecret(made.token);
    TRY(tx.Execute(
        "INSERT INTO invitation (invitation_id, token_hash, workspace_id, email, role, actor, "
        "created_at_us, expires_at_us) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        {made.invitation.id, sql::Param::Blob(hash), invitation.workspace, invitation.email,
         static_cast<int64_t>(invitation.role), made.invitation.actor, made.invitation.created_us,
         made.invitation.expires_us}));
    TRY(RememberRequest(tx, key, content, made.invitation.id));
    TRY(auto mailed, MailInvitation(tx, outbox_, made.invitation, made.token));
    made.mailed = mailed;
    // The link proves access to the mailbox, so the inviter must not have it.
    if (made.mailed) made.token.clear();
    return tx.Audit(RecordOf(actor, "invitation.create", invitation.workspace,
                             "invitation:" + made.invitation.id,
                             std::string(admin::RoleName(invitation.role))));
  });
  if (!done) return Fail{done.error()};
  return made;
}

AdminResult<std::vector<Invitation>> PeopleStore::ListInvitations(const std::string& workspace,
                                                                  int limit,
                                                                  const std::string& after) {
  std::vector<Invitation> invitations;
  auto done = database_.Read([&](PeopleTx& tx) {
    invitations.clear();
    return tx.Query(std::string(kInvitationColumns) +
                        " WHERE workspace_id = $1 AND expires_at_us > $2 AND invitation_id < $3 "
                        "ORDER BY invitation_id DESC LIMIT $4",
                    {workspace, tx.now_us(), after.empty() ? std::string("g") : after, limit},
                    [&](const sql::Row& row) { invitations.push_back(ReadInvitation(row)); });
  });
  if (!done) return Fail{done.error()};
  return invitations;
}

AdminResult<void> PeopleStore::DeleteInvitation(const Actor& actor, const std::string& workspace,
                                                const std::string& id) {
  return database_.Write([&](PeopleTx& tx) -> AdminResult<void> {
    TRY(auto gone,
        tx.Execute("DELETE FROM invitation WHERE workspace_id = $1 AND invitation_id = $2",
                   {workspace, id}));
    if (gone == 0) return admin::NotFound("there is no such invitation");
    return tx.Audit(RecordOf(actor, "invitation.delete", workspace, "invitation:" + id));
  });
}

AdminResult<Invitation> OpenInvitation(PeopleTx& tx, std::string_view token) {
  std::optional<Invitation> found;
  const std::string hash = HashSecret(token);
  TRY(tx.Query(std::string(kInvitationColumns) + " WHERE token_hash = $1 AND expires_at_us > $2",
               {sql::Param::Blob(hash), tx.now_us()},
               [&](const sql::Row& row) { found = ReadInvitation(row); }));
  if (!found) {
    return admin::Precondition("INVITATION_EXPIRED",
                               "the invitation has expired, was used or was withdrawn; ask for a "
                               "new one");
  }
  return *found;
}

AdminResult<void> UseInvitation(PeopleTx& tx, const Actor& actor, const Person& person,
                                const Invitation& invitation) {
  TRY(tx.Execute("DELETE FROM invitation WHERE invitation_id = $1", {invitation.id}));
  TRY(PutMembership(tx, invitation.workspace, person.user_id, invitation.role));
  return tx.Audit(RecordOf(actor, "invitation.accept", invitation.workspace,
                           "user:" + person.user_id,
                           std::string(admin::RoleName(invitation.role))));
}

AdminResult<Member> PeopleStore::AcceptInvitation(const Actor& actor, const std::string& user_id,
                                                  const std::string& token,
                                                  std::string* workspace) {
  Member member;
  auto done = database_.Write([&](PeopleTx& tx) -> AdminResult<void> {
    TRY(auto invitation, OpenInvitation(tx, token));
    TRY(auto person, FindPerson(tx, user_id));
    if (!person || person->email != invitation.email) {
      return admin::Precondition("INVITATION_FOR_ANOTHER",
                                 "the invitation is for another e-mail address; sign in with the "
                                 "one that was invited");
    }
    auto before = FindMember(tx, invitation.workspace, user_id);
    if (before.ok()) {
      return admin::Precondition("MEMBER_EXISTS", "you are a member of this workspace already");
    }
    if (tx.error()) return Fail{before.error()};
    TRY(UseInvitation(tx, actor, *person, invitation));
    *workspace = invitation.workspace;
    TRY(auto found, FindMember(tx, invitation.workspace, user_id));
    member = std::move(found);
    return {};
  });
  if (!done) return Fail{done.error()};
  return member;
}

}  // namespace tollgate::people
