// Mails to people, with a real mail server over TLS and the real processes: invitations, forgotten
// passwords, notices; a mail server that is down and comes back; two replicas.
#include <filesystem>
#include <set>

#include "common/base/testing/certificate.h"
#include "tests/integration/people_world.h"
#include "tests/support/http.h"
#include "tests/support/process.h"

namespace tollgate::test {
namespace {

constexpr char kPassword[] = "correct horse battery";
constexpr int64_t kWaitMs = 30'000;

class MailServerTest : public ::testing::Test {
 protected:
  // mode: starttls or tls.
  void StartAll(const std::string& mode, bool replicas = false) {
    const ::tollgate::testing::TestCertificate authority("authority");
    authority.WriteCertificate(dir_.path() + "/authority.pem");
    ::tollgate::testing::TestCertificate("mail", "IP:127.0.0.1", &authority)
        .Write(dir_.path() + "/certificate.pem", dir_.path() + "/key.pem");
    WriteFile(dir_.path() + "/password", "canary-mail-password\n");
    mode_ = mode;
    ASSERT_TRUE(StartServer());
    ClusterOptions options;
    options.catalog = DefaultCatalog({"http://127.0.0.1:1"});  // no engine is asked
    options.auth_settings = {
        "people: {public_url: \"http://dashboard.test\", mail_from: "
        "gate@gate.example, smtp_user: gate, smtp_password_file: " +
        dir_.path() + "/password, smtp_authority_file: " + dir_.path() +
        "/authority.pem, smtp_url: \"" + (mode == "tls" ? "smtps" : "smtp") + "://" +
        port_.address() + "\"}"};
    options.dashboard_settings = {"public_url: http://dashboard.test"};
    if (replicas) {
      auto* server = ::tollgate::testing::TestPostgres::Shared();
      if (!server && ::tollgate::testing::TestPostgres::Required()) FAIL() << "no PostgreSQL";
      if (!server) GTEST_SKIP() << "PostgreSQL is not installed";
      options.all_in_one = false;
      options.auths = 2;
      options.auth_sql = server->MakeDatabase("mail_auth");
    }
    cluster_ = std::make_unique<Cluster>(options);
    ASSERT_EQ(cluster_->Start(), "");
    channel_ = grpc::CreateChannel(cluster_->admin_grpc_address("auth"),
                                   grpc::InsecureChannelCredentials());
    ASSERT_EQ(cluster_->NewWorkspace("acme"), "acme");
  }
  void TearDown() override {
    if (cluster_) EXPECT_EQ(cluster_->StopOrderly(), "");
    if (server_) server_->Terminate();
  }

  bool StartServer() {
    const std::string log = dir_.path() + "/server.log." + std::to_string(++starts_);
    const char* source = std::getenv("TOLLGATE_SOURCE");
    server_ = std::make_unique<Process>(
        "mail-server",
        std::vector<std::string>{"/usr/bin/python3",
                                 std::string(source ? source : ".") + "/tests/mail/server.py",
                                 std::to_string(port_.number()), dir_.path(), mode_},
        log);
    const std::string mark = "{\"port\": ";
    const bool started =
        server_->Start() &&
        WaitUntil([&] { return ReadFile(log).find(mark) != std::string::npos; }, kWaitMs);
    EXPECT_TRUE(started) << "python3-aiosmtpd is needed: " << ReadFile(log);
    return started;
  }

  struct Mail {
    Json envelope;
    std::string text;
  };
  // All mails that the server accepted for one recipient.
  std::vector<Mail> MailsTo(const std::string& recipient) const {
    std::vector<Mail> mails;
    for (const auto& file : std::filesystem::directory_iterator(dir_.path())) {
      if (!file.path().filename().string().starts_with("mail-")) continue;
      const std::string text = ReadFile(file.path().string());
      const size_t end = text.find('\n');
      Mail mail{.envelope = Json::Parse(text.substr(0, end)).value_or(Json()),
                .text = text.substr(end + 1)};
      if (mail.envelope["to"][0].str() == recipient) mails.push_back(std::move(mail));
    }
    return mails;
  }
  // The first mail to the recipient that contains this text.
  std::string WaitForMail(const std::string& recipient, const std::string& what) {
    std::string found;
    EXPECT_TRUE(WaitUntil(
        [&] {
          for (const Mail& mail : MailsTo(recipient)) {
            if (mail.text.find(what) != std::string::npos) found = mail.text;
          }
          return !found.empty();
        },
        kWaitMs))
        << "no mail to " << recipient << " says " << what;
    return found;
  }
  // The path of the link in a mail.
  static std::string PathIn(const std::string& text) {
    const std::string base = "http://dashboard.test";
    const size_t at = text.find(base);
    if (at == std::string::npos) return "";
    return text.substr(at + base.size(), text.find('\r', at) - at - base.size());
  }
  static std::string TokenIn(const std::string& text) {
    const std::string path = PathIn(text);
    return path.substr(path.find('=') + 1);
  }

