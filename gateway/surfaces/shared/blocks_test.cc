// The block sequence of Messages and Responses. See docs/design/wire.md 7.4.
#include "gateway/surfaces/shared/blocks.h"

#include <gtest/gtest.h>

#include <map>
#include <random>
#include <vector>

namespace tollgate::gateway {
namespace {

namespace pb = inference::v1;

// Records the callbacks: "think|a;" is a reasoning block with the delta a, "call ID NAME|a|b;" a
// call with two deltas.
class Recorder : public BlockHandler {
 public:
  void OnBlockStart(const BlockStart& start) override {
    EXPECT_FALSE(open_) << "blocks must not overlap";
    open_ = true;
    switch (start.kind) {
      case BlockKind::kReasoning:
        log += "think";
        break;
      case BlockKind::kText:
        log += "text";
        break;
      case BlockKind::kRefusal:
        log += "refusal";
        break;
      case BlockKind::kToolCall:
        EXPECT_FALSE(start.id_json.empty());
        log += "call " + std::string(start.id_json) + " " + std::string(start.name_json);
        break;
    }
  }
  void OnBlockDelta(std::string_view escaped, std::string_view logprobs_json) override {
    EXPECT_TRUE(open_);
    EXPECT_FALSE(escaped.empty());
    log += "|" + std::string(escaped);
    if (!logprobs_json.empty()) log += "#" + std::string(logprobs_json);
  }
  void OnBlockEnd() override {
    EXPECT_TRUE(open_);
    open_ = false;
    log += ";";
  }
  std::string log;

