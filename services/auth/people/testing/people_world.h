// A database with people, for tests: each runs on SQLite and on PostgreSQL.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <filesystem>

#include "services/auth/people/sign_in.h"
#include "services/auth/storage/auth_store.h"
#include "services/auth/testing/auth_schema.h"
#include "services/auth/testing/store_calls.h"
#include "tests/support/postgres.h"

namespace tollgate::auth {

enum class Kind { kSqlite, kPostgres };

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
      url = server->MakeDatabase("people_" + std::to_string(++databases), "auth", MakeAuthSchema);
    }
    auto opened = AuthStore::Open(
        {.database = {.url = url}, .pepper = std::string(32, 'p'), .brand = "tollgate"}, clock_);
    ASSERT_TRUE(opened) << opened.error().ToString();
    auth_ = std::move(*opened);
    store_ = std::make_unique<PeopleStore>(
        auth_->database(), clock_, SessionTimes{},
        mail_ ? MailOutbox(std::string(32, 's'), "https://gate.example/") : MailOutbox());
    sign_in_ = std::make_unique<SignIn>(*store_, std::string(32, 's'),
                                        std::vector<std::string>{"allowed.example"});
    for (const char* workspace : {"acme", "other"}) {
      MakeWorkspace(*auth_, workspace);
    }
  }
  void TearDown() override {
    // Every test must leave a valid audit chain.
    if (auth_) {
      const auto verified = auth_->VerifyAudit();
      EXPECT_TRUE(verified.ok()) << verified.error();
    }
    sign_in_.reset();
    store_.reset();
    auth_.reset();
    std::filesystem::remove_all(folder_);
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
  std::vector<std::string> Actions() {
    std::vector<std::string> actions;
    for (const AuditRecord& event : AuditEvents(*auth_)) actions.push_back(event.action);
    return actions;
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
  std::unique_ptr<AuthStore> auth_;
  std::unique_ptr<PeopleStore> store_;
  std::unique_ptr<SignIn> sign_in_;
};

template <typename T>
std::string ReasonOf(const AdminResult<T>& result) {
  return result.ok() ? "" : result.error().reason;
}

}  // namespace tollgate::auth