  template <typename Stub, typename Request, typename Response>
  std::string AsOperator(Stub& stub,
                         grpc::Status (Stub::*method)(grpc::ClientContext*, const Request&,
                                                      Response*),
                         const Request& request, Response& response) {
    Identity identity;
    identity.set_actor("user:operator");
    identity.set_user_id("operator");
    identity.set_platform_operator(true);
    identity.set_signed_in_us(NowUs());
    grpc::ClientContext context;
    context.AddMetadata("tollgate-identity-bin", identity.SerializeAsString());
    return ReasonOf((stub.*method)(&context, request, &response));
  }
  pb::CreateInvitationResponse Invite(const std::string& email) {
    const auto stub = pb::InvitationService::NewStub(channel_);
    pb::CreateInvitationRequest request;
    request.set_parent("workspaces/acme");
    request.mutable_invitation()->set_email(email);
    request.mutable_invitation()->set_role("developer");
    request.set_request_id("i" + std::to_string(++requests_));
    pb::CreateInvitationResponse response;
    EXPECT_EQ(AsOperator(*stub, &pb::InvitationService::Stub::CreateInvitation, request, response),
              "");
    return response;
  }

  HttpResponse Post(const std::string& path, const std::string& json,
                    const std::string& cookie = "") {
    HeaderList headers = {{"content-type", "application/json"}, {"sec-fetch-site", "same-origin"}};
    if (!cookie.empty()) headers.emplace_back("cookie", cookie);
    return Http(cluster_->dashboard_port(), "POST", "/session/v1/" + path, headers, json);
  }
  // The request that a browser sends for the form of a page.
  HttpResponse PostForm(const std::string& path, const std::string& body) {
    return Http(cluster_->dashboard_port(), "POST", path,
                {{"content-type", "application/x-www-form-urlencoded"},
                 {"origin", "http://dashboard.test"}},
                body);
  }
  static std::string CookieOf(const HttpResponse& response) {
    return response.header("set-cookie").substr(0, response.header("set-cookie").find(';'));
  }

  TempDir dir_;
  std::string mode_;
  const TestPort port_;
  int starts_ = 0, requests_ = 0;
  std::unique_ptr<Process> server_;
  std::unique_ptr<Cluster> cluster_;
  std::shared_ptr<grpc::Channel> channel_;
};

// From an invitation mail to an account, to a forgotten password, to a session; each link is opened
// like in a browser, as pages with a form.
TEST_F(MailServerTest, APersonIsInvitedAndForgetsThePassword) {
  StartAll("starttls");
  const auto invited = Invite("bert@example.com");
  EXPECT_TRUE(invited.mailed());
  EXPECT_EQ(invited.accept_path(), "") << "only the mail has the link";
  const std::string invitation = WaitForMail("bert@example.com", "An operator of Tollgate invites");
  const auto mails = MailsTo("bert@example.com");
  ASSERT_EQ(mails.size(), 1U);
  EXPECT_EQ(mails[0].envelope["from"].str(), "gate@gate.example");
  EXPECT_TRUE(mails[0].envelope["tls"].boolean()) << "STARTTLS";
  EXPECT_EQ(mails[0].envelope["user"].str(), "gate");
  const HttpResponse page = Http(cluster_->dashboard_port(), "GET", PathIn(invitation));
  EXPECT_EQ(page.status, 200);
  EXPECT_NE(page.body.find("name=\"display_name\""), std::string::npos) << page.body;
  const HttpResponse weak =
      PostForm("/session/v1/invitation",
               "token=" + TokenIn(invitation) + "&display_name=Bert&password=short");
  EXPECT_EQ(weak.status, 400);
  EXPECT_NE(weak.body.find("a password has 10 to 256 bytes"), std::string::npos) << weak.body;
  EXPECT_NE(weak.body.find(TokenIn(invitation)), std::string::npos) << "the form is shown again";
  const HttpResponse made =
      PostForm("/session/v1/invitation", "token=" + TokenIn(invitation) +
                                             "&display_name=Bert&password=correct+horse+battery");
  ASSERT_EQ(made.status, 303) << made.body;
  EXPECT_EQ(made.header("location"), "/");
  EXPECT_NE(CookieOf(made), "");

  EXPECT_EQ(Post("forgotPassword", R"({"email":"bert@example.com"})").status, 200);
  const std::string reset =
      WaitForMail("bert@example.com", "a new password for your Tollgate account");
  EXPECT_NE(reset.find("IP address of the request: 127.0.0.1"), std::string::npos) << reset;
  const std::string path = PathIn(reset);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(Http(cluster_->dashboard_port(), "GET", path).status, 200)
        << "opening the link uses nothing up";
  }
  const HttpResponse set =
      PostForm("/session/v1/resetPassword",
               "token=" + TokenIn(reset) + "&new_password=another+good+password");
  EXPECT_EQ(set.status, 303) << set.body;
  EXPECT_EQ(
      Post("signIn", R"({"email":"bert@example.com","password":")" + std::string(kPassword) + "\"}")
          .status,
      401);
  EXPECT_EQ(
      Post("signIn", R"({"email":"bert@example.com","password":"another good password"})").status,
      200);
  WaitForMail("bert@example.com", "password of your Tollgate account was changed");
  // Secrets of links and of the mail server are not in any log.
  const std::string logs = cluster_->Logs();
  for (const std::string& secret :
       {TokenIn(invitation), TokenIn(reset), std::string("canary-mail-password")}) {
    ASSERT_GT(secret.size(), 10U);
    EXPECT_EQ(logs.find(secret), std::string::npos) << secret;
  }
}

