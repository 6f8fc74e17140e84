// `shoal evaluate` as somebody meets it who has a run and labelled texts.
#include "tests/support/program.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <fstream>
#include <string>

#if SHOAL_WITH_LEARN

namespace {

struct asked : shoal::scratch_folder {
  shoal::program_outcome shoal(const std::string& arguments) const {
    return shoal::run_program(path, arguments);
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path / name) << text;
  }
};

const char* const scenario =
    "seed: 3\n"
    "stop_time: 10min\n"
    "devices: {a: {samples_per_second: 50}}\n"
    "peers: {a: {count: 2, up: 20Mbit, down: 20Mbit, device: a}}\n"
    "data: {files: [/usr/share/common-licenses/*]}\n"
    "workload: {kind: albert, layers: 1, heads: 2, hidden: 16, embedding: 8, feed_forward: 32, "
    "length: 32}\n"
    "training: {target_batch: 16, micro_batch: 8, epochs: 4, checkpoint_every: 2}\n"
    "record: {events: none}\n";

} // namespace

TEST_CASE("evaluate: every checkpoint of a run has a score, beside a model from scratch and a "
          "baseline") {
  const asked here;
  here.write("s.yaml", scenario);
  const auto run = here.shoal("run s.yaml --out run --no-baseline");
  REQUIRE_MESSAGE(run.status == 0, run.text);
  std::string texts;
  for (int i = 0; i < 12; ++i) texts += i % 2 == 0 ? "a\tsun and moon\n" : "b\tone two three\n";
  here.write("t.tsv", texts);
  const auto out = here.shoal("evaluate run --task classification --train t.tsv --dev t.tsv "
                              "--epochs 2 --seeds 2 --batch 4 --every-checkpoint --from-scratch "
                              "--json out.json");
  REQUIRE_MESSAGE(out.status == 0, out.text);
  for (const char* row : {"from scratch", "epoch-2", "epoch-4", "final", "naive Bayes"})
    CHECK_MESSAGE(out.has(row), out.text);
  const auto json = nlohmann::json::parse(std::ifstream(here.path / "out.json"));
  CHECK(json["models"].size() == 4);
  CHECK(json["models"][1]["steps"] == 2);
  CHECK(json["models"][1]["seeds"].size() == 2);
  CHECK(json["baseline"] == 1.0); // the test texts are the training texts

  const auto masked = here.shoal("evaluate run --task masked --every-checkpoint");
  REQUIRE_MESSAGE(masked.status == 0, masked.text);
  CHECK(masked.has("unigrams"));
  CHECK(masked.has("epoch-4"));
}

TEST_CASE("evaluate: a wrong input gets one line that says what to do") {
  const asked here;
  CHECK(here.shoal("evaluate nothing --task ner --train a --dev b").text ==
        "error: 'nothing' does not exist\n");
  here.write("model.ckpt", "no checkpoint");
  CHECK(here.shoal("evaluate model.ckpt --task ner").text ==
        "error: --task ner needs --train and --dev\n");
  CHECK(here.shoal("evaluate model.ckpt --task ner --train a --dev b").text ==
        "error: data: 'a' cannot be opened: No such file or directory\n");
  here.write("a", "word\tO\n");
  const auto out = here.shoal("evaluate model.ckpt --task ner --train a --dev a");
  CHECK(out.status == 1);
  CHECK_MESSAGE(out.has("model.ckpt"), out.text);
  const auto masked = here.shoal("evaluate model.ckpt --task masked");
  CHECK(masked.status == 1);
  CHECK_MESSAGE(masked.has("--task masked takes the directory of a run"), masked.text);
}

#endif
