// Money through the command line, as a process (docs/operations.md, "Top-ups whose result is
// unknown").
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>

#include <cstdlib>
#include <filesystem>

#include "tests/support/cluster.h"
#include "tests/support/engine_sim.h"
#include "tests/support/json.h"
#include "tests/support/process.h"

namespace tollgate::test {
namespace {

class CliTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string failure;
    ASSERT_TRUE(engine_.Start(&failure)) << failure;
    ClusterOptions options;
    options.all_in_one = true;
    options.catalog = DefaultCatalog({engine_.base_url()}, "1", "2");
    options.admin_sockets = true;
    cluster_ = std::make_unique<Cluster>(options);
    ASSERT_EQ(cluster_->Start(), "");
  }
  void TearDown() override {
    if (cluster_) EXPECT_EQ(cluster_->StopOrderly(), "");
  }

  struct Outcome {
    int code = -1;
    std::string out, error;
    Json json() const { return Json::Parse(out).value_or(Json()); }
  };
  Outcome Cli(const std::string& arguments) {
    return Cli(arguments, cluster_->admin_grpc_address("billing"));
  }
  // Uses the unix socket, where the caller's name counts as verified.
  Outcome CliAtSocket(const std::string& arguments) {
    return Cli(arguments, "unix:" + cluster_->dir() + "/allinone.sock");
  }
  Outcome Cli(const std::string& arguments, const std::string& target) {
    const std::string out = state_.path() + "/out";
    const std::string error = state_.path() + "/error";
    const std::string command = "XDG_STATE_HOME=" + state_.path() + " TOLLGATE_ADMIN=" + target +
                                " " + BinaryPath("tollgate") + " --json " + arguments + " >" + out +
                                " 2>" + error;
    const int status = std::system(command.c_str());  // NOLINT: a shell is what users have
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, ReadFile(out), ReadFile(error)};
  }
  // The request id that a command printed before it called.
  static std::string PrintedId(const Outcome& outcome) {
    const auto line = Json::Parse(outcome.error.substr(0, outcome.error.find('\n')));
    return line ? (*line)["request_id"].str() : "";
  }
  size_t Kept() {
    const std::string folder = state_.path() + "/tollgate/requests";
    if (!std::filesystem::exists(folder)) return 0;
    return static_cast<size_t>(std::distance(std::filesystem::directory_iterator(folder), {}));
  }

  TempDir state_;
  EngineSim engine_{EngineSimOptions()};
  std::unique_ptr<Cluster> cluster_;
};

TEST_F(CliTest, ATopUpWhoseAnswerWasLostGoesOnWithItsId) {
  ASSERT_EQ(Cli("workspace create Acme --id acme").code, 0);
  const Outcome unknown = Cli("credit add 5 -w typo");
  EXPECT_EQ(unknown.code, 1);
  EXPECT_NE(unknown.error.find("not_found"), std::string::npos) << unknown.error;
  EXPECT_EQ(Kept(), 0U);

  Process& process = cluster_->process(cluster_->process_names().front());
  process.Signal(SIGSTOP);
  const Outcome lost = Cli("--timeout 1 credit add 5 -w acme --reason 'invoice 7'");
  process.Signal(SIGCONT);
  EXPECT_EQ(lost.code, 1);
  EXPECT_NE(lost.error.find("unknown_result"), std::string::npos) << lost.error;
  const std::string id = PrintedId(lost);
  EXPECT_FALSE(id.empty());
  EXPECT_EQ(Kept(), 1U);

  const Outcome again = Cli("credit add 5 -w acme --reason 'invoice 7'");
  EXPECT_EQ(again.code, 0) << again.error;
  EXPECT_EQ(PrintedId(again), id);
  EXPECT_EQ(again.json()["available_usd"].str(), "5")
      << "once, even if the first attempt succeeded";
  EXPECT_EQ(Kept(), 0U);
  const Outcome status = Cli("credit status -w acme " + id);
  EXPECT_EQ(status.json()["state"].str(), "executed") << status.out << status.error;
  EXPECT_EQ(Cli("credit status -w acme never-asked").json()["state"].str(), "not_executed");

  // Repeating a printed id differs from running the command again.
  const Outcome another = Cli("credit add 5 -w acme --reason 'invoice 7'");
  EXPECT_NE(PrintedId(another), id);
  EXPECT_EQ(another.json()["available_usd"].str(), "10");
  EXPECT_EQ(Cli("transactions acme").json()["transactions"].size(), 2U);
}

