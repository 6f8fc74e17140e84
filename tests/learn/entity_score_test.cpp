// kernels/learn/entity_score against seqeval's published cases, and against a second
// implementation that follows conlleval's description of chunks.
#include "kernels/base/rng.hpp"
#include "kernels/learn/entity_score.hpp"

#include <doctest/doctest.h>

#include <set>
#include <string>
#include <vector>

using namespace shoal;
using namespace shoal::learn;

namespace {

using entities = std::vector<entity>;

/// Chunks of IOB tags, each as long as the following tags continue it. Returns (sentence, first,
/// end, type) of each chunk.
std::set<std::string> chunks_of(const std::vector<tag_sequence>& sentences) {
  std::set<std::string> out;
  for (std::size_t s = 0; s < sentences.size(); ++s) {
    const auto& tags = sentences[s];
    for (std::size_t i = 0; i < tags.size();) {
      if (tags[i] == "O") {
        ++i;
        continue;
      }
      const auto type = tags[i].substr(2);
      auto end = i + 1;
      while (end < tags.size() && tags[end] == "I-" + type) ++end;
      out.insert(std::to_string(s) + " " + std::to_string(i) + " " + std::to_string(end) + " " +
                 type);
      i = end;
    }
  }
  return out;
}

} // namespace

TEST_CASE("entities are those of seqeval's published cases") {
  CHECK(entities_in({"B-PER", "I-PER", "O", "B-LOC"}) == entities{{"PER", 0, 1}, {"LOC", 3, 3}});
  CHECK(entities_in({"O", "O", "O", "B-MISC", "I-MISC", "I-MISC", "O"}) ==
        entities{{"MISC", 3, 5}});
  CHECK(entities_in({"B-ORG", "I-ORG", "O", "B-PER"}) == entities{{"ORG", 0, 1}, {"PER", 3, 3}});
  CHECK(entities_in({"B-PER", "B-PER", "I-PER"}) == entities{{"PER", 0, 0}, {"PER", 1, 2}});
  CHECK(entities_in({"I-PER", "I-LOC", "I-LOC", "O", "I-PER"}) ==
        entities{{"PER", 0, 0}, {"LOC", 1, 2}, {"PER", 4, 4}});
  CHECK(entities_in({"B-PER", "I-LOC"}) == entities{{"PER", 0, 0}, {"LOC", 1, 1}});
  CHECK(entities_in({"O", "O"}).empty());
  CHECK(entities_in({}).empty());
  CHECK(entities_in({"B-MY-TYPE", "I-MY-TYPE"}) == entities{{"MY-TYPE", 0, 1}});
  CHECK(entities_in({"B", "I", "O", "B"}) == entities{{"_", 0, 1}, {"_", 3, 3}});
  // The scheme with E and S.
  CHECK(entities_in({"B-PER", "E-PER", "S-LOC", "S-LOC"}) ==
        entities{{"PER", 0, 1}, {"LOC", 2, 2}, {"LOC", 3, 3}});
}

TEST_CASE("scores are those of seqeval's published example") {
  // README of seqeval: f1 0.50, precision 0.50 and recall 0.50; MISC 0, PER 1.
  const std::vector<tag_sequence> wanted{{"O", "O", "O", "B-MISC", "I-MISC", "I-MISC", "O"},
                                         {"B-PER", "I-PER", "O"}},
      predicted{{"O", "O", "B-MISC", "I-MISC", "I-MISC", "I-MISC", "O"}, {"B-PER", "I-PER", "O"}};
  const auto score = score_entities(wanted, predicted).value();
  CHECK(score.all.f1() == 0.5);
  CHECK(score.all.precision() == 0.5);
  CHECK(score.all.recall() == 0.5);
  CHECK(score.by_type.at("MISC").f1() == 0);
  CHECK(score.by_type.at("PER").f1() == 1);
}

TEST_CASE("a sentence ends its last entity") {
  // Without the end of a sentence, the two halves would be one entity.
  const std::vector<tag_sequence> halves{{"O", "B-PER"}, {"I-PER", "O"}};
  const auto score = score_entities(halves, halves).value();
  CHECK(score.all.wanted == 2);
  CHECK(score.all.f1() == 1);
}

TEST_CASE("scores without entities are 0 and never a division by 0") {
  const std::vector<tag_sequence> none{{"O", "O"}}, some{{"B-PER", "O"}};
  CHECK(score_entities(none, none)->all.f1() == 0);
  CHECK(score_entities(none, some)->all.precision() == 0);
  CHECK(score_entities(some, none)->all.recall() == 0);
}

TEST_CASE("predictions of another length are refused") {
  const std::vector<tag_sequence> one{{"O"}}, two{{"O", "O"}};
  CHECK(score_entities(one, {}).error() == "entities: there are 0 predicted sentences for 1");
  CHECK(score_entities(one, two).error() == "entities: sentence 0 has 2 predicted tags for 1");
}

TEST_CASE("scores of a thousand random tag sequences equal an independent reference") {
  auto random = stream(1, "tags");
  const std::vector<std::string> tags{"O", "B-PER", "I-PER", "B-ORG", "I-ORG", "B-LOC", "I-LOC"};
  const auto sentence = [&](std::size_t length) {
    tag_sequence out;
    for (std::size_t i = 0; i < length; ++i) out.push_back(tags[random.below(tags.size())]);
    return out;
  };
  std::vector<tag_sequence> wanted, predicted;
  for (int i = 0; i < 1000; ++i) {
    const auto length = random.below(25);
    wanted.push_back(sentence(length));
    predicted.push_back(sentence(length));
    // Most predictions are right, so that whole entities are.
    for (std::size_t t = 0; t < length; ++t)
      if (random.uniform() < 0.8) predicted.back()[t] = wanted.back()[t];
    const std::vector<tag_sequence> a{wanted.back()}, b{predicted.back()};
    const auto there = chunks_of(a), found = chunks_of(b);
    std::size_t right = 0;
    for (const auto& one : found) right += there.count(one);
    const auto score = score_entities(a, b).value();
    CHECK(score.all.wanted == there.size());
    CHECK(score.all.predicted == found.size());
    CHECK(score.all.right == right);
  }
  const auto there = chunks_of(wanted), found = chunks_of(predicted);
  std::size_t right = 0;
  for (const auto& one : found) right += there.count(one);
  const auto score = score_entities(wanted, predicted).value();
  CHECK(score.all.right == right);
  CHECK(right > 1000);
  const double p = static_cast<double>(right) / static_cast<double>(found.size()),
               r = static_cast<double>(right) / static_cast<double>(there.size());
  CHECK(score.all.f1() == doctest::Approx(2 * p * r / (p + r)).epsilon(1e-12));
}
