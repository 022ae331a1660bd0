// A person at the dashboard of a SecretWorld: signs in, also wrongly, and calls the admin API. What
// the product gives out once is a canary from then on.
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
  // Switches the second step on, and uses it and the recovery codes.
  void SecondStep();
  // Links that come by mail, also of a mail server that was stopped.
  void Mails();
  // Tokens, keys, webhooks and payments, rightly and wrongly.
  void AdminCalls(const ApiKey& key);

 private:
  HttpResponse Send(const std::string& method, const std::string& target, const std::string& body,
                    HeaderList headers = {});
  // With the session; a new cookie is kept.
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
