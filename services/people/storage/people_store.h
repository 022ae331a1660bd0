// People, memberships, invitations, sessions and access tokens in the database of auth.
// Thread-safe. Every call blocks on the database, so only storage threads may call. Each change is
// audited in its own transaction.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "services/people/rules/people_rules.h"
#include "services/people/storage/mail_outbox.h"
#include "services/people/storage/people_tx.h"

namespace tollgate::people {

enum class PersonState : uint8_t { kActive = 1, kDisabled = 2 };

struct Person {
  std::string user_id;
  std::string email;
  // Verified by a sign-in provider, and not only claimed by whoever created the account.
  bool email_verified = false;
  std::string display_name;
  PersonState state = PersonState::kActive;
  bool platform_operator = false;
  std::string password_hash;  // empty: none
  std::string totp_sealed;    // empty: no second step
  std::string totp_pending;   // begun, but not confirmed
  int64_t totp_step = 0;      // step of the last code used
  int64_t created_us = 0;
  bool active() const { return state == PersonState::kActive; }
};
struct Membership {
  std::string workspace;
  Role role = Role::ROLE_UNSPECIFIED;
};
struct Member {
  Person person;
  Role role = Role::ROLE_UNSPECIFIED;
  int64_t since_us = 0;
};
struct Invitation {
  std::string id;
  std::string workspace;
  std::string email;
  Role role = Role::ROLE_UNSPECIFIED;
  std::string actor;  // who vouches for it; empty in a new one: its maker
  int64_t created_us = 0;
  int64_t expires_us = 0;
};
struct Session {
  std::string id;
  std::string user_id;
  std::string address;
  std::string user_agent;
  int64_t created_us = 0;
  int64_t signed_in_us = 0;
  int64_t used_us = 0;
  int64_t expires_us = 0;
};
struct AccessToken {
  std::string id;
  std::string user_id;
  std::string name;
  std::vector<std::string> scopes;
  std::string last_four;
  int64_t created_us = 0;
  int64_t used_us = 0;  // 0: never
  int64_t expires_us = 0;
};

// Who makes a change, for the audit log.
struct Actor {
  std::string name;  // "user:ID", "cert:NAME", …
  std::string address;
  std::string request_id = {};  // request id of the call; may be empty
};

// An audit event of this actor. workspace: "" if the event belongs to none.
AuditRecord RecordOf(const Actor& actor, std::string action, std::string workspace,
                     std::string subject, std::string detail = "");

// ---- Rows, within a transaction. ----
AdminResult<std::optional<Person>> FindPerson(PeopleTx& tx, std::string_view user_id);
AdminResult<std::optional<Person>> FindPersonByEmail(PeopleTx& tx, std::string_view email);
AdminResult<std::vector<Membership>> MembershipsOf(PeopleTx& tx, std::string_view user_id);
AdminResult<void> InsertPerson(PeopleTx& tx, const Person& person);
AdminResult<void> UpdatePerson(PeopleTx& tx, const Person& person);
AdminResult<void> PutMembership(PeopleTx& tx, std::string_view workspace, std::string_view user_id,
                                Role role);
// Finds the session of a cookie if it has not expired.
AdminResult<std::optional<Session>> FindSession(PeopleTx& tx, std::string_view cookie,
                                                const SessionTimes& times);
// Most sessions of a person; one more ends the oldest.
inline constexpr int kMaxSessions = 100;
AdminResult<void> InsertSession(PeopleTx& tx, const Session& session, std::string_view cookie);
AdminResult<int64_t> DeleteSessions(PeopleTx& tx, std::string_view user_id,
                                    std::string_view except_session_id = "");
AdminResult<std::optional<AccessToken>> FindToken(PeopleTx& tx, std::string_view secret);
// Lists are stored in a column with one entry per line.
std::vector<std::string> SplitLines(std::string_view text);
// The answer to an earlier request with this key and content; REQUEST_ID_REUSED with other content.
AdminResult<std::optional<std::string>> AnswerOfRequest(PeopleTx& tx, const std::string& key,
                                                        std::string_view content);
AdminResult<void> RememberRequest(PeopleTx& tx, const std::string& key, std::string_view content,
                                  std::string_view answer);

inline constexpr char kDemonstrationEmail[] = "owner@demo.invalid";

// ---- Calls of the admin API. ----
class PeopleStore {
 public:
  PeopleStore(sql::Database& database, const Clock& clock, SessionTimes times,
              MailOutbox outbox = {})
      : database_(database, clock), times_(times), outbox_(std::move(outbox)) {}

  PeopleDatabase& database() { return database_; }
  const SessionTimes& times() const { return times_; }
  const MailOutbox& outbox() const { return outbox_; }

