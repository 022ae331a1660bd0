// The header Idempotency-Key in the pipeline (decisions 43 and 59).
#include "gateway/pipeline/answer/idempotency.h"

#include <filesystem>
#include <fstream>

#include "common/base/crypto.h"
#include "common/base/seal.h"
#include "gateway/pipeline/answer/respond.h"
#include "gateway/testing/pipeline_fixture.h"

namespace tollgate::gateway::testing {
namespace {

class IdempotencyTest : public ::testing::Test {
 protected:
  static PipelineOptions WithKey() {
    PipelineOptions options;
    options.answer_key = std::string(kSealKeyBytes, 's');
    return options;
  }
  using Answer = std::shared_ptr<FakeExchange>;
  Answer Send(const std::string& value, const std::string& body = Body(), bool answers = true) {
    HttpRequest request = rig.ChatRequest(body);
    request.headers.emplace_back("idempotency-key", value);
    return SendRequest(std::move(request), answers);
  }
  Answer SendRequest(HttpRequest request, bool answers = true) {
    if (answers) {
      rig.RunOnLoop([&](Loop&) {
        rig.inference->script->Push({Started(), Text("hello"), Finish(), End(3, 1)});
      });
    }
    return rig.Run(ChatSurface(), std::move(request));
  }
  void Deny(billing::v1::DenyReason reason) {
    billing::v1::AuthorizeResult denied;
    denied.set_denied_by(reason);
    denied.set_retry_after_ms(1000);
    rig.billing->answer = denied;
  }
  static std::string CodeOf(const Answer& answer) {
    const auto document = json::Document::ParseView(answer->body);
    if (!document) return "not JSON";
    return std::to_string(answer->status) + " " +
           std::string(document->root().Find("error").Find("code").string());
  }

