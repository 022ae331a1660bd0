// Calls between processes over TCP are encrypted and authenticated unless the configuration
// explicitly says otherwise.
#include "common/host/plain_text.h"

#include <gtest/gtest.h>

#include "tollgate/config/v1/config.pb.h"

namespace tollgate::host {
namespace {

TEST(PlainText, ATcpAddressWithoutTlsIsAnErrorThatSaysWhatToDo) {
  config::v1::HostConfig host;
  host.set_grpc_listen("unix:/run/x.sock, 127.0.0.1:7000");
  const auto checked = CheckPlainText(host, {});
  ASSERT_FALSE(checked.ok());
  const std::string& text = checked.error().internal;
  EXPECT_NE(text.find("host.grpc_listen"), std::string::npos) << text;
  EXPECT_NE(text.find("host.insecure_plaintext: true"), std::string::npos) << text;
  EXPECT_NE(text.find("host.tls"), std::string::npos) << text;
}

TEST(PlainText, TheAdminAddressAndEveryTargetAreChecked) {
  config::v1::HostConfig host;
  host.set_admin_grpc_listen("[::1]:0");
  EXPECT_FALSE(CheckPlainText(host, {}).ok());
  const auto* fields = config::v1::TargetsConfig::descriptor();
  for (int i = 0; i < fields->field_count(); ++i) {
    config::v1::TargetsConfig targets;
    const auto* field = fields->field(i);
    if (field->is_repeated()) {
      targets.GetReflection()->AddString(&targets, field, "service:7000");
    } else {
      targets.GetReflection()->SetString(&targets, field, "service:7000");
    }
    const auto checked = CheckPlainText({}, targets);
    ASSERT_FALSE(checked.ok()) << field->name();
    EXPECT_NE(checked.error().internal.find("targets." + field->name()), std::string::npos);
  }
}

TEST(PlainText, UnixSocketsAndThisProcessNeedNoTls) {
  config::v1::HostConfig host;
  host.set_grpc_listen("unix:/run/x.sock");
  config::v1::TargetsConfig targets;
  targets.set_auth("unix:/run/auth.sock");
  targets.set_billing("inproc:");
  EXPECT_TRUE(CheckPlainText(host, targets).ok());
  EXPECT_TRUE(CheckPlainText({}, {}).ok());
}

TEST(PlainText, HttpThatOtherMachinesReachNeedsTlsOrTheExplicitSetting) {
  for (const char* address : {"0.0.0.0:80", "[::]:80", "10.0.0.1:80", ":80", "127x.example:80"}) {
    const auto checked =
        CheckPlainHttp("gateway.listen", address, false, false, "gateway.edge_tls");
    ASSERT_FALSE(checked.ok()) << address;
    EXPECT_NE(checked.error().internal.find("gateway.listen"), std::string::npos);
    EXPECT_NE(checked.error().internal.find("set gateway.edge_tls"), std::string::npos);
    EXPECT_TRUE(CheckPlainHttp("gateway.listen", address, true, false, "").ok()) << address;
    EXPECT_TRUE(CheckPlainHttp("gateway.listen", address, false, true, "").ok()) << address;
  }
  for (const char* address : {"127.0.0.1:0", "localhost:80", "[::1]:80", "unix:/run/x.sock", ""}) {
    EXPECT_TRUE(CheckPlainHttp("gateway.listen", address, false, false, "").ok()) << address;
  }
}

TEST(PlainText, TlsOrTheExplicitSettingAllowsTcp) {
  config::v1::HostConfig host;
  host.set_grpc_listen("0.0.0.0:7000");
  host.set_insecure_plaintext(true);
  EXPECT_TRUE(CheckPlainText(host, {}).ok());
  host.set_insecure_plaintext(false);
  host.mutable_tls()->set_certificate_file("c");
  EXPECT_TRUE(CheckPlainText(host, {}).ok());
}

}  // namespace
}  // namespace tollgate::host
