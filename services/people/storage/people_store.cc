// Accounts, sessions and access tokens.
#include "services/people/storage/people_store.h"

#include "common/base/id.h"
#include "common/base/try.h"

namespace tollgate::people {
namespace {

constexpr int64_t kLinkUs = int64_t{24} * 3600 * 1'000'000;
constexpr int kMaxTokens = 100;

AuditRecord Event(const Actor& actor, std::string action, std::string subject,
                  std::string detail = "") {
  return RecordOf(actor, std::move(action), "", std::move(subject), std::move(detail));
}

Fail<admin::Failure> NoPerson() { return admin::NotFound("there is no such user"); }

AdminResult<PeopleStore::PersonView> View(PeopleTx& tx, const std::string& user_id) {
  TRY(auto person, FindPerson(tx, user_id));
  if (!person) return NoPerson();
  TRY(auto memberships, MembershipsOf(tx, user_id));
  return PeopleStore::PersonView{*person, std::move(memberships)};
}

AdminResult<std::string> AddLink(PeopleTx& tx, const std::string& user_id) {
  const std::string token = NewSecret();
  const std::string hash = HashSecret(token);
  TRY(tx.Execute("DELETE FROM sign_in_link WHERE user_id = $1 OR expires_at_us < $2",
                 {user_id, tx.now_us()}));
  TRY(tx.Execute(
      "INSERT INTO sign_in_link (token_hash, user_id, expires_at_us) VALUES ($1, $2, $3)",
      {sql::Param::Blob(hash), user_id, tx.now_us() + kLinkUs}));
  return token;
}

}  // namespace

AuditRecord RecordOf(const Actor& actor, std::string action, std::string workspace,
                     std::string subject, std::string detail) {
  AuditRecord record;
  record.actor = actor.name;
  record.address = actor.address;
  record.request_id = actor.request_id;
  record.action = std::move(action);
  record.workspace_id = std::move(workspace);
  record.subject = std::move(subject);
  record.detail = std::move(detail);
  return record;
}

AdminResult<PeopleStore::PersonView> PeopleStore::GetPerson(const std::string& user_id) {
  PersonView view;
  auto done = database_.Read([&](PeopleTx& tx) -> AdminResult<void> {
    TRY(auto found, View(tx, user_id));
    view = std::move(found);
    return {};
  });
  if (!done) return Fail{done.error()};
  return view;
}

AdminResult<std::vector<PeopleStore::PersonView>> PeopleStore::ListPersons(
    int limit, const std::string& after) {
  std::vector<PersonView> views;
  auto done = database_.Read([&](PeopleTx& tx) -> AdminResult<void> {
    views.clear();
    std::vector<std::string> ids;
    // Ids sort by time of creation.
    TRY(tx.Query("SELECT user_id FROM person WHERE user_id < $1 ORDER BY user_id DESC LIMIT $2",
                 {after.empty() ? std::string("g") : after, limit},
                 [&](const sql::Row& row) { ids.push_back(row.Text(0)); }));
    for (const std::string& id : ids) {
      TRY(auto view, View(tx, id));
      views.push_back(std::move(view));
    }
    return {};
  });
  if (!done) return Fail{done.error()};
  return views;
}

AdminResult<PeopleStore::PersonView> PeopleStore::ChangePerson(const Actor& actor,
                                                               const std::string& user_id,
                                                               const PersonChange& change) {
  PersonView view;
  auto done = database_.Write([&](PeopleTx& tx) -> AdminResult<void> {
    TRY(auto found, View(tx, user_id));
    view = std::move(found);
    Person& person = view.person;
    std::string detail;
    bool ends_sessions = false;
    if (change.display_name && *change.display_name != person.display_name) {
      person.display_name = *change.display_name;
      detail += "display name; ";
    }
    if (change.state && *change.state != person.state) {
      person.state = *change.state;
      for (const Membership& one : view.memberships) {
        if (person.active() || one.role != Role::ROLE_OWNER) continue;
        TRY(KeepAnOwner(tx, one.workspace, user_id));
      }
      detail += person.active() ? "enabled; " : "disabled; ";
      ends_sessions = true;
    }
    if (change.platform_operator && *change.platform_operator != person.platform_operator) {
      person.platform_operator = *change.platform_operator;
      detail += person.platform_operator ? "platform operator; " : "no platform operator; ";
      ends_sessions = true;
    }
    if (detail.empty()) return {};
    detail.resize(detail.size() - 2);
    TRY(UpdatePerson(tx, person));
    if (!person.active()) {
      TRY(EndPending(tx, user_id));
    }
    if (ends_sessions) {
      TRY(DeleteSessions(tx, user_id));
    }
    return tx.Audit(Event(actor, "user.update", "user:" + user_id, detail));
  });
  if (!done) return Fail{done.error()};
  return view;
}

AdminResult<PeopleStore::MadePerson> PeopleStore::CreatePerson(const Actor& actor,
                                                               const NewPerson& wanted) {
  TRY(auto email, NormalEmail(wanted.email, "user.email"));
  TRY(CheckDisplayName(wanted.display_name, "user.display_name"));
  MadePerson made;
  const std::string key = "users:" + actor.name + ":" + wanted.request_id;
  const std::string content =
      email + "\n" + wanted.display_name + (wanted.platform_operator ? "\noperator" : "\n");
  auto done = database_.Write([&](PeopleTx& tx) -> AdminResult<void> {
    made = {};
    TRY(auto before, AnswerOfRequest(tx, key, content));
    if (before) {
      TRY(auto view, View(tx, *before));
      made.view = std::move(view);
      return {};
    }
    TRY(auto same, FindPersonByEmail(tx, email));
    if (same) {
      return Fail{admin::Failure{.code = grpc::StatusCode::ALREADY_EXISTS,
                                 .reason = "USER_EXISTS",
                                 .message = "there is a user with this e-mail address"}};
    }
    Person& person = made.view.person;
    person.user_id = Id::New().ToHex();
    person.email = email;
    person.display_name = wanted.display_name;
    person.platform_operator = wanted.platform_operator;
    person.created_us = tx.now_us();
    TRY(InsertPerson(tx, person));
    TRY(auto token, AddLink(tx, person.user_id));
    made.link_token = token;
    TRY(RememberRequest(tx, key, content, person.user_id));
    return tx.Audit(Event(actor, "user.create", "user:" + person.user_id,
                          person.platform_operator ? "platform operator" : ""));
  });
  if (!done) return Fail{done.error()};
  return made;
}

AdminResult<PeopleStore::Link> PeopleStore::CreateLink(const Actor& actor,
                                                       const std::string& user_id,
                                                       const std::string& request_id) {
  const std::string key = "sign_in_links:" + actor.name + ":" + request_id;
  Link link;
  auto done = database_.Write([&](PeopleTx& tx) -> AdminResult<void> {
    link = {};
    TRY(auto before, AnswerOfRequest(tx, key, user_id));
    if (before) {
      link.expires_us = std::strtoll(before->c_str(), nullptr, 10);
      return {};
    }
    TRY(auto view, View(tx, user_id));
    if (!view.person.active()) {
      return admin::Precondition("USER_DISABLED", "the user is disabled; enable it first");
    }
    TRY(auto token, AddLink(tx, user_id));
    link = {token, tx.now_us() + kLinkUs};
    TRY(RememberRequest(tx, key, user_id, std::to_string(link.expires_us)));
    return tx.Audit(Event(actor, "user.create_sign_in_link", "user:" + user_id));
  });
  if (!done) return Fail{done.error()};
  return link;
}

AdminResult<PeopleStore::PersonView> PeopleStore::ResetTotp(const Actor& actor,
                                                            const std::string& user_id) {
  PersonView view;
  auto done = database_.Write([&](PeopleTx& tx) -> AdminResult<void> {
    TRY(auto found, View(tx, user_id));
    view = std::move(found);
    if (view.person.totp_sealed.empty()) {
      return admin::Precondition("TOTP_OFF", "the user has no second step");
    }
    TRY(RemoveTotp(tx, view.person));
    TRY(DeleteSessions(tx, user_id));
    TRY(outbox_.Tell(tx, view.person, SecurityChange::kTotpReset, ""));
    return tx.Audit(Event(actor, "user.reset_totp", "user:" + user_id));
  });
  if (!done) return Fail{done.error()};
  return view;
}

AdminResult<PeopleStore::Link> PeopleStore::DemonstrationLink(const std::string& workspace) {
  const Actor actor{.name = "policy:demonstration"};
  Link link;
  auto done = database_.Write([&](PeopleTx& tx) -> AdminResult<void> {
    link = {};
    TRY(auto found, FindPersonByEmail(tx, kDemonstrationEmail));
    if (found) return {};
    Person person;
    person.user_id = Id::New().ToHex();
    person.email = kDemonstrationEmail;
    person.display_name = "Demonstration owner";
    person.created_us = tx.now_us();
    TRY(InsertPerson(tx, person));
    TRY(PutMembership(tx, workspace, person.user_id, Role::ROLE_OWNER));
    TRY(auto token, AddLink(tx, person.user_id));
    link = {token, tx.now_us() + kLinkUs};
    auto record = Event(actor, "user.create", "user:" + person.user_id, "owner, sign-in link");
    record.workspace_id = workspace;
    return tx.Audit(std::move(record));
  });
  if (!done) return Fail{done.error()};
  return link;
}

AdminResult<std::vector<Session>> PeopleStore::ListSessions(const std::string& user_id) {
  std::vector<Session> sessions;
  auto done = database_.Read([&](PeopleTx& tx) {
    sessions.clear();
    return tx.Query(
        "SELECT session_id, user_id, address, user_agent, created_at_us, signed_in_us, used_at_us, "
        "expires_at_us FROM session WHERE user_id = $1 AND expires_at_us > $2 AND used_at_us > $3 "
        "ORDER BY created_at_us DESC, session_id DESC LIMIT $4",
        {user_id, tx.now_us(), tx.now_us() - times_.idle_us, kMaxSessions},
        [&](const sql::Row& row) {
          sessions.push_back(Session{row.Text(0), row.Text(1), row.Text(2), row.Text(3), row.Int(4),
                                     row.Int(5), row.Int(6), row.Int(7)});
        });
  });
  if (!done) return Fail{done.error()};
  return sessions;
}

AdminResult<void> PeopleStore::DeleteSession(const Actor& actor, const std::string& user_id,
                                             const std::string& session_id) {
  return database_.Write([&](PeopleTx& tx) -> AdminResult<void> {
    TRY(auto gone, tx.Execute("DELETE FROM session WHERE user_id = $1 AND session_id = $2",
                              {user_id, session_id}));
    if (gone == 0) return admin::NotFound("there is no such session");
    return tx.Audit(Event(actor, "session.delete", "user:" + user_id, session_id));
  });
}

AdminResult<int64_t> PeopleStore::RevokeOtherSessions(const Actor& actor,
                                                      const std::string& user_id,
                                                      const std::string& session_id) {
  int64_t count = 0;
  auto done = database_.Write([&](PeopleTx& tx) -> AdminResult<void> {
    TRY(auto ended, DeleteSessions(tx, user_id, session_id));
    count = ended;
    return tx.Audit(
        Event(actor, "session.revoke_others", "user:" + user_id, std::to_string(count)));
  });
  if (!done) return Fail{done.error()};
  return count;
}

AdminResult<PeopleStore::MadeToken> PeopleStore::CreateToken(const Actor& actor, AccessToken token,
                                                             const std::string& request_id) {
  std::string scopes;
  for (const std::string& scope : token.scopes) scopes += (scopes.empty() ? "" : "\n") + scope;
  const std::string key = "tokens:" + actor.name + ":" + request_id;
  const std::string content = token.name + "\n" + std::to_string(token.expires_us) + "\n" + scopes;
  MadeToken made;
  auto done = database_.Write([&](PeopleTx& tx) -> AdminResult<void> {
    made = {.token = token, .secret = ""};
    TRY(auto before, AnswerOfRequest(tx, key, content));
    if (before) {
      made.token.id = *before;
      return tx.Query(
          "SELECT last_four, created_at_us, used_at_us FROM access_token WHERE "
          "token_id = $1",
          {made.token.id}, [&](const sql::Row& row) {
            made.token.last_four = row.Text(0);
            made.token.created_us = row.Int(1);
            made.token.used_us = row.Int(2);
          });
    }
    int64_t count = 0;
    TRY(tx.Execute("DELETE FROM access_token WHERE user_id = $1 AND expires_at_us <= $2",
                   {token.user_id, tx.now_us()}));
    TRY(tx.Query("SELECT count(*) FROM access_token WHERE user_id = $1", {token.user_id},
                 [&](const sql::Row& row) { count = row.Int(0); }));
    if (count >= kMaxTokens) {
      return admin::Precondition("TOO_MANY_TOKENS", "a person has at most 100 tokens");
    }
    made.secret = std::string(kTokenPrefix) + NewSecret();
    made.token.id = Id::New().ToHex();
    made.token.last_four = made.secret.substr(made.secret.size() - 4);
    made.token.created_us = tx.now_us();
    const std::string hash = HashSecret(made.secret);
    TRY(tx.Execute(
        "INSERT INTO access_token (token_id, token_hash, user_id, name, scopes, last_four, "
        "created_at_us, used_at_us, expires_at_us) VALUES ($1, $2, $3, $4, $5, $6, $7, 0, $8)",
        {made.token.id, sql::Param::Blob(hash), token.user_id, token.name, scopes,
         made.token.last_four, tx.now_us(), token.expires_us}));
    TRY(RememberRequest(tx, key, content, made.token.id));
    TRY(auto person, FindPerson(tx, token.user_id));
    if (person) {
      TRY(outbox_.Tell(tx, *person, SecurityChange::kToken, actor.address));
    }
    return tx.Audit(Event(actor, "token.create", "token:" + made.token.id, token.name));
  });
  if (!done) return Fail{done.error()};
  return made;
}

AdminResult<std::vector<AccessToken>> PeopleStore::ListTokens(const std::string& user_id) {
  std::vector<AccessToken> tokens;
  auto done = database_.Read([&](PeopleTx& tx) {
    tokens.clear();
    return tx.Query(
        "SELECT token_id, name, scopes, last_four, created_at_us, used_at_us, expires_at_us FROM "
        "access_token WHERE user_id = $1 AND expires_at_us > $2 ORDER BY token_id DESC",
        {user_id, tx.now_us()}, [&](const sql::Row& row) {
          tokens.push_back(AccessToken{.id = row.Text(0),
                                       .user_id = user_id,
                                       .name = row.Text(1),
                                       .scopes = SplitLines(row.Bytes(2)),
                                       .last_four = row.Text(3),
                                       .created_us = row.Int(4),
                                       .used_us = row.Int(5),
                                       .expires_us = row.Int(6)});
        });
  });
  if (!done) return Fail{done.error()};
  return tokens;
}

AdminResult<void> PeopleStore::DeleteToken(const Actor& actor, const std::string& user_id,
                                           const std::string& token_id) {
  return database_.Write([&](PeopleTx& tx) -> AdminResult<void> {
    TRY(auto gone, tx.Execute("DELETE FROM access_token WHERE user_id = $1 AND token_id = $2",
                              {user_id, token_id}));
    if (gone == 0) return admin::NotFound("there is no such token");
    return tx.Audit(Event(actor, "token.delete", "token:" + token_id));
  });
}

}  // namespace tollgate::people