 private:
  bool open_ = false;
};

pb::Delta Think(std::string text) {
  pb::Delta delta;
  delta.set_reasoning_json(std::move(text));
  return delta;
}
pb::Delta Text(std::string text) {
  pb::Delta delta;
  delta.set_content_json(std::move(text));
  return delta;
}
pb::Delta Call(int32_t index, std::string arguments, std::string id = "", std::string name = "") {
  pb::Delta delta;
  pb::ToolCallDelta& call = *delta.add_tool_calls();
  call.set_index(index);
  call.set_arguments_json(std::move(arguments));
  call.set_id_json(std::move(id));
  call.set_name_json(std::move(name));
  return delta;
}

std::string LogOf(const std::vector<pb::Delta>& deltas) {
  Recorder recorder;
  BlockSequencer blocks(recorder);
  for (const pb::Delta& delta : deltas) blocks.OnDelta(delta);
  blocks.Finish();
  return recorder.log;
}

TEST(Blocks, NoOutputIsNoBlock) {
  Recorder recorder;
  BlockSequencer blocks(recorder);
  blocks.OnDelta({});
  blocks.Finish();
  EXPECT_EQ(recorder.log, "");
  EXPECT_FALSE(blocks.has_output());
  EXPECT_FALSE(blocks.called_tools());
  EXPECT_EQ(blocks.finish_reason(), pb::FINISH_REASON_UNSPECIFIED);
}

TEST(Blocks, EachKindClosesTheBlockBefore) {
  EXPECT_EQ(LogOf({Think("a"), Think("b"), Text("c"), Text("d"), Call(0, "{}", "i", "f")}),
            "think|a|b;text|c|d;call i f|{};");
  EXPECT_EQ(LogOf({Text("c"), Think("late"), Text("d")}), "text|c;think|late;text|d;");
}

TEST(Blocks, OneDeltaMayHoldAllKinds) {
  pb::Delta all = Call(0, "{}", "i", "f");
  all.set_content_json("c");
  all.set_reasoning_json("r");
  all.set_refusal_json("no");
  all.set_logprobs_json("[1]");
  EXPECT_EQ(LogOf({all}), "think|r;text|c#[1];refusal|no;call i f|{};");
}

TEST(Blocks, OtherChoicesAreIgnored) {
  pb::Delta other = Text("x");
  other.set_choice(1);
  other.set_finish_reason(pb::FINISH_REASON_LENGTH);
  Recorder recorder;
  BlockSequencer blocks(recorder);
  blocks.OnDelta(other);
  EXPECT_EQ(recorder.log, "");
  EXPECT_EQ(blocks.finish_reason(), pb::FINISH_REASON_UNSPECIFIED);
}

TEST(Blocks, ConsecutiveCalls) {
  EXPECT_EQ(
      LogOf({Call(0, "", "i", "f"), Call(0, R"({\"a\")"), Call(0, ":1}"), Call(1, "{}", "j", "g")}),
      R"(call i f|{\"a\"|:1};call j g|{};)");
}

TEST(Blocks, InterleavedCallsAreBuffered) {
  EXPECT_EQ(LogOf({Call(0, "{", "i", "f"), Call(1, "{", "j", "g"), Call(2, "", "k", "h"),
                   Call(1, R"(\"b\":2)"), Call(0, "}"), Call(2, "{}"), Call(1, "}")}),
            R"(call i f|{|};call j g|{\"b\":2|};call k h|{};)");
}

// An engine may alternate between kinds while a call is incomplete (H75).
TEST(Blocks, ManyBufferedBlocksAreFlushedInOrderWithoutASearchForEachPiece) {
  Recorder recorder;
  BlockSequencer blocks(recorder);
  blocks.OnDelta(Call(0, "{", "i", "f"));
  constexpr int kPieces = 20'000;
  for (int i = 0; i < kPieces; ++i) {
    blocks.OnDelta(Text("a"));
    blocks.OnDelta(Think("b"));
    blocks.OnDelta(Call(1, "x", "j", "g"));
  }
  blocks.Finish();
  EXPECT_TRUE(recorder.log.starts_with("call i f|{;text|a;think|b;call j g|xxx")) << "joined";
  EXPECT_TRUE(recorder.log.ends_with("text|a;think|b;"));
}

TEST(Blocks, OutputDuringACallIsBuffered) {
  EXPECT_EQ(LogOf({Call(0, "{", "i", "f"), Text("a"), Text("b"), Think("c"), Text("d"),
                   Call(0, "}"), Text("e")}),
            "call i f|{|};text|ab;think|c;text|d|e;");
}

TEST(Blocks, LogprobsStayWithTheirText) {
  pb::Delta one = Text("a"), two = Text("b");
  one.set_logprobs_json("[1]");
  two.set_logprobs_json("[2]");
  EXPECT_EQ(LogOf({one, two}), "text|a#[1]|b#[2];");
  EXPECT_EQ(LogOf({Call(0, "{", "i", "f"), one, two, Call(0, "}")}),
            "call i f|{|};text|a#[1]|b#[2];");
}

TEST(Blocks, BracketsInStringsAndEscapesDoNotEndACall) {
  EXPECT_EQ(LogOf({Call(0, R"({\"a\":\"}\\)", "i", "f"), Call(0, R"(\"}\")"), Text("x"),
                   Call(0, "}"), Text("y")}),
            R"(call i f|{\"a\":\"}\\|\"}\"|};text|x|y;)");
}

TEST(Blocks, AnUnfinishedCallIsFollowedByTheOthersAtTheEnd) {
  EXPECT_EQ(LogOf({Call(0, R"({\"a)", "i", "f"), Call(1, "{}", "j", "g"), Text("t")}),
            R"(call i f|{\"a;call j g|{};text|t;)");
  EXPECT_EQ(LogOf({Call(0, "", "i", "f"), Call(1, "", "j", "g")}), "call i f;call j g;");
}

TEST(Blocks, PiecesAfterACompleteCallBelongToItWhileItIsOpen) {
  EXPECT_EQ(LogOf({Call(0, "{}", "i", "f"), Call(0, "\\n"), Text("t"), Call(0, "lost")}),
            "call i f|{}|\\n;text|t;");
  EXPECT_EQ(LogOf({Call(0, "{}", "i", "f"), Call(1, "{", "j", "g"), Call(0, " "), Call(1, "}")}),
            "call i f|{};call j g|{|};");
}

TEST(Blocks, MissingCallIdsAreGenerated) {
  const std::string log = LogOf({Call(0, "{}", "", "f")});
  EXPECT_EQ(log.size(), std::string("call call_ f|{};").size() + 24) << log;
  EXPECT_EQ(log.rfind("call call_", 0), 0u);
}

TEST(Blocks, ReportsTheFinishReason) {
  Recorder recorder;
  BlockSequencer blocks(recorder);
  blocks.OnDelta(Think("a"));
  EXPECT_FALSE(blocks.has_output()) << "reasoning does not count";
  pb::Delta last = Text("b");
  last.set_finish_reason(pb::FINISH_REASON_STOP);
  last.set_stop_sequence_json("END");
  blocks.OnDelta(last);
  EXPECT_TRUE(blocks.has_output());
  EXPECT_EQ(blocks.finish_reason(), pb::FINISH_REASON_STOP);
  EXPECT_EQ(blocks.stop_sequence_json(), "END");
  blocks.OnDelta(Call(0, "", "i", "f"));
  EXPECT_TRUE(blocks.called_tools());
}

// For every order in which an engine may send the deltas, nothing is lost or sent twice, and each
// call is one block.
TEST(Blocks, RandomStreamsKeepEveryByte) {
  std::mt19937 random(7);
  for (int round = 0; round < 2000; ++round) {
    const int calls = static_cast<int>(random() % 4);
    std::vector<std::string> left(calls);
    std::map<std::string, std::string> expected;
    for (int i = 0; i < calls; ++i) {
      left[i] = R"({\"k\":[\"}{\",)" + std::to_string(random() % 100) + R"(,{\"x\":\"\\\"]\"}]})";
      expected["call i" + std::to_string(i) + " f"] = left[i];
    }
    std::vector<pb::Delta> deltas;
    int begun = 0;
    for (int step = 0; step < 60; ++step) {
      const auto what = random() % 4;
      if (what == 0) {
        deltas.push_back(Text(std::to_string(step) + ","));
        expected["text"] += std::to_string(step) + ",";
      } else if (what == 1) {
        deltas.push_back(Think(std::to_string(step) + ","));
        expected["think"] += std::to_string(step) + ",";
      } else if (calls > 0) {
        // Calls start in order; started calls continue in any order.
        const int at = begun < calls && what == 2 ? begun++ : static_cast<int>(random() % calls);
        if (at >= begun) continue;
        const bool first =
            what == 2 && at == begun - 1 && expected.count("begun" + std::to_string(at)) == 0;
        if (first) expected["begun" + std::to_string(at)];
        const size_t size = std::min<size_t>(left[at].size(), random() % 6);
        if (size == 0 && !first) continue;
        deltas.push_back(first ? Call(at, left[at].substr(0, size), "i" + std::to_string(at), "f")
                               : Call(at, left[at].substr(0, size)));
        left[at].erase(0, size);
      }
    }
    for (int i = 0; i < calls; ++i) {
      expected.erase("begun" + std::to_string(i));
      std::string& whole = expected["call i" + std::to_string(i) + " f"];
      whole.resize(whole.size() - left[i].size());
      if (i >= begun) expected.erase("call i" + std::to_string(i) + " f");
    }
    // Splits the log into blocks again.
    std::map<std::string, std::string> seen;
    std::map<std::string, int> blocks;
    const std::string log = LogOf(deltas);
    for (size_t from = 0; from < log.size();) {
      const size_t to = log.find(';', from);
      ASSERT_NE(to, std::string::npos);
      std::string block = log.substr(from, to - from);
      from = to + 1;
      const size_t bar = block.find('|');
      const std::string head = block.substr(0, bar);
      std::string body = bar == std::string::npos ? "" : block.substr(bar);
      std::erase(body, '|');
      seen[head] += body;
      ++blocks[head];
    }
    EXPECT_EQ(seen, expected) << log;
    for (const auto& [head, count] : blocks) {
      if (head.starts_with("call")) EXPECT_EQ(count, 1) << log;
    }
    if (HasFailure()) return;
  }
}

}  // namespace
}  // namespace tollgate::gateway
