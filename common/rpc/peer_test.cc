#include "common/rpc/peer.h"

#include <gtest/gtest.h>

namespace tollgate::rpc {
namespace {

TEST(CertificateName, ProcessesAndOperatorsHaveNames) {
  const auto service = ParseCertificateName("spiffe://tollgate/svc/inference-router");
  ASSERT_TRUE(service);
  EXPECT_EQ(service->domain, "tollgate");
  EXPECT_EQ(service->kind, PeerKind::kService);
  EXPECT_EQ(service->name, "inference-router");
  const auto person = ParseCertificateName("spiffe://prod.example.com/operator/ada.l");
  ASSERT_TRUE(person);
  EXPECT_EQ(person->domain, "prod.example.com");
  EXPECT_EQ(person->kind, PeerKind::kOperator);
  EXPECT_EQ(person->name, "ada.l");
}

TEST(CertificateName, OtherFormsAreNoNames) {
  for (const char* uri :
       {"", "spiffe://", "spiffe://tollgate", "spiffe://tollgate/", "spiffe://tollgate/svc",
        "spiffe://tollgate/svc/", "spiffe:///svc/auth", "https://tollgate/svc/auth",
        "spiffe://tollgate/svc/auth/x", "spiffe://tollgate/ns/svc/auth",
        "spiffe://tollgate/SVC/auth", "spiffe://tollgate/svc/auth?x", "spiffe://tollgate/operator/",
        "spiffe://a b/svc/auth", "spiffe://tollgate/svc/auth\n", "SPIFFE://tollgate/svc/auth",
        "spiffe://tollgate@evil/svc/auth", "spiffe://tollgate:1/svc/auth"}) {
    EXPECT_FALSE(ParseCertificateName(uri)) << uri;
  }
}

TEST(CertificateName, TheNameOfAServiceIsReadBackAsWritten) {
  const std::string uri = ServiceUri("example.org", "billing");
  EXPECT_EQ(uri, "spiffe://example.org/svc/billing");
  EXPECT_EQ(ParseCertificateName(uri)->name, "billing");
}

}  // namespace
}  // namespace tollgate::rpc