TEST_F(CliTest, AReceiptByTheHeaderAndWhatTcpMayNotDo) {
  ASSERT_EQ(Cli("workspace create Acme --id acme").code, 0);
  ASSERT_EQ(Cli("credit grant 5 -w acme").code, 0);
  const ApiKey key = cluster_->NewKey("acme");
  const HttpResponse answer =
      cluster_->Post(key, "/v1/chat/completions",
                     R"({"model":"sim/model","messages":[{"role":"user","content":"hi"}]})");
  ASSERT_EQ(answer.status, 200) << answer.body;
  const Outcome receipt = Cli("receipt -w acme " + answer.header("x-request-id"));
  ASSERT_EQ(receipt.code, 0) << receipt.error;
  EXPECT_EQ(receipt.json()["prompt_tokens"].integer(),
            answer.json()["usage"]["prompt_tokens"].integer());
  EXPECT_EQ(receipt.json()["x_request_id"].str(), answer.header("x-request-id"));
  const Outcome anywhere = Cli("receipt " + answer.header("x-request-id"));
  ASSERT_EQ(anywhere.code, 0) << anywhere.error;
  EXPECT_EQ(anywhere.json()["workspace"].str(), "acme");
  EXPECT_EQ(anywhere.json()["request_id"].str(), receipt.json()["request_id"].str());
  EXPECT_EQ(Cli("receipt -w acme nobody").code, 1);
  EXPECT_EQ(Cli("receipt nobody").code, 1);
  EXPECT_EQ(Cli("usage acme --interval none").json()["usage"].size(), 2U) << "a row and the total";
  EXPECT_EQ(Cli("adjustment create credit 1 -w acme --reason sorry").code, 0);

  const Outcome statements = Cli("statement list -w acme");
  ASSERT_EQ(statements.code, 0) << statements.error;
  const auto list = statements.json();
  ASSERT_EQ(list["statements"].size(), 1U);
  const auto& month = list["statements"][0];
  EXPECT_EQ(month["opening_usd"].str(), "0");
  EXPECT_EQ(month["added_usd"].str(), "6");
  EXPECT_EQ(month["removed_usd"].str(), "0");
  EXPECT_EQ(month["used_usd"].str(), receipt.json()["charged_usd"].str());
  EXPECT_EQ(Cli("statement -w acme").code, 2) << "the month is missing";
  EXPECT_EQ(Cli("statement -w acme " + month["month"].str()).code, 0);
  const Outcome reconciled = Cli("reconcile");
  EXPECT_EQ(reconciled.code, 0) << reconciled.error;
  EXPECT_EQ(reconciled.json()["provider_charges"].integer(), 0);
  EXPECT_EQ(reconciled.json()["payments"].integer(), 0);
  EXPECT_EQ(reconciled.json()["differences"].size(), 0U);
  const Outcome frozen = Cli("workspace freeze acme --reason test");
  EXPECT_EQ(frozen.code, 1);
  EXPECT_NE(frozen.error.find("step_up_required"), std::string::npos) << frozen.error;
}

// The recovery path after a lost password; a link that was used, altered or replaced does not work.
TEST_F(CliTest, ASignInLinkWorksOnce) {
  const auto open = [&](const Outcome& made, const std::string& password) {
    const std::string path = made.json()["path"].str();
    const std::string token = path.substr(path.find("token=") + 6);
    return Http(cluster_->dashboard_port(), "POST", "/session/v1/link",
                {{"content-type", "application/json"}, {"sec-fetch-site", "same-origin"}},
                R"({"token":")" + token + R"(","new_password":")" + password + "\"}");
  };
  const auto sign_in = [&](const std::string& password) {
    return Http(cluster_->dashboard_port(), "POST", "/session/v1/signIn",
                {{"content-type", "application/json"}, {"sec-fetch-site", "same-origin"}},
                R"({"email":"ann@example.com","password":")" + password + "\"}")
        .status;
  };
  const Outcome created = CliAtSocket("user create ann@example.com");
  ASSERT_EQ(created.code, 0) << created.error;
  EXPECT_EQ(open(created, "correct horse battery").status, 200);
  EXPECT_EQ(sign_in("correct horse battery"), 200);

  const Outcome over_tcp = Cli("user link ann@example.com");
  EXPECT_EQ(over_tcp.code, 1);
  EXPECT_NE(over_tcp.error.find("step_up_required"), std::string::npos) << over_tcp.error;
  const Outcome link = CliAtSocket("user link ann@example.com");
  ASSERT_EQ(link.code, 0) << link.error;
  ASSERT_NE(link.json()["path"].str().find("token="), std::string::npos) << link.out;
  const HttpResponse first = open(link, "another horse battery");
  EXPECT_EQ(first.status, 200) << first.body;
  const HttpResponse second = open(link, "a third horse battery");
  EXPECT_EQ(second.status, 401) << second.body;
  EXPECT_EQ(open(created, "a third horse battery").status, 401);
  EXPECT_EQ(sign_in("another horse battery"), 200);
  EXPECT_EQ(sign_in("a third horse battery"), 401);
  EXPECT_EQ(CliAtSocket("user link nobody@example.com").code, 1);
}

}  // namespace
}  // namespace tollgate::test
