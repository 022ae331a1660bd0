// A real mail server (tests/mail/server.py, STARTTLS) and what it got.
#pragma once

#include <memory>
#include <string>

#include "tests/support/port.h"
#include "tests/support/process.h"

namespace tollgate::test {

class MailBox {
 public:
  MailBox();  // starts it
  void Start();
  void Stop() { server_->Kill(); }
  // Members of "people" in auth's settings.
  std::string Settings() const;
  static const char* password() { return "canary-mail-password"; }
  // The token of the link in the newest mail to this address that says so, which is waited for and
  // forgotten; "" after 30 s without one.
  std::string TakeToken(const std::string& recipient, const std::string& what);

 private:
  TempDir dir_;
  const TestPort port_;
  int starts_ = 0;
  std::unique_ptr<Process> server_;
};

}  // namespace tollgate::test
