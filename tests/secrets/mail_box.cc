#include "tests/secrets/mail_box.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>

#include "common/base/testing/certificate.h"

namespace tollgate::test {
namespace {

constexpr int64_t kWaitMs = 30'000;
constexpr char kUrl[] = "http://dashboard.test";

}  // namespace

MailBox::MailBox() {
  const ::tollgate::testing::TestCertificate authority("authority");
  authority.WriteCertificate(dir_.path() + "/authority.pem");
  ::tollgate::testing::TestCertificate("mail", "IP:127.0.0.1", &authority)
      .Write(dir_.path() + "/certificate.pem", dir_.path() + "/key.pem");
  WriteFile(dir_.path() + "/password", std::string(password()) + "\n");
  Start();
}

void MailBox::Start() {
  // Not *.log: the search of the product's logs must not read its own record.
  const std::string log = dir_.path() + "/server.log." + std::to_string(++starts_);
  const char* source = std::getenv("TOLLGATE_SOURCE");
  server_ = std::make_unique<Process>(
      "mail-server",
      std::vector<std::string>{"/usr/bin/python3",
                               std::string(source ? source : ".") + "/tests/mail/server.py",
                               std::to_string(port_.number()), dir_.path(), "starttls"},
      log);
  EXPECT_TRUE(
      server_->Start() &&
      WaitUntil([&] { return ReadFile(log).find("{\"port\": ") != std::string::npos; }, kWaitMs))
      << "python3-aiosmtpd is needed: " << ReadFile(log);
}

std::string MailBox::Settings() const {
  return std::string("public_url: \"") + kUrl +
         "\", mail_from: gate@gate.example, smtp_user: gate, smtp_password_file: " + dir_.path() +
         "/password, smtp_authority_file: " + dir_.path() + "/authority.pem, smtp_url: \"smtp://" +
         port_.address() + "\"";
}

std::string MailBox::TakeToken(const std::string& recipient, const std::string& what) {
  std::string token;
  (void)WaitUntil(
      [&] {
        for (const auto& file : std::filesystem::directory_iterator(dir_.path())) {
          if (!file.path().filename().string().starts_with("mail-")) continue;
          const std::string text = ReadFile(file.path().string());
          const size_t at = text.find(kUrl);
          if (text.find("\"to\": [\"" + recipient + "\"]") == std::string::npos ||
              text.find(what) == std::string::npos || at == std::string::npos) {
            continue;
          }
          const std::string link = text.substr(at, text.find('\r', at) - at);
          token = link.substr(link.find_last_of("=/") + 1);
          std::filesystem::remove(file.path());
          return true;
        }
        return false;
      },
      kWaitMs, 20);
  return token;
}

}  // namespace tollgate::test
