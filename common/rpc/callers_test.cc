// Tests only the table of callers. tls_test.cc and tests/callers use real connections.
#include "common/rpc/callers.h"

#include <gtest/gtest.h>

#include "tollgate/auth/v1/auth.pb.h"

namespace tollgate::rpc {
namespace {

constexpr char kService[] = "tollgate.auth.v1.AuthService";

TEST(MethodsWithoutRow, EveryMethodOfAServiceNeedsARow) {
  ASSERT_NE(auth::v1::WatchKeysRequest::descriptor(), nullptr);  // links the descriptor
  const std::vector<std::string> services = {kService};
  const std::vector<MethodCallers> some = {{"tollgate.auth.v1.AuthService/VerifyKey", kGateway}};
  const auto missing = MethodsWithoutRow(services, some);
  EXPECT_EQ(missing, (std::vector<std::string>{"tollgate.auth.v1.AuthService/WatchKeys",
                                               "tollgate.auth.v1.AuthService/ReadVersion",
                                               "tollgate.auth.v1.AuthService/ReportKeyUse"}));
  EXPECT_TRUE(MethodsWithoutRow({}, some).empty());
}

TEST(MethodsWithoutRow, ARowMayCoverAServiceOrAPackage) {
  const std::vector<std::string> services = {kService};
  for (const char* row : {"tollgate.auth.v1.AuthService/*", "tollgate.auth.v1.*"}) {
    const std::vector<MethodCallers> rows = {{row, kGateway}};
    EXPECT_TRUE(MethodsWithoutRow(services, rows).empty()) << row;
  }
  const std::vector<MethodCallers> other = {{"tollgate.auth.v1.AuthServiceB/*", kGateway}};
  EXPECT_EQ(MethodsWithoutRow(services, other).size(), 4U);
}

TEST(MethodsWithoutRow, AServiceWithoutADescriptionNeedsARowForAllOfIt) {
  const std::vector<std::string> services = {"grpc.health.v1.Other", "grpc.health.v1.Health"};
  EXPECT_EQ(MethodsWithoutRow(services, {}), services);
  const std::vector<MethodCallers> rows = {kHealthApi};
  EXPECT_EQ(MethodsWithoutRow(services, rows), std::vector<std::string>{"grpc.health.v1.Other"});
}

}  // namespace
}  // namespace tollgate::rpc
