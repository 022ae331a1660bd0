#include "gateway/surfaces/shared/answer_cost.h"

#include <gtest/gtest.h>

#include <vector>

#include "common/json/json.h"
#include "gateway/surfaces/chat_completions/chat_surface.h"
#include "gateway/surfaces/completions/completions_surface.h"
#include "gateway/surfaces/embeddings/embeddings_surface.h"
#include "gateway/surfaces/messages/messages_surface.h"
#include "gateway/surfaces/responses/responses_surface.h"

namespace tollgate::gateway {
namespace {

namespace pb = inference::v1;

constexpr char kCost[] =
    R"("cost":0.000002002,"cost_details":{"prompt_cost":"0.0000000025","completion_cost":"0.000002"})";

pb::End End() {
  pb::End end;
  end.mutable_usage()->set_prompt_tokens(5);
  end.mutable_usage()->set_completion_tokens(4);
  end.set_charged_nano_usd(2002);
  return end;
}

// Decision 75: the cost is a number with the exact digits, without floating point.
TEST(AnswerCost, IsThatOfTheLedgerAndOfItsParts) {
  CanonicalRequest request;
  request.rates = {500, 500'000};
  EXPECT_EQ(AnswerCost(request).Members(End()), "") << "not asked for";
  request.include_cost = true;
  EXPECT_EQ(AnswerCost(request).Members(End()), "," + std::string(kCost));
  pb::End cut = End();
  cut.set_cut_by_credit(true);
  EXPECT_NE(AnswerCost(request).Members(cut).find(R"("cut_by_credit":true})"), std::string::npos);
  pb::End dear;
  dear.mutable_usage()->set_completion_tokens(INT64_MAX);
  dear.set_charged_nano_usd(INT64_MAX);
  EXPECT_NE(AnswerCost(request).Members(dear).find(R"("cost":9223372036.854775807)"),
            std::string::npos);
}

struct Form {
  const Surface& surface;
  const char* body;
};

std::vector<Form> Forms() {
  return {{ChatSurface(), R"({"model":"m","messages":[{"role":"user","content":"x"}]})"},
          {CompletionsSurface(), R"({"model":"m","prompt":"x"})"},
          {EmbeddingsSurface(), R"({"model":"m","input":"x"})"},
          {MessagesSurface(),
           R"({"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"}]})"},
          {ResponsesSurface(), R"({"model":"m","input":"x"})"}};
}

CanonicalRequest Parse(const Form& form, bool asks) {
  const auto document = json::Document::ParseView(form.body);
  auto request = form.surface.ParseRequest(*document);
  EXPECT_TRUE(request.ok()) << form.body;
  request->include_cost = asks;
  request->rates = {500, 500'000};
  return std::move(*request);
}

// Every surface adds the cost to its usage object, streamed or not, but only if the request asked.
TEST(AnswerCost, IsInTheUsageOfEverySurface) {
  for (const Form& form : Forms()) {
    SCOPED_TRACE(form.body);
    for (const bool asks : {false, true}) {
      const CanonicalRequest request = Parse(form, asks);
      pb::Delta delta;
      delta.set_content_json("hi");
      const auto body = form.surface.MakeBodyEncoder(request, {"ID", 1});
      body->OnDelta(delta);
      const std::string whole = body->Finish(End());
      EXPECT_EQ(whole.find("\"cost\"") != std::string::npos, asks) << whole;
      const auto document = json::Document::ParseView(whole);
      ASSERT_TRUE(document.ok()) << whole;
      if (asks) {
        const json::Value usage = document->root().Find("usage");
        EXPECT_EQ(usage.Find("cost").raw(), "0.000002002");
        EXPECT_TRUE(usage.raw().ends_with(std::string(kCost) + "}")) << usage.raw();
      }
      const auto stream = form.surface.MakeStreamEncoder == nullptr
                              ? nullptr
                              : form.surface.MakeStreamEncoder(request, {"ID", 1});
      if (stream == nullptr) continue;
      std::string out;
      stream->OnStarted({}, out);
      stream->OnDelta(delta, out);
      EXPECT_EQ(out.find("\"cost\""), std::string::npos);
      stream->OnEnd(End(), out);
      EXPECT_EQ(out.find(kCost) != std::string::npos, asks) << out;
    }
  }
}

}  // namespace
}  // namespace tollgate::gateway
