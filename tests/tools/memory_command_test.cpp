// `shoal memory` as somebody meets it who asks what a model takes.
#include "tests/support/program.hpp"

#include <doctest/doctest.h>
#include <nlohmann/json.hpp>

#include <cstdlib>
#include <fstream>
#include <iterator>
#include <map>
#include <string>

namespace {

using json = nlohmann::ordered_json;

struct asked : shoal::scratch_folder {
  shoal::program_outcome memory(const std::string& arguments) const {
    return shoal::run_program(path, "memory " + arguments);
  }
  json answer(const std::string& arguments) const {
    const auto out = memory(arguments + " --json");
    REQUIRE_MESSAGE(out.status == 0, out.text);
    return json::parse(out.text);
  }
};

double figure(const json& of, const char* list, const char* name) {
  for (const auto& one : of[list])
    if (one["name"] == name) return one["value"];
  FAIL("no figure " << name);
  return 0;
}

} // namespace

TEST_CASE("memory: each figure of a model is shown with its formula") {
  const asked here;
  const auto out =
      here.memory("--model gpt2-xl --optimizer adam-8bit --offload --checkpointing --sharing 4");
  CHECK(out.status == 0);
  CHECK(out.has("gpt2-xl: 48 layers of width 1600, 25 heads, inner width 6400, context 1024, "
                "vocabulary 50257\n"
                "adam-8bit, mixed, 1 sample at once, checkpointing, offload, 4 groups of layers "
                "with their own parameters\n"));
  CHECK(out.has("layer_parameters        30.722 M      = 2*d*h + 4*d*d + d"));
  CHECK(out.has("* gpu                        1.48 GiB   = weights + activations + if(F, 0, "
                "optimizer + gradients)"));
  CHECK(out.has("The seeds' calculator"));
  CHECK(out.has("Shoal's own"));
}

TEST_CASE("memory: a shape of one's own has the proportions of GPT unless it says otherwise") {
  const asked here;
  const auto plain = here.answer("--layers 12 --dim 768"), named = here.answer("--model gpt2-s");
  CHECK(plain["seeds"] == named["seeds"]);
  CHECK(plain["shoal"] == named["shoal"]);
  CHECK(here.answer("--model gpt2-s --dim 1024 --layers 24")["model"]["hidden"] == 4096);
  CHECK(figure(here.answer("--layers 12 --dim 768 --batch 3 --context 512 --heads 6"), "shoal",
               "scores") == 3 * 6 * 512 * 512);
}