  struct PersonView {
    Person person;
    std::vector<Membership> memberships;
  };
  AdminResult<PersonView> GetPerson(const std::string& user_id);
  // Newest first, after this position ("" for the start).
  AdminResult<std::vector<PersonView>> ListPersons(int limit, const std::string& after);
  struct PersonChange {
    std::optional<std::string> display_name;
    std::optional<PersonState> state;
    std::optional<bool> platform_operator;
  };
  // A change of state or of platform_operator ends the person's sessions. LAST_OWNER if the person
  // to disable is the only owner of a workspace who can sign in.
  AdminResult<PersonView> ChangePerson(const Actor& actor, const std::string& user_id,
                                       const PersonChange& change);
  struct NewPerson {
    std::string email;
    std::string display_name;
    bool platform_operator = false;
    std::string request_id;
  };
  struct MadePerson {
    PersonView view;
    std::string link_token;  // empty in a repeated answer
  };
  AdminResult<MadePerson> CreatePerson(const Actor& actor, const NewPerson& person);
  struct Link {
    std::string token;  // empty in a repeated answer
    int64_t expires_us = 0;
  };
  AdminResult<Link> CreateLink(const Actor& actor, const std::string& user_id,
                               const std::string& request_id);
  // Switches the second step off and ends the person's sessions.
  AdminResult<PersonView> ResetTotp(const Actor& actor, const std::string& user_id);

  AdminResult<std::vector<Session>> ListSessions(const std::string& user_id);
  AdminResult<void> DeleteSession(const Actor& actor, const std::string& user_id,
                                  const std::string& session_id);
  AdminResult<int64_t> RevokeOtherSessions(const Actor& actor, const std::string& user_id,
                                           const std::string& session_id);

  struct MadeToken {
    AccessToken token;
    std::string secret;  // empty in a repeated answer
  };
  AdminResult<MadeToken> CreateToken(const Actor& actor, AccessToken token,
                                     const std::string& request_id);
  AdminResult<std::vector<AccessToken>> ListTokens(const std::string& user_id);
  AdminResult<void> DeleteToken(const Actor& actor, const std::string& user_id,
                                const std::string& token_id);

  AdminResult<Member> GetMember(const std::string& workspace, const std::string& user_id);
  AdminResult<std::vector<Member>> ListMembers(const std::string& workspace,
                                               const std::string& query, int limit,
                                               const std::string& after);
  // Lowering or removing a role also withdraws open invitations that the new role could not make.
  AdminResult<Member> SetRole(const Actor& actor, const std::string& workspace,
                              const std::string& user_id, Role role);
  // manager: the caller's role; unset: an operator of the installation, or the member.
  AdminResult<void> RemoveMember(const Actor& actor, const std::string& workspace,
                                 const std::string& user_id, std::optional<Role> manager);

  struct MadeInvitation {
    Invitation invitation;
    std::string token;  // empty in a repeated answer, and if it was mailed
    bool mailed = false;
  };
  AdminResult<MadeInvitation> CreateInvitation(const Actor& actor, Invitation invitation,
                                               const std::string& request_id);
  AdminResult<std::vector<Invitation>> ListInvitations(const std::string& workspace, int limit,
                                                       const std::string& after);
  AdminResult<void> DeleteInvitation(const Actor& actor, const std::string& workspace,
                                     const std::string& id);
  AdminResult<Member> AcceptInvitation(const Actor& actor, const std::string& user_id,
                                       const std::string& token, std::string* workspace);

  // Creates the demonstration's owner of this workspace and a sign-in link. The token is empty if
  // the owner exists.
  AdminResult<Link> DemonstrationLink(const std::string& workspace);

 private:
  PeopleDatabase database_;
  const SessionTimes times_;
  const MailOutbox outbox_;
};

// Invalidates mailed password links, one-time links and sign-ins that wait for a code. Call it with
// every change of a sign-in credential.
AdminResult<void> EndPending(PeopleTx& tx, std::string_view user_id);
// Switches the second step off and calls EndPending.
AdminResult<void> RemoveTotp(PeopleTx& tx, Person& person);
// The identity of the holder of a session or token, as services receive it.
common::v1::Identity IdentityOf(const Person& person, const std::vector<Membership>& memberships);
// Fails with LAST_OWNER unless another owner of the workspace can sign in.
AdminResult<void> KeepAnOwner(PeopleTx& tx, const std::string& workspace,
                              const std::string& without);
// The open invitation of a token; otherwise INVITATION_EXPIRED.
AdminResult<Invitation> OpenInvitation(PeopleTx& tx, std::string_view token);
// Makes the person a member and deletes the invitation.
AdminResult<void> UseInvitation(PeopleTx& tx, const Actor& actor, const Person& person,
                                const Invitation& invitation);

}  // namespace tollgate::people
