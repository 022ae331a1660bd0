// A database with people, for tests: each runs on SQLite and on PostgreSQL.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "common/audit/log.h"
#include "common/auth_schema/auth_schema.h"
#include "services/people/sign_in/sign_in.h"
#include "tests/support/postgres.h"

namespace tollgate::people {

enum class Kind { kSqlite, kPostgres };

// For TestPostgres::MakeDatabase.
inline void MakeSchema(const std::string& url) {
  auto opened = sql::Database::Open({.url = url});
  ASSERT_TRUE(opened) << opened.error().message;
  const auto made = auth_schema::Migrate(**opened);
  ASSERT_TRUE(made) << made.error().message;
}

class PeopleTest : public ::testing::TestWithParam<Kind> {
 protected:
  void SetUp() override {
    static int databases = 0;
    std::string folder = ::testing::TempDir() + "people_XXXXXX";
    folder_ = ::mkdtemp(folder.data());
    std::string url = "sqlite:" + folder_ + "/auth.db";
    if (GetParam() == Kind::kPostgres) {
      auto* server = ::tollgate::testing::TestPostgres::Shared();
      if (!server && ::tollgate::testing::TestPostgres::Required()) {
        FAIL() << "PostgreSQL is not installed";
      }
      if (!server) GTEST_SKIP() << "PostgreSQL is not installed";
      url = server->MakeDatabase("people_" + std::to_string(++databases), "people", MakeSchema);
    }
    auto opened = sql::Database::Open({.url = url});
    ASSERT_TRUE(opened) << opened.error().message;
    database_ = std::move(*opened);
    const auto migrated = auth_schema::Migrate(*database_);
    ASSERT_TRUE(migrated) << migrated.error().message;
    store_ = std::make_unique<PeopleStore>(
        *database_, clock_, SessionTimes{},
        mail_ ? MailOutbox(std::string(32, 's'), "https://gate.example/") : MailOutbox());
    sign_in_ = std::make_unique<SignIn>(*store_, std::string(32, 's'),
                                        std::vector<std::string>{"allowed.example"});
    for (const char* workspace : {"acme", "other"}) {
      MakeWorkspace(workspace);
    }
  }
  void TearDown() override {
    // Every test must leave a valid audit chain.
    if (database_) EXPECT_EQ(AuditProblem(), "");
    sign_in_.reset();
    store_.reset();
    database_.reset();
    std::filesystem::remove_all(folder_);
  }

  void MakeWorkspace(const std::string& id) {
    auto made = store_->database().Touch([&](PeopleTx& tx) {
      return WithoutValue(
          tx.Execute("INSERT INTO workspace (workspace_id, name, requests_per_minute, "
                     "tokens_per_minute, concurrent_requests, created_at_us) VALUES ($1, $1, 0, 0, "
                     "0, $2)",
                     {id, tx.now_us()}));
    });
    EXPECT_TRUE(made) << made.error().message;
  }
  // Creates a person with this password, and with a role in acme unless it is unspecified.
  Person Make(const std::string& email, const std::string& password = "",
              Role role = Role::ROLE_UNSPECIFIED, bool platform_operator = false) {
    auto made = store_->CreatePerson(kOperator, {.email = email,
                                                 .display_name = "",
                                                 .platform_operator = platform_operator,
                                                 .request_id = email.substr(0, email.find('@'))});
    EXPECT_TRUE(made.ok()) << made.error().message;
    Person person = made->view.person;
    if (role != Role::ROLE_UNSPECIFIED) {
      EXPECT_TRUE(
          store_->database()
              .Write([&](PeopleTx& tx) { return PutMembership(tx, "acme", person.user_id, role); })
              .ok());
    }
    if (!password.empty()) {
      EXPECT_TRUE(sign_in_->ByLink(made->link_token, password, {.address = "203.0.113.1"}).ok());
    }
    return person;
  }
  // Newest first.
  std::vector<AuditRecord> AuditEvents() {
    auto connection = database_->Borrow();
    EXPECT_TRUE(connection);
    auto events = audit::ReadAfter(**connection, auth_schema::kAuditTables, 0, 10'000);
    EXPECT_TRUE(events);
    std::ranges::reverse(*events);
    return *std::move(events);
  }
  std::vector<std::string> Actions() {
    std::vector<std::string> actions;
    for (const AuditRecord& event : AuditEvents()) actions.push_back(event.action);
    return actions;
  }
  // What is wrong with the audit log, or "".
  std::string AuditProblem() {
    auto connection = database_->Borrow();
    EXPECT_TRUE(connection);
    const auto head = audit::ReadHead(**connection, auth_schema::kAuditTables);
    EXPECT_TRUE(head);
    audit::Verifier verifier;
    const auto events = AuditEvents();
    for (auto event = events.rbegin(); event != events.rend(); ++event) {
      if (!verifier.Add(*event)) return verifier.problem();
    }
    return verifier.Finish((*head)->sequence, (*head)->hash) ? "" : verifier.problem();
  }
  // Signs in and returns the cookie, or "" on failure.
  std::string Cookie(const std::string& email, const std::string& password,
                     const std::string& address = "192.0.2.1") {
    auto signed_in = sign_in_->ByPassword(email, password, {.address = address});
    return signed_in.ok() ? signed_in->session.cookie : "";
  }
  bool Lives(const std::string& cookie) {
    auto identity = sign_in_->ResolveCookie(cookie, {});
    EXPECT_TRUE(identity.ok());
    return identity->has_value();
  }

  bool mail_ = false;  // whether the outbox accepts mails
  const Actor kOperator = {.name = "cert:op"};
  std::string folder_;
  ManualClock clock_;
  std::unique_ptr<sql::Database> database_;
  std::unique_ptr<PeopleStore> store_;
  std::unique_ptr<SignIn> sign_in_;
};

template <typename T>
std::string ReasonOf(const AdminResult<T>& result) {
  return result.ok() ? "" : result.error().reason;
}

}  // namespace tollgate::people