  Rig rig{WithKey()};
};

TEST_F(IdempotencyTest, BillingGetsDigestsOfKeyAndBody) {
  EXPECT_EQ(Send("the key")->status, 200);
  EXPECT_EQ(Send("the key", Body("\"n\":1"))->status, 200);
  EXPECT_EQ(SendRequest(rig.ChatRequest(Body()))->status, 200);
  const auto& asked = rig.billing->authorized;
  ASSERT_EQ(asked.size(), 3u);
  EXPECT_EQ(asked[0].idempotency_key_digest(),
            Sha256(rig.key.key_id() + std::string(1, '\0') + "the key"));
  EXPECT_EQ(asked[0].idempotency_body_digest(),
            IdempotencyBodyDigest("/v1/chat/completions", Body()));
  EXPECT_EQ(asked[1].idempotency_key_digest(), asked[0].idempotency_key_digest());
  EXPECT_NE(asked[1].idempotency_body_digest(), asked[0].idempotency_body_digest());
  EXPECT_NE(IdempotencyBodyDigest("/v1/messages", Body()), asked[0].idempotency_body_digest());
  EXPECT_EQ(asked[2].idempotency_key_digest(), "") << "off unless the header is there";
  EXPECT_EQ(asked[2].idempotency_body_digest(), "");
  EXPECT_EQ(rig.billing->stored_answers.size(), 2u);
}

// Rotating a key forgets no Idempotency-Key.
TEST_F(IdempotencyTest, ARotatedKeyKeepsItsIdempotencyKeys) {
  rig.key.add_lineage("FirstKey0123");
  rig.key.add_lineage(rig.key.key_id());
  rig.Publish();
  EXPECT_EQ(Send("the key")->status, 200);
  ASSERT_EQ(rig.billing->authorized.size(), 1u);
  EXPECT_EQ(rig.billing->authorized[0].idempotency_key_digest(),
            Sha256(std::string("FirstKey0123") + '\0' + "the key"));
}

TEST_F(IdempotencyTest, ALargeBodyHasItsDigestToo) {
  const std::string body =
      Body("\"user\":\"" + std::string(2 * kMaxBytesDecodedOnLoop, 'u') + "\"");
  (void)Send("key", body);
  ASSERT_EQ(rig.billing->authorized.size(), 1u);
  EXPECT_EQ(rig.billing->authorized[0].idempotency_body_digest(),
            IdempotencyBodyDigest("/v1/chat/completions", body));
}

TEST_F(IdempotencyTest, AMalformedKeyIs400AndNamed) {
  for (const std::string& value :
       {std::string(), std::string(256, 'a'), std::string("a\tb"), std::string("\xc3\xa4")}) {
    const Answer answer = Send(value, Body(), false);
    EXPECT_EQ(CodeOf(answer), "400 bad_request") << value;
    EXPECT_NE(answer->body.find("Idempotency-Key"), std::string::npos);
  }
  HttpRequest twice = rig.ChatRequest(Body());
  twice.headers.emplace_back("idempotency-key", "a");
  twice.headers.emplace_back("idempotency-key", "a");
  EXPECT_EQ(CodeOf(SendRequest(std::move(twice), false)), "400 bad_request");
  EXPECT_TRUE(rig.billing->authorized.empty());
  EXPECT_EQ(Send(std::string(255, '~'))->status, 200);
}

TEST_F(IdempotencyTest, RequestsWithoutAnEngineIgnoreTheHeader) {
  const Answer answer = Send("", Body("\"max_tokens\":0"), false);
  EXPECT_EQ(answer->status, 200) << answer->body;
  ASSERT_EQ(rig.billing->authorized.size(), 1u);
  EXPECT_EQ(rig.billing->authorized[0].idempotency_key_digest(), "");
  EXPECT_TRUE(rig.billing->stored_answers.empty());
}

TEST_F(IdempotencyTest, TheKeptAnswerIsRepeatedByteByByte) {
  const Answer first = Send("key");
  ASSERT_EQ(first->status, 200);
  ASSERT_EQ(rig.billing->stored_answers.size(), 1u);
  const auto& stored = rig.billing->stored_answers[0];
  EXPECT_EQ(stored.workspace_id(), "ws1");
  EXPECT_EQ(stored.request_id(), rig.billing->authorized[0].request_id());
  EXPECT_EQ(stored.sealed().find("hello"), std::string::npos) << "sealed";
  EXPECT_EQ(first->header("idempotent-replayed"), "");

  Deny(billing::v1::DENY_REASON_IDEMPOTENCY_DONE);
  rig.billing->kept_answer->set_sealed(stored.sealed());
  const Answer again = Send("key", Body(), false);
  EXPECT_EQ(again->status, 200);
  EXPECT_EQ(again->body, first->body);
  EXPECT_EQ(again->header("content-type"), first->header("content-type"));
  EXPECT_EQ(again->header("idempotent-replayed"), "true");
  ASSERT_EQ(rig.billing->wanted_answers.size(), 1u);
  EXPECT_EQ(rig.billing->wanted_answers[0].idempotency_key_digest(),
            stored.idempotency_key_digest());
  EXPECT_EQ(rig.inference->started.size(), 1u);
  EXPECT_TRUE(rig.billing->voided.empty());
  EXPECT_EQ(rig.worker->slots->size(), 0u);
}

TEST_F(IdempotencyTest, ARepeatedAnswerSaysThatCreditCutIt) {
  rig.RunOnLoop([&](Loop&) {
    auto end = End(3, 1);
    end.mutable_end()->set_cut_by_credit(true);
    rig.inference->script->Push({Started(), Text("half"), end});
  });
  const Answer first = Send("key", Body(), false);
  ASSERT_EQ(first->status, 200) << first->body;
  ASSERT_EQ(first->header("x-tollgate-cut-by-credit"), "true");
  ASSERT_EQ(rig.billing->stored_answers.size(), 1u);
  Deny(billing::v1::DENY_REASON_IDEMPOTENCY_DONE);
  rig.billing->kept_answer->set_sealed(rig.billing->stored_answers[0].sealed());
  const Answer again = Send("key", Body(), false);
  EXPECT_EQ(again->body, first->body);
  EXPECT_EQ(again->header("x-tollgate-cut-by-credit"), "true");
}

// The output of a model may contain U+0000.
TEST_F(IdempotencyTest, ARepeatedAnswerWithNulNamesItsModelToo) {
  catalog::v1::Model& second = *rig.snapshot.add_models();
  second = rig.snapshot.models(0);
  second.set_id("ns/second");
  rig.Publish();
  const std::string body = Body(R"("models":["ns/second"])");
  const auto send = [&] {
    HttpRequest request = rig.ChatRequest(body);
    request.headers.emplace_back("idempotency-key", "key");
    return rig.Run(ChatSurface(), std::move(request));
  };
  rig.RunOnLoop([&](Loop&) {
    rig.inference->script->Push({Started(), Text("a\\u0000b"), Finish(), End(3, 1)});
  });
  const Answer first = send();
  ASSERT_EQ(first->status, 200) << first->body;
  ASSERT_NE(first->body.find("\\u0000"), std::string::npos) << first->body;
  ASSERT_NE(first->header(std::string(kModelHeader)), "");
  ASSERT_EQ(rig.billing->stored_answers.size(), 1u);
  Deny(billing::v1::DENY_REASON_IDEMPOTENCY_DONE);
  rig.billing->kept_answer->set_sealed(rig.billing->stored_answers[0].sealed());
  const Answer again = send();
  EXPECT_EQ(again->body, first->body);
  EXPECT_EQ(again->header(std::string(kModelHeader)), first->header(std::string(kModelHeader)));
}

TEST_F(IdempotencyTest, AnAnswerThatCannotBeReadIsGone) {
  Deny(billing::v1::DENY_REASON_IDEMPOTENCY_DONE);
  for (const std::string& sealed :
       {std::string(), std::string(100, 'x'),
        Seal(std::string(kSealKeyBytes, 'o'), "", "sealed with another key")}) {
    rig.billing->kept_answer->set_sealed(sealed);
    const Answer answer = Send("key", Body(), false);
    EXPECT_EQ(CodeOf(answer), "409 idempotency_answer_gone");
    EXPECT_EQ(answer->header("x-should-retry"), "false");
    EXPECT_EQ(answer->header("retry-after"), "");
  }
  EXPECT_TRUE(rig.billing->voided.empty());
  rig.billing->kept_answer = Unavailable("billing is down");
  EXPECT_EQ(CodeOf(Send("key", Body(), false)), "503 service_unavailable");
}

TEST_F(IdempotencyTest, StreamsAndLargeAnswersAreNotKept) {
  EXPECT_EQ(Send("key", Body("\"stream\":true"))->status, 200);
  rig.RunOnLoop([&](Loop&) {
    rig.inference->script->Push(
        {Started(), Text(std::string(kMaxKeptBytes, 'a')), Finish(), End(3, 1)});
  });
  EXPECT_EQ(Send("key", Body(), false)->status, 200);
  EXPECT_TRUE(rig.billing->stored_answers.empty());
}

TEST_F(IdempotencyTest, ARefusedRequestKeepsNothing) {
  rig.RunOnLoop([&](Loop&) { rig.inference->script->Push({Failed("upstream_unreachable")}); });
  EXPECT_EQ(Send("key", Body(), false)->status, 502);
  EXPECT_TRUE(rig.billing->stored_answers.empty());
}

TEST_F(IdempotencyTest, ConflictsAreRefused) {
  Deny(billing::v1::DENY_REASON_IDEMPOTENCY_RUNNING);
  const Answer running = Send("key", Body(), false);
  EXPECT_EQ(CodeOf(running), "409 idempotency_in_progress");
  EXPECT_EQ(running->header("retry-after"), "1");
  EXPECT_EQ(running->header("x-should-retry"), "true");
  Deny(billing::v1::DENY_REASON_IDEMPOTENCY_BODY);
  EXPECT_EQ(CodeOf(Send("key", Body(), false)), "400 bad_request");
  EXPECT_TRUE(rig.billing->voided.empty());
  ASSERT_EQ(rig.limiter->released.size(), 2u);
  for (const auto& item : rig.limiter->released) EXPECT_TRUE(item.refund());
}

}  // namespace
}  // namespace tollgate::gateway::testing