TEST_CASE("memory: a scenario says what its peers train") {
  const asked here;
  const std::string world = "name: small\nstop_time: 1min\npeers: {home: {count: 2, up: 10Mbit, "
                            "down: 10Mbit, device: laptop}}\n"
                            "devices: {laptop: {samples_per_second: 10, step_time: 1s}}\nnetwork: "
                            "{regions: [eu], default_delay: 10ms}\n"
                            "training: {micro_batch: 64, optimizer: {kind: lamb8}}\n";
  std::ofstream(here.path / "s.yaml") << world
                                      << "data: {files: [corpus.txt]}\n"
                                         "workload: {kind: transformer, layers: 3, heads: 2, dim: "
                                         "32, context: 48, checkpoint: true}\n";
  std::ofstream(here.path / "timed.yaml") << world << "workload: {kind: timing}\n";
  std::ofstream(here.path / "corpus.txt") << std::string(100'000, 'a');
  const auto is = here.answer("s.yaml");
  CHECK(
      is["model"].dump() ==
      R"({"name":"small","layers":3,"heads":2,"dim":32,"hidden":128,"context":48,"vocabulary":256})");
  CHECK(is["optimizer"] == "adam-8bit");
  CHECK(is["precision"] == "f32");
  CHECK(is["checkpointing"] == true);
  CHECK(is["swarm"] == true);
  CHECK(is["batch"] == 16); // the transformer computes 16 samples at a time
  CHECK(here.answer("s.yaml --set training.optimizer.kind=sgd")["optimizer"] == "sgd");
  std::ofstream(here.path / "d.yaml")
      << world
      << "workload: {kind: dalle, layers: 64, heads: 16, dim: 1024, text_length: 256, "
         "vocabulary: 32100, codes: 8192, side: 32}\n";
  const auto drawing = here.answer("d.yaml");
  CHECK(drawing["model"]["context"] == 1280);
  CHECK(drawing["sharing"] == 4);
  std::map<std::string, double> figures;
  for (const auto& one : drawing["shoal"]) figures[one["name"]] = one["value"];
  CHECK(figures["parameters"] == 125'894'244);
  for (const auto& one : here.answer("d.yaml --set workload.groups=0")["shoal"])
    if (one["name"] == "parameters") CHECK(one["value"] == 1'116'354'148);
  const auto plain = here.memory("d.yaml --set workload.reversible=false");
  CHECK_MESSAGE(plain.has("the estimate knows only reversible layers"), plain.text);
  const auto timed = here.memory("timed.yaml");
  CHECK(timed.status == 1);
  CHECK_MESSAGE(
      timed.has("error: timed.yaml trains no transformer; the estimate knows only the workloads "
                "'transformer' and 'dalle'"),
      timed.text);
}

TEST_CASE("memory: a pipeline has a line for each stage, and all stages have the whole model") {
  const asked here;
  std::ofstream(here.path / "corpus.txt") << std::string(100'000, 'a');
  std::ofstream(here.path / "p.yaml")
      << "stop_time: 1min\ndevices: {laptop: {samples_per_second: 10}}\n"
         "peers:\n  h: {count: 4, role: stage, up: 10Mbit, down: 10Mbit, device: laptop}\n"
         "  t: {count: 1, up: 10Mbit, down: 10Mbit, device: laptop}\n"
         "data: {files: [corpus.txt]}\n"
         "workload: {kind: transformer, layers: 5, heads: 2, dim: 32, context: 48}\n"
         "training: {method: pipeline, stages: 2, micro_batch: 4, optimizer: {kind: adamw}}\n";
  const auto is = here.answer("p.yaml");
  std::map<std::string, double> figures;
  for (const auto& one : is["shoal"]) figures[one["name"]] = one["value"];
  REQUIRE(is["stages"].size() == 2);
  double parameters = 0;
  for (const auto& one : is["stages"]) {
    const double own = one["parameters"];
    parameters += own;
    CHECK(one["weights"] == 12 * own); // with two moments of AdamW
    CHECK(one["total"] == (12 + 16 + 8 + 12) * own);
  }
  CHECK(parameters == figures["parameters"]);
  CHECK(here.memory("p.yaml").has("a trainer keeps"));
  // Each stage has the matrix of one bottleneck more.
  const auto narrow =
      here.answer("p.yaml --set workload.bottlenecks=2 --set workload.maxout=4")["stages"];
  REQUIRE(narrow.size() == 2);
  for (std::size_t s = 0; s < 2; ++s) {
    const double own = narrow[s]["parameters"];
    CHECK(own == static_cast<double>(is["stages"][s]["parameters"]) + 32 * 32 / 4);
    CHECK(narrow[s]["total"] == (12 + 16 + 8 + 12) * own);
  }
}

#if SHOAL_WITH_LEARN
TEST_CASE("memory: the ends and the shared layer of ALBERT are the two stages of its pipeline") {
  const asked here;
  const auto is = here.answer(std::string(SHOAL_SOURCE) + "/scenarios/swarm/albert.yaml");
  REQUIRE(is["stages"].size() == 2);
  const double width = 64, inner = 256;
  CHECK(is["stages"][1]["parameters"] ==
        4 * width * (width + 1) + inner * (width + 1) + width * (inner + 1) + 4 * width);
  CHECK(is["stages"][0]["parameters"] > 261 * 32);
}
#endif

TEST_CASE("memory: what is not known is named, with what was probably meant") {
  const asked here;
  const auto refused = [&](const std::string& arguments, int status, const std::string& why) {
    const auto out = here.memory(arguments);
    CHECK_MESSAGE(out.status == status, out.text);
    CHECK_MESSAGE(out.has(why), out.text);
  };
  refused("--model gpt-j6b", 1,
          "error: --model: unknown model 'gpt-j6b'; did you mean 'gpt-j-6b'?");
  refused("--model gpt2-s --optimizer adam8bit", 1,
          "error: --optimizer: unknown optimizer 'adam8bit'; did you mean 'adam-8bit'?");
  refused("--model gpt2-s --precision f64", 1, "error: --precision: unknown precision 'f64'");
  refused("--model gpt2-s --sharing 13", 1, "error: sharing is 13; it must be from 0 to 12");
  refused("--layers 4 --dim 0", 1, "error: dim is 0; it must be from 1 to");
  refused("", 2, "error: give a scenario, --model NAME");
  refused("--layers 4", 2, "error: give a scenario, --model NAME");
  refused("no.yaml", 1, "no.yaml");
}

TEST_CASE("memory: the page has the same models and formulas") {
  const asked here;
  const auto file = std::string(SHOAL_SOURCE) + "/tools/web/src/memory.json";
  const auto now = here.memory("--list --json").text;
  if (std::getenv("SHOAL_UPDATE_EXPECTED") != nullptr) std::ofstream(file) << now;
  std::ifstream in(file);
  const std::string there{std::istreambuf_iterator<char>(in), {}};
  CHECK_MESSAGE(there == now,
                "set SHOAL_UPDATE_EXPECTED=1 and run this test to write tools/web/src/memory.json");
}
