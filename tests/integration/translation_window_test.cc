// Prompts above the window of the model. See decision 44.
#include "tests/integration/translation_fixture.h"

namespace tollgate::test {
namespace {

// "sim/small" has a window of 1000 tokens, and the engine takes any prompt.
TEST_P(TranslationTest, APromptAboveTheWindowIsRefused) {  // decision 44
  const struct {
    const char* path;
    std::string before, after, param;
  } kCases[] = {
      {kChat, R"("messages":[{"role":"user","content":)", "}]", "messages"},
      {kResponses, R"("input":)", "", "input"},
      {kCompletions, R"("prompt":)", "", "prompt"},
      {kCompletions, R"("prompt":["short",)", "]", "prompt"},
      {kEmbeddings, R"("input":)", "", "input"},
      {kEmbeddings, R"("input":["short",)", R"(,"other"])", "input"},
  };
  for (const auto& c : kCases) {
    SCOPED_TRACE(c.path + c.before);
    const int64_t before = Generated();
    const HttpResponse answer = Post(c.path, c.before + Words(1001) + c.after, "sim/small");
    EXPECT_EQ(answer.status, 400) << answer.body.substr(0, 500);
    const Json error = answer.json()["error"];
    EXPECT_EQ(error["code"].str(), "context_length_exceeded") << answer.body.substr(0, 500);
    EXPECT_EQ(error["type"].str(), "invalid_request_error");
    EXPECT_EQ(error["param"].str(), c.param);
    EXPECT_NE(error["message"].str().find("maximum context length is 1000 tokens"),
              std::string::npos)
        << error["message"].str();
    EXPECT_EQ(Generated(), before) << "no engine has worked on it";
    const HttpResponse fits = Post(c.path, c.before + Words(900) + c.after, "sim/small");
    EXPECT_EQ(fits.status, 200) << fits.body.substr(0, 500);
  }
}

TEST_P(TranslationTest, APromptAboveTheWindowIsRefusedOnMessagesInItsOwnWords) {
  const HttpResponse answer = Post(
      kMessages, R"("max_tokens":9,"messages":[{"role":"user","content":)" + Words(1001) + "}]",
      "sim/small");
  EXPECT_EQ(answer.status, 400) << answer.body;
  EXPECT_NE(answer.body.find("prompt is too long: 10"), std::string::npos) << answer.body;
  EXPECT_NE(answer.body.find("> 1000 maximum"), std::string::npos) << answer.body;
  EXPECT_EQ(Spent(), 0);
}

TEST_P(TranslationTest, APromptThatSurelyFitsIsNotCounted) {
  const int64_t before = Tokenized();
  EXPECT_EQ(Post(kChat, R"("messages":[{"role":"user","content":)" + Words(400) + "}]", "sim/small")
                .status,
            200);
  EXPECT_EQ(
      Post(kEmbeddings, R"("input":[)" + Words(400) + "," + Words(400) + "," + Words(400) + "]",
           "sim/small")
          .status,
      200)
      << "each has a window of its own";
  EXPECT_EQ(Tokenized(), before);
}

constexpr char kPicture[] =
    R"({"type":"image_url","image_url":{"url":"data:image/png;base64,AA=="}})";

// A request of a surface with a prompt of `count` words, and the same with an image.
struct Prompt {
  const char* path;
  std::string before, after, param;
};
std::vector<Prompt> Prompts() {
  return {{kChat, R"("messages":[{"role":"user","content":)", "}]", "messages"},
          {kMessages, R"("max_tokens":9,"messages":[{"role":"user","content":)", "}]", ""},
          {kResponses, R"("input":)", "", "input"},
          {kCompletions, R"("prompt":)", "", "prompt"},
          {kEmbeddings, R"("input":)", "", "input"}};
}
std::vector<Prompt> PromptsWithImage() {
  const std::string chat = R"("messages":[{"role":"user","content":[{"type":"text","text":)";
  return {
      {kChat, chat, std::string("},") + kPicture + "]}]", "messages"},
      {kMessages, R"("max_tokens":9,)" + chat,
       R"(},{"type":"image","source":{"type":"base64","media_type":"image/png",)"
       R"("data":"AA=="}}]}])",
       ""},
      {kResponses, R"("input":[{"role":"user","content":[{"type":"input_text","text":)",
       R"(},{"type":"input_image","detail":"auto","image_url":"data:image/png;base64,AA=="}]}])",
       "input"}};
}

void ExpectAboveWindow(const HttpResponse& answer, const Prompt& prompt) {
  EXPECT_EQ(answer.status, 400) << answer.body.substr(0, 500);
  const Json error = answer.json()["error"];
  if (std::string(prompt.path) == kMessages) {
    EXPECT_TRUE(error["message"].str().starts_with("prompt is too long: ")) << answer.body;
    return;
  }
  EXPECT_EQ(error["code"].str(), "context_length_exceeded") << answer.body.substr(0, 500);
  EXPECT_EQ(error["param"].str(), prompt.param);
  EXPECT_NE(error["message"].str().find("maximum context length is 1000 tokens"), std::string::npos)
      << error["message"].str();
}

TEST_P(TranslationTest, OfAPromptWithAnImageItsTextsDecide) {
  for (const Prompt& prompt : PromptsWithImage()) {
    SCOPED_TRACE(prompt.path);
    const int64_t before = Generated();
    const HttpResponse answer =
        Post(prompt.path, prompt.before + Words(1001) + prompt.after, "sim/small");
    ExpectAboveWindow(answer, prompt);
    EXPECT_NE(answer.body.find("10"), std::string::npos);
    EXPECT_EQ(Generated(), before) << "no engine has worked on it";
    EXPECT_EQ(Post(prompt.path, prompt.before + Words(800) + prompt.after, "sim/small").status,
              200);
  }
}

// Ollama has no tokenizer endpoint: its reported count of an unstreamed answer decides.
TEST_P(TranslationTest, WithoutATokenizerTheEnginesOwnCountDecides) {
  std::vector<Prompt> prompts = Prompts();
  for (Prompt& one : PromptsWithImage()) prompts.push_back(one);
  for (const char* model : {"sim/silent", "sim/uncounted"}) {
    for (const Prompt& prompt : prompts) {
      SCOPED_TRACE(std::string(model) + prompt.path + prompt.before);
      ExpectAboveWindow(Post(prompt.path, prompt.before + Words(1001) + prompt.after, model),
                        prompt);
      const HttpResponse fits = Post(prompt.path, prompt.before + Words(800) + prompt.after, model);
      EXPECT_EQ(fits.status, 200) << fits.body.substr(0, 500);
    }
  }
}

// Ollama truncates a prompt to its own window silently, and counts the rest.
TEST_P(TranslationTest, AnEngineThatHasCutThePromptDoesNotAnswer) {
  const std::string cut =
      R"(,"x_sim":{"usage":{"prompt_tokens":1000,"completion_tokens":5,"total_tokens":1005}})";
  for (const char* limit : {"", R"(,"max_tokens":9)"}) {
    for (const Prompt& prompt : Prompts()) {
      if (std::string(prompt.path) != kChat && std::string(prompt.path) != kCompletions) continue;
      SCOPED_TRACE(prompt.path + std::string(limit));
      ExpectAboveWindow(
          Post(prompt.path, prompt.before + Words(1400) + prompt.after + limit + cut, "sim/silent"),
          prompt);
    }
  }
  EXPECT_EQ(Spent(), 0);
}

TEST_P(TranslationTest, AStreamIsRefusedWhereNoTokenizerCouldMakeItFit) {
  for (const Prompt& prompt : Prompts()) {
    if (std::string(prompt.path) == kEmbeddings) continue;
    SCOPED_TRACE(prompt.path);
    const auto stream = [&](int words, const char* model) {
      return Post(prompt.path, prompt.before + Words(words) + prompt.after + R"(,"stream":true)",
                  model);
    };
    const int64_t before = Generated();
    ExpectAboveWindow(stream(8008, "sim/silent"), prompt);
    EXPECT_EQ(Generated(), before) << "no engine has worked on it";
    (void)stream(7800, "sim/silent");
    EXPECT_EQ(Generated(), before + 1) << "it may fit with some tokenizer";
    ExpectAboveWindow(stream(1001, "sim/uncounted"), prompt);
  }
}

}  // namespace
}  // namespace tollgate::test