// The response reveals nothing, and only an existing account gets a mail.
TEST_F(MailServerTest, AskingForAPasswordDoesNotTellWhoExists) {
  StartAll("tls");
  const auto users = pb::UserService::NewStub(channel_);
  pb::CreateUserRequest request;
  request.mutable_user()->set_email("anna@example.com");
  request.set_request_id("u1");
  pb::CreateUserResponse response;
  ASSERT_EQ(AsOperator(*users, &pb::UserService::Stub::CreateUser, request, response), "");
  const HttpResponse unknown = Post("forgotPassword", R"({"email":"nobody@example.com"})");
  const HttpResponse known = Post("forgotPassword", R"({"email":"anna@example.com"})");
  EXPECT_EQ(unknown.status, 200);
  EXPECT_EQ(unknown.status, known.status);
  EXPECT_EQ(unknown.body, known.body);
  // Mails are sent in order.
  WaitForMail("anna@example.com", "a new password for your Tollgate account");
  EXPECT_TRUE(MailsTo("nobody@example.com").empty());
  HttpResponse last;
  for (int i = 0; i < 3; ++i) last = Post("forgotPassword", R"({"email":"anna@example.com"})");
  EXPECT_EQ(last.status, 429);
  EXPECT_TRUE(last.has_header("retry-after"));
}

// A mail server that is down blocks nothing; when it is back each mail is sent once.
TEST_F(MailServerTest, AServerThatComesBackGetsEveryMailOnce) {
  StartAll("starttls");
  server_->Kill();
  for (int i = 0; i < 3; ++i) {
    EXPECT_TRUE(Invite("p" + std::to_string(i) + "@example.com").mailed());
  }
  ASSERT_TRUE(WaitUntil(
      [&] { return cluster_->Logs().find("a mail could not be sent") != std::string::npos; },
      kWaitMs))
      << "it was tried";
  ASSERT_TRUE(StartServer());
  for (int i = 0; i < 3; ++i) {
    WaitForMail("p" + std::to_string(i) + "@example.com", "invites you to the workspace acme");
  }
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(MailsTo("p" + std::to_string(i) + "@example.com").size(), 1U);
  }
}

// Each mail is sent once, however many processes read the outbox.
TEST_F(MailServerTest, TwoReplicasSendEachMailOnce) {
  StartAll("starttls", true);
  if (IsSkipped()) return;
  constexpr int kMails = 20;
  for (int i = 0; i < kMails; ++i) Invite("p" + std::to_string(i) + "@example.com");
  for (int i = 0; i < kMails; ++i) {
    WaitForMail("p" + std::to_string(i) + "@example.com", "invites you");
  }
  for (int i = 0; i < kMails; ++i) {
    EXPECT_EQ(MailsTo("p" + std::to_string(i) + "@example.com").size(), 1U) << i;
  }
}

// A server with an untrusted certificate gets no mail and no password.
TEST_F(MailServerTest, AServerThatIsNotWhoItShouldBeGetsNothing) {
  StartAll("starttls");
  server_->Terminate();
  const ::tollgate::testing::TestCertificate other("another authority");
  ::tollgate::testing::TestCertificate("mail", "IP:127.0.0.1", &other)
      .Write(dir_.path() + "/certificate.pem", dir_.path() + "/key.pem");
  ASSERT_TRUE(StartServer());
  EXPECT_TRUE(Invite("bert@example.com").mailed());
  ASSERT_TRUE(WaitUntil(
      [&] { return cluster_->Logs().find("a mail could not be sent") != std::string::npos; },
      kWaitMs));
  EXPECT_TRUE(MailsTo("bert@example.com").empty());
}

TEST(MailSettingsTest, SettingsThatCannotBeAreRefusedAtStart) {
  const std::pair<const char*, const char*> cases[] = {
      {"smtp_url: \"smtp://127.0.0.1:1\", mail_from: a@b.example", "auth.people.public_url"},
      {"smtp_url: \"http://127.0.0.1:1\", mail_from: a@b.example, public_url: \"http://x\"",
       "auth.people.smtp_url must start with"},
      {"smtp_url: \"smtp://127.0.0.1:1\", public_url: \"http://x\"", "auth.people.mail_from"},
      {"smtp_url: \"smtp://127.0.0.1:1\", mail_from: a@b.example, public_url: \"http://x\", "
       "smtp_user: gate",
       "smtp_user and smtp_password_file belong together"}};
  for (const auto& [settings, what] : cases) {
    ClusterOptions options;
    options.catalog = DefaultCatalog({"http://127.0.0.1:1"});  // no engine is asked
    options.auth_settings = {"people: {" + std::string(settings) + "}"};
    const std::string refused = Cluster(options).Start();
    EXPECT_NE(refused.find(what), std::string::npos) << refused;
  }
}

}  // namespace
}  // namespace tollgate::test
