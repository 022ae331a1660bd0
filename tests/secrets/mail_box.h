// A real mail server (tests/mail/server.py, STARTTLS) and the mails it received.
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
  // Waits for the newest mail to this address that contains `what`, and removes it. Returns the
  // token of its link; "" after 30 s without one.
  std::string TakeToken(const std::string& recipient, const std::string& what);

 private:
  TempDir dir_;
  const TestPort port_;
  int starts_ = 0;
  std::unique_ptr<Process> server_;
};

}  // namespace tollgate::test
