#include "tests/fuzz/translation/answer.h"

#include <algorithm>

#include "tests/fuzz/random_text.h"

namespace tollgate::fuzz {
namespace {

using Steps = std::vector<Step>;

// Split between any two units, also within a surrogate pair.
void CutInto(Random& random, const std::u16string& text, Step like, Steps& out) {
  const size_t longest = random.Pick<size_t>({1, 3, 6, 12, 1000, 1000});
  like.first = true;
  size_t at = 0;
  do {
    const size_t size = std::min(text.size() - at, random.Between(1, longest));
    like.text = text.substr(at, size);
    at += size;
    like.last = at == text.size();
    out.push_back(like);
    like.first = false;
  } while (at < text.size());
}

// Interleaves the lists at random, each list in its own order.
Steps Merge(Random& random, std::vector<Steps> lists) {
  Steps out;
  std::vector<size_t> at(lists.size());
  for (;;) {
    std::vector<size_t> open;
    for (size_t i = 0; i < lists.size(); ++i) {
      if (at[i] < lists[i].size()) open.push_back(i);
    }
    if (open.empty()) return out;
    const size_t from = open[random.Below(open.size())];
    for (size_t run = random.Between(1, 3); run > 0 && at[from] < lists[from].size(); --run) {
      out.push_back(std::move(lists[from][at[from]++]));
    }
  }
}

std::u16string Unique(std::string_view stem, size_t number) {
  std::u16string text(stem.begin(), stem.end());
  for (const char c : std::to_string(number)) text += static_cast<char16_t>(c);
  return text;
}

void AddCalls(Random& random, int index, Choice& choice, Steps& steps) {
  const size_t count = random.Between(1, 3);
  std::vector<Steps> lists;
  for (size_t i = 0; i < count; ++i) {
    Call call;
    call.id = Unique("call_", i) + (random.Percent(10) ? u"\u00e9\"\\" : u"");
    call.name = Unique("tool_", random.Below(3));
    if (!random.Percent(10)) call.arguments = RandomObject(random);
    Step like;
    like.choice = index;
    like.kind = Kind::kCall;
    like.call = i;
    CutInto(random, call.arguments, like, lists.emplace_back());
    choice.calls.push_back(std::move(call));
  }
  choice.interleaved = count > 1 && random.Percent(40);
  if (choice.interleaved) {
    // The first deltas stay in order, because calls are numbered by their appearance.
    for (Steps& list : lists) {
      steps.push_back(std::move(list.front()));
      list.erase(list.begin());
    }
    lists = {Merge(random, std::move(lists))};
  }
  for (Steps& list : lists) {
    for (Step& step : list) steps.push_back(std::move(step));
  }
}

void AddText(Random& random, int index, Kind kind, bool logprobs, Steps& steps) {
  const std::u16string text = RandomText(
      random, random.Percent(4) ? 100 : random.Pick<size_t>({2, 4, 8, 20}), random.Percent(10));
  Step like;
  like.choice = index;
  like.kind = kind;
  // Half a character may be sent with the next piece, so that its token cannot be attributed.
  const bool halves = std::any_of(text.begin(), text.end(),
                                  [](char16_t unit) { return IsHigh(unit) || IsLow(unit); });
  like.logprob = logprobs && kind == Kind::kText && !halves;
  CutInto(random, text, like, steps);
}

Steps RandomSteps(Random& random, int index, const Abilities& abilities, Choice& choice) {
  Steps steps;
  const bool logprobs = random.Percent(15);
  if (abilities.chat) {
    if (random.Percent(50)) AddText(random, index, Kind::kReasoning, false, steps);
    choice.refused = random.Percent(5);
    if (choice.refused) {
      AddText(random, index, Kind::kRefusal, false, steps);
    } else if (random.Percent(65)) {
      AddText(random, index, Kind::kText, logprobs, steps);
      if (random.Percent(8)) {  // a second block of reasoning
        AddText(random, index, Kind::kReasoning, false, steps);
        AddText(random, index, Kind::kText, logprobs, steps);
      }
    }
    if (!choice.refused && random.Percent(35)) AddCalls(random, index, choice, steps);
    if (!choice.refused && random.Percent(5)) {
      AddText(random, index, Kind::kText, logprobs, steps);
    }
  } else if (random.Percent(95)) {
    AddText(random, index, Kind::kText, logprobs, steps);
  }
  choice.finish =
      random.Percent(70) ? Finish::kStop : random.Pick({Finish::kLength, Finish::kFilter});
  if (choice.finish == Finish::kStop && choice.calls.empty() && random.Percent(25)) {
    choice.stop_sequence = RandomText(random, 5, false);
    std::erase(choice.stop_sequence, u'\0');  // not allowed in requests
  }
  Step finish;
  finish.choice = index;
  finish.kind = Kind::kFinish;
  steps.push_back(finish);
  return steps;
}

}  // namespace

Answer RandomAnswer(Random& random, const Abilities& abilities) {
  Answer answer;
  const size_t most = static_cast<size_t>(abilities.max_choices);
  answer.choices.resize(random.Percent(80) ? 1 : random.Between(1, most));
  std::vector<Steps> lists;
  for (size_t i = 0; i < answer.choices.size(); ++i) {
    lists.push_back(RandomSteps(random, static_cast<int>(i), abilities, answer.choices[i]));
  }
  answer.steps = Merge(random, std::move(lists));
  answer.prompt_tokens = static_cast<int64_t>(random.Between(1, 5000));
  if (random.Percent(30)) {
    answer.cached_tokens = static_cast<int64_t>(random.Below(answer.prompt_tokens + 1));
    if (random.Percent(30)) {
      answer.cache_write_tokens =
          static_cast<int64_t>(random.Below(answer.prompt_tokens - answer.cached_tokens + 1));
    }
  }
  return answer;
}

}  // namespace tollgate::fuzz
