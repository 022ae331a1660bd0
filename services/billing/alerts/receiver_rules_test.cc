#include "services/billing/alerts/receiver_rules.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>

namespace tollgate::billing::alerts {
namespace {

bool Public(const char* text) {
  sockaddr_storage address{};
  if (std::string_view(text).find(':') == std::string_view::npos) {
    auto& v4 = reinterpret_cast<sockaddr_in&>(address);
    v4.sin_family = AF_INET;
    EXPECT_EQ(inet_pton(AF_INET, text, &v4.sin_addr), 1) << text;
  } else {
    auto& v6 = reinterpret_cast<sockaddr_in6&>(address);
    v6.sin6_family = AF_INET6;
    EXPECT_EQ(inet_pton(AF_INET6, text, &v6.sin6_addr), 1) << text;
  }
  return IsPublicPeer(reinterpret_cast<sockaddr&>(address));
}

TEST(ReceiverRulesTest, OnlyPublicPeersAreCalled) {
  for (const char* text : {"10.1.2.3", "127.0.0.1", "::1", "fd12::1", "::ffff:8.8.8.8"}) {
    EXPECT_FALSE(Public(text)) << text;
  }
  for (const char* text : {"8.8.8.8", "2606:4700:4700::1111"}) EXPECT_TRUE(Public(text)) << text;
}

TEST(ReceiverRulesTest, OnlyHttpsUrlsOfPublicHostsArePermitted) {
  EXPECT_EQ(CheckWebhookUrl("https://example.com/hook?x=1", false), "");
  EXPECT_EQ(CheckWebhookUrl("https://8.8.8.8:8443/", false), "");
  for (const char* url :
       {"", "http://example.com/", "ftp://example.com/", "file:///etc/passwd", "https://",
        "https://localhost/", "https://127.0.0.1/", "https://127.1/", "https://0x7f000001/",
        "https://2130706433/", "https://[::1]/", "https://[::ffff:10.0.0.1]/", "https://10.0.0.1/",
        "https://169.254.169.254/latest", "https://user:pw@example.com/",
        "https://example.com/\r\nX: y", "https://exa mple.com/", "https://example.com/#x"}) {
    EXPECT_NE(CheckWebhookUrl(url, false), "") << url;
  }
  EXPECT_EQ(CheckWebhookUrl("http://127.0.0.1:80/", true), "");
  EXPECT_EQ(CheckWebhookUrl("https://10.0.0.1/", true), "");
  EXPECT_NE(CheckWebhookUrl("http://10.0.0.1/", true), "") << "plain http only on the loopback";
  EXPECT_NE(CheckWebhookUrl("https://example.com/" + std::string(3000, 'x'), true), "");
}

}  // namespace
}  // namespace tollgate::billing::alerts
