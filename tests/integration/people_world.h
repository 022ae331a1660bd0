// The all-in-one process on SQLite or PostgreSQL; its admin services get identities as the
// dashboard sends them.
#pragma once

#include <google/rpc/error_details.pb.h>
#include <google/rpc/status.pb.h>
#include <grpcpp/grpcpp.h>
#include <gtest/gtest.h>

#include <chrono>
#include <memory>
#include <string>

#include "tests/support/cluster.h"
#include "tests/support/postgres.h"
#include "tollgate/admin/v1/members.grpc.pb.h"
#include "tollgate/admin/v1/support_sessions.grpc.pb.h"
#include "tollgate/admin/v1/users.grpc.pb.h"
#include "tollgate/common/v1/identity.pb.h"

namespace tollgate::test {

namespace pb = tollgate::admin::v1;
using common::v1::Identity;
using common::v1::Role;

inline int64_t NowUs() {
  return std::chrono::duration_cast<std::chrono::microseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

// The reason of a failure; "" for success.
inline std::string ReasonOf(const grpc::Status& status) {
  if (status.ok()) return "";
  google::rpc::Status detail;
  google::rpc::ErrorInfo info;
  if (!detail.ParseFromString(status.error_details()) || detail.details_size() == 0 ||
      !detail.details(0).UnpackTo(&info)) {
    return "grpc " + std::to_string(status.error_code()) + ": " + status.error_message();
  }
  return info.reason();
}

class PeopleWorld : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    ClusterOptions options;
    options.catalog = DefaultCatalog({"http://127.0.0.1:1"});  // no engine is asked
    options.auth_settings = auth_settings_;
    options.billing_settings = billing_settings_;
    options.second_person_above_usd = 140;
    if (GetParam() == "postgres") {
      auto* server = ::tollgate::testing::TestPostgres::Shared();
      if (!server && ::tollgate::testing::TestPostgres::Required()) FAIL() << "no PostgreSQL";
      if (!server) GTEST_SKIP() << "PostgreSQL is not installed";
      static int databases = 0;
      options.auth_sql = server->MakeDatabase("people_auth_" + std::to_string(++databases));
      options.billing_sql = server->MakeDatabase("people_billing_" + std::to_string(databases));
    }
    cluster_ = std::make_unique<Cluster>(options);
    ASSERT_EQ(cluster_->Start(), "");
    channel_ = grpc::CreateChannel(cluster_->admin_grpc_address("auth"),
                                   grpc::InsecureChannelCredentials());
    users_ = pb::UserService::NewStub(channel_);
    members_ = pb::MemberService::NewStub(channel_);
    invitations_ = pb::InvitationService::NewStub(channel_);
    workspace_ = cluster_->NewWorkspace("acme");
    ASSERT_EQ(workspace_, "acme");
  }
  void TearDown() override {
    if (cluster_) {
      EXPECT_EQ(cluster_->StopOrderly(), "");
    }
  }

  static Identity Operator() {
    Identity identity;
    identity.set_actor("user:operator");
    identity.set_user_id("operator");
    identity.set_platform_operator(true);
    identity.set_signed_in_us(NowUs());
    return identity;
  }
  // A person who has just signed in, with this role in acme unless it is unspecified.
  static Identity Person(Role role, const std::string& id = "person") {
    Identity identity;
    identity.set_actor("user:" + id);
    identity.set_user_id(id);
    identity.set_signed_in_us(NowUs());
    if (role != Role::ROLE_UNSPECIFIED) {
      auto* membership = identity.add_memberships();
      membership->set_workspace("acme");
      membership->set_role(role);
    }
    return identity;
  }

  template <typename Stub, typename Request, typename Response>
  std::string As(const Identity& identity, Stub& stub,
                 grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&, Response*),
                 const Request& request, Response& response) {
    grpc::ClientContext context;
    context.AddMetadata("tollgate-identity-bin", identity.SerializeAsString());
    return ReasonOf((stub.*method)(&context, request, &response));
  }

  struct Account {
    std::string user_id;
    std::string link;  // path
  };
  Account NewAccount(const std::string& email) {
    pb::CreateUserRequest request;
    request.mutable_user()->set_email(email);
    request.set_request_id("r" + std::to_string(++requests_));
    pb::CreateUserResponse response;
    EXPECT_EQ(As(Operator(), *users_, &pb::UserService::Stub::CreateUser, request, response), "");
    return {response.user().name().substr(6), response.sign_in_path()};
  }

  std::vector<std::string> auth_settings_, billing_settings_;
  std::unique_ptr<Cluster> cluster_;
  std::shared_ptr<grpc::Channel> channel_;
  std::unique_ptr<pb::UserService::Stub> users_;
  std::unique_ptr<pb::MemberService::Stub> members_;
  std::unique_ptr<pb::InvitationService::Stub> invitations_;
  std::string workspace_;
  int requests_ = 0;
};

}  // namespace tollgate::test
