// `models`, `provider`, `route`, `transforms` and `plugins`: docs/design/wire.md 2.7.
#include "gateway/surfaces/shared/routing.h"

#include <gtest/gtest.h>

namespace tollgate::gateway {
namespace {

struct Read {
  CanonicalRequest request;
  std::string refused;  // the param
  std::string ids() const {
    std::string all = request.model + "(" + request.model_member + ")";
    for (const FallbackChoice& choice : request.fallbacks) {
      all += " " + choice.id + "(" + choice.member + ")";
    }
    return all;
  }
};

Read Parse(const std::string& members) {
  Read read;
  const auto body = json::Document::Parse("{" + members + "}");
  EXPECT_TRUE(body) << members;
  auto model = ReadModel(body->root());
  if (!model) {
    read.refused = model.error().param;
    return read;
  }
  read.request.model = *model;
  if (auto done = ReadRouting(body->root(), read.request); !done) {
    EXPECT_EQ(done.error().id, ErrorId::kBadRequest);
    EXPECT_FALSE(done.error().message.empty());
    read.refused = done.error().param;
  }
  return read;
}

std::string Refused(const std::string& members) { return Parse(members).refused; }

ProviderTerms Terms(const std::string& members) {
  const Read read = Parse(R"("model":"m","provider":{)" + members + "}");
  EXPECT_EQ(read.refused, "") << members;
  return read.request.provider;
}

std::string RefusedTerm(const std::string& members) {
  return Refused(R"("model":"m","provider":{)" + members + "}");
}

TEST(Routing, ModelsAreTriedAfterModelInTheirOrderAndOnce) {
  EXPECT_EQ(Parse(R"("model":"a")").ids(), "a(model)");
  EXPECT_EQ(Parse(R"("model":"a","models":null)").ids(), "a(model)");
  EXPECT_EQ(Parse(R"("model":"a","models":[])").ids(), "a(model)");
  EXPECT_EQ(Parse(R"("model":"a","models":["b","c"])").ids(), "a(model) b(models[0]) c(models[1])");
  EXPECT_EQ(Parse(R"("model":"a","models":["a","b","b","a","c"])").ids(),
            "a(model) b(models[1]) c(models[4])");
  EXPECT_EQ(Parse(R"("models":["a","b"])").ids(), "a(models[0]) b(models[1])");
  EXPECT_EQ(Parse(R"("model":null,"models":["a"])").ids(), "a(models[0])");
}

TEST(Routing, WrongModelsAreRefusedByTheirPlace) {
  EXPECT_EQ(Refused(R"("models":[])"), "model");
  EXPECT_EQ(Refused(R"("models":[5])"), "models[0]");
  EXPECT_EQ(Refused(R"("model":5,"models":["a"])"), "model");
  EXPECT_EQ(Refused(R"("model":"a","models":"b")"), "models");
  EXPECT_EQ(Refused(R"("model":"a","models":{"b":1})"), "models");
  EXPECT_EQ(Refused(R"("model":"a","models":["b","c",null])"), "models[2]");
  EXPECT_EQ(Refused(R"("model":"a","models":["b",""])"), "models[1]");
}

TEST(Routing, AtMostEightModels) {
  EXPECT_EQ(Refused(R"("model":"a","models":["b","c","d","e","f","g","h"])"), "");
  EXPECT_EQ(Refused(R"("model":"a","models":["b","c","d","e","f","g","h","i"])"), "models");
  EXPECT_EQ(Refused(R"("model":"a","models":["a","b","c","d","e","f","g","h","h","b"])"), "");
  std::string many = R"("a")";
  for (int i = 0; i < 64; ++i) many += R"(,"a")";
  EXPECT_EQ(Refused(R"("model":"a","models":[)" + many + "]"), "models");
}

TEST(Routing, EmbeddingsHaveNoOtherModels) {
  const auto body = json::Document::Parse(R"({"model":"a","models":["b"]})");
  CanonicalRequest request;
  request.kind = inference::v1::REQUEST_KIND_EMBEDDING;
  const auto read = ReadRouting(body->root(), request);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().param, "models");
}

TEST(Routing, TermsOfProvidersAreRead) {
  const ProviderTerms none = Terms("");
  EXPECT_TRUE(none.allow_fallbacks);
  EXPECT_FALSE(none.require_parameters);
  EXPECT_FALSE(none.max_input_pico_usd.has_value());
  EXPECT_EQ(none.no_retention, "");
  EXPECT_FALSE(Terms(R"("allow_fallbacks":false)").allow_fallbacks);
  EXPECT_TRUE(Terms(R"("require_parameters":true)").require_parameters);
  EXPECT_EQ(Terms(R"("only":["A","b"])").only, (std::vector<std::string>{"A", "b"}));
  EXPECT_EQ(Terms(R"("zdr":true)").no_retention, "provider.zdr");
  EXPECT_EQ(Terms(R"("zdr":false,"data_collection":"allow")").no_retention, "");
  EXPECT_EQ(Terms(R"("data_collection":"deny")").no_retention, "provider.data_collection");
  EXPECT_TRUE(Terms(R"("only":null,"sort":null,"whatever":null)").only.empty());
}

TEST(Routing, PricesAreReadExactly) {
  const auto input = [](const std::string& price) {
    return Terms(R"("max_price":{"prompt":)" + price + "}").max_input_pico_usd;
  };
  EXPECT_EQ(input("0.15"), 150'000);
  EXPECT_EQ(input("\"0.15\""), 150'000);
  EXPECT_EQ(input("1"), 1'000'000);
  EXPECT_EQ(input("1e-1"), 100'000);
  EXPECT_EQ(input("0"), 0);
  EXPECT_EQ(input("0.1500009999999999999999"), 150'000) << "a rate above it is more expensive";
  EXPECT_EQ(input("1e999"), INT64_MAX);
  EXPECT_EQ(Terms(R"("max_price":{"completion":"2.2","request":0,"image":1})").max_output_pico_usd,
            2'200'000);
  EXPECT_EQ(RefusedTerm(R"("max_price":1)"), "provider.max_price");
  EXPECT_EQ(RefusedTerm(R"("max_price":{"prompt":-1})"), "provider.max_price.prompt");
  EXPECT_EQ(RefusedTerm(R"("max_price":{"prompt":"cheap"})"), "provider.max_price.prompt");
  EXPECT_EQ(RefusedTerm(R"("max_price":{"completion":true})"), "provider.max_price.completion");
  EXPECT_EQ(RefusedTerm(R"("max_price":{"token":1})"), "provider.max_price.token");
}

TEST(Routing, WhatCannotBeDoneIsRefusedByItsName) {
  const std::pair<const char*, const char*> rows[] = {
      {R"("allow_fallbacks":"no")", "provider.allow_fallbacks"},
      {R"("require_parameters":1)", "provider.require_parameters"},
      {R"("order":"tollgate")", "provider.order"},
      {R"("only":["a",5])", "provider.only[1]"},
      {R"("ignore":{})", "provider.ignore"},
      {R"("sort":"beauty")", "provider.sort"},
      {R"("sort":5)", "provider.sort"},
      {R"("sort":{"by":"price","partition":"none"})", "provider.sort.partition"},
      {R"("sort":{"by":"price","of":"x"})", "provider.sort.of"},
      {R"("quantizations":["int4"])", "provider.quantizations"},
      {R"("quantizations":"int4")", "provider.quantizations"},
      {R"("zdr":"yes")", "provider.zdr"},
      {R"("data_collection":"maybe")", "provider.data_collection"},
      {R"("data_collection":false)", "provider.data_collection"},
      {R"("enforce_distillable_text":true)", "provider.enforce_distillable_text"},
      {R"("preferred_max_latency":-1)", "provider.preferred_max_latency"},
      {R"("preferred_min_throughput":{"p51":1})", "provider.preferred_min_throughput.p51"},
      {R"("experimental":{})", "provider.experimental"},
  };
  for (const auto& [member, param] : rows) EXPECT_EQ(RefusedTerm(member), param) << member;
  EXPECT_EQ(Refused(R"("model":"m","provider":"openai")"), "provider");
  EXPECT_EQ(Refused(R"("model":"m","provider":[])"), "provider");
  EXPECT_EQ(Refused(R"("model":"m","route":"sort")"), "route");
  EXPECT_EQ(Refused(R"("model":"m","route":1)"), "route");
  EXPECT_EQ(Refused(R"("model":"m","transforms":["middle-out"])"), "transforms");
  EXPECT_EQ(Refused(R"("model":"m","transforms":"none")"), "transforms");
  EXPECT_EQ(Refused(R"("model":"m","plugins":[{"id":"web"}])"), "plugins");
}

TEST(Routing, LongAndStrangeNamesAreNotRepeated) {
  for (const std::string& name :
       {std::string(65, 'n'), std::string("a b"), std::string("\xc3\xa9"), std::string()}) {
    const std::string member = "\"" + name + "\":1";
    EXPECT_EQ(RefusedTerm(member), "provider");
    EXPECT_EQ(RefusedTerm("\"max_price\":{" + member + "}"), "provider.max_price");
    EXPECT_EQ(RefusedTerm("\"sort\":{\"by\":\"price\"," + member + "}"), "provider.sort");
    EXPECT_EQ(RefusedTerm("\"preferred_max_latency\":{" + member + "}"),
              "provider.preferred_max_latency");
  }
  const std::string longest(64, 'n');
  EXPECT_EQ(RefusedTerm("\"" + longest + "\":1"), "provider." + longest);
}

TEST(Routing, WhatIsTrueAnywayIsAccepted) {
  for (const char* member :
       {R"("sort":"price")", R"("sort":{"by":"latency","partition":"model"})", R"("order":[])",
        R"("quantizations":[])", R"("quantizations":["fp8","unknown"])",
        R"("enforce_distillable_text":false)", R"("preferred_max_latency":1.5)",
        R"("preferred_min_throughput":{"p50":10,"p99":null})"}) {
    EXPECT_EQ(RefusedTerm(member), "") << member;
  }
  EXPECT_EQ(
      Refused(R"("model":"m","provider":null,"route":"fallback","transforms":[],"plugins":[])"),
      "");
}

TEST(Routing, TheParametersOfARequestAreCollectedOnlyWhereTheyCount) {
  const std::string members =
      R"("model":"m","messages":[],"stream":true,"user":"u","temperature":1,"seed":null,)"
      R"("stop_sequences":["x"],"tools":[],"foo":1)";
  EXPECT_TRUE(Parse(members).request.parameters.empty());
  EXPECT_EQ(Parse(members + R"(,"provider":{"require_parameters":true})").request.parameters,
            (std::vector<std::string>{"temperature", "stop", "tools", "foo"}));
}

}  // namespace
}  // namespace tollgate::gateway
