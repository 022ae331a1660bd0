// A person at the dashboard of a SecretWorld: signs in, also with wrong secrets, and calls the
// admin API. Each secret that the product issues becomes a canary.
#pragma once

#include <string>
#include <vector>

#include "tests/secrets/secret_world.h"

namespace tollgate::test {

class PeopleCalls {
 public:
  PeopleCalls(SecretWorld& world, std::string admin_grpc_address, int dashboard_port)
      : world_(world), admin_(std::move(admin_grpc_address)), port_(dashboard_port) {}

  void SignInAsOperator(const std::string& email);
  void WrongSignIns();
  // Enables the second factor, and uses it and the recovery codes.
  void SecondStep();
  // Links sent by mail, also after the mail server was stopped for a while.
  void Mails();
  // Tokens, keys, webhooks and payments, with valid and invalid calls.
  void AdminCalls(const ApiKey& key);

 private:
  HttpResponse Send(const std::string& method, const std::string& target, const std::string& body,
                    HeaderList headers = {});
  // Calls with the session; keeps a new cookie.
  HttpResponse Session(const std::string& path, const std::string& body, bool once = false);
  void KeepCookie(const HttpResponse& answer);
  HttpResponse Admin(const std::string& method, const std::string& path, const std::string& body,
                     bool once = false);
  void ReadCsrf();
  void SignInAgain();

  SecretWorld& world_;
  const std::string admin_;
  const int port_;
  std::string email_, password_, cookie_, csrf_, token_;
  std::vector<std::string> codes_;  // for recovery, not used yet
  int requests_ = 0;
};

}  // namespace tollgate::test
